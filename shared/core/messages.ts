/**
 * What the processes say to one another over JetStream, and how the streams are named. An edge
 * writes batches, a scorer reads them; a scorer writes hints, delivery reads them. A field that may
 * be missing says which older sender it tolerates.
 */
import { z } from 'zod'
import { PoisonError } from './outcome.ts'
import { reasonSchema } from './scoring.ts'
import { type Telemetry, telemetrySchema } from './telemetry.ts'

/** Streams, subjects, buckets and durable consumers, one name each. */
export const telemetryStream = 'TELEMETRY'
export const telemetrySubject = 'telemetry.batch'
export const scorerConsumer = 'scorer'
export const alertsStream = 'ALERTS'
export const deliveryHintSubject = 'alerts.delivery'
export const deliveryConsumer = 'delivery'
export const deadLetterStream = 'DEAD_LETTERS'
export const deadLetterSubject = 'dead.telemetry'
/** KV bucket of the tenant directory's projection, and of what each edge has applied. */
export const tenantsBucket = 'tenants'
export const edgesBucket = 'edges'

/** What the edge knows of an event it took: everything but the body. */
export const eventHeaderSchema = z.object({
  event_id: z.string(),
  tenant_id: z.string(),
  /** The edge's wall clock when the body had arrived, in ms since 1970. */
  received_at: z.number().int(),
  rasp_score: z.number().int(),
  rasp_action: z.enum(['ALLOW', 'REVIEW', 'BLOCK']),
  reasons: z.array(reasonSchema),
  policy_version: z.number().int(),
  /** Content address of the policy document that scored it. */
  policy_hash: z.string(),
  /** The tenant's credential epoch that verified the signature. */
  epoch: z.number().int(),
})

export type EventHeader = z.infer<typeof eventHeaderSchema>

/** One accepted event as the scorer works on it. */
export type AcceptedEvent = EventHeader & { body: Telemetry }

/**
 * One element of a batch message: the header around the untouched body text. The edge joins
 * elements with `[`, `,` and `]`, so a batch is itself one JSON array and no body is ever
 * re-serialised.
 * @param bodyText the verified body, which is known to be one JSON object
 */
export function encodeEvent(header: EventHeader, bodyText: string): string {
  return `${JSON.stringify(header).slice(0, -1)},"body":${bodyText}}`
}

export type DecodedBatch = {
  events: AcceptedEvent[]
  /** Elements that are no event, by index: poison, never a reason to lose their neighbours. */
  invalid: { index: number; detail: string; value: unknown }[]
}

/**
 * Reads a batch message.
 * @throws PoisonError when the message as a whole cannot be read
 */
export function decodeBatch(data: Uint8Array): DecodedBatch {
  let values: unknown
  try {
    values = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString('utf8'))
  } catch {
    throw new PoisonError('unreadable_batch', 'a batch message is not JSON')
  }
  if (!Array.isArray(values)) {
    throw new PoisonError('unreadable_batch', 'a batch message is not an array')
  }
  const batch: DecodedBatch = { events: [], invalid: [] }
  values.forEach((value: unknown, index) => {
    const fault = findFault(value)
    if (fault === null) batch.events.push(value as AcceptedEvent)
    else batch.invalid.push({ index, detail: fault, value })
  })
  return batch
}

function findFault(value: unknown): string | null {
  const header = eventHeaderSchema.safeParse(value)
  if (!header.success) return `header: ${header.error.issues[0]?.path.join('.') ?? ''}`
  const body = telemetrySchema.safeParse((value as { body?: unknown }).body)
  if (!body.success) return `body: ${body.error.issues[0]?.path.join('.') ?? ''}`
  if (body.data.tenant_id !== header.data.tenant_id) return 'body: tenant_id'
  return null
}

/** A hint that a delivery is due: only a hint, the Postgres row is the truth. */
export const deliveryHintSchema = z.object({ tenant_id: z.string(), delivery_id: z.string() })
export type DeliveryHint = z.infer<typeof deliveryHintSchema>

/** The KV key of a tenant's entry, and of a policy document by its content address. */
export const tenantKey = (tenantId: string): string => `tenant.${tenantId}`
export const policyKey = (policyHash: string): string => `policy.${policyHash}`
export const edgeKey = (edgeId: string): string => `edge.${edgeId}`

/** A tenant as the edges see it. The secret is sealed under MASTER_KEY. */
export const tenantEntrySchema = z.object({
  tenant_id: z.string(),
  environment: z.enum(['live', 'sandbox']),
  status: z.enum(['active', 'suspended']),
  /** Rises with every change of a credential or of the status. */
  epoch: z.number().int(),
  /** Null while a rotation has the old secret off and the new one not yet on. */
  hmac_secret_sealed: z.string().nullable(),
  policy_version: z.number().int(),
  policy_hash: z.string(),
  /** Ingest rate; null is unlimited. */
  ingest_rate: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullable(),
})
export type TenantEntry = z.infer<typeof tenantEntrySchema>

/** What an edge reports: the newest revision of the tenants bucket that it has applied. */
export const edgeEntrySchema = z.object({ edge_id: z.string(), applied_revision: z.number().int() })
export type EdgeEntry = z.infer<typeof edgeEntrySchema>

/**
 * What the processes say to one another over JetStream, and how the streams are named. An edge
 * writes batches, a scorer reads them; a scorer writes hints, delivery reads them. A field that may
 * be missing says which older sender it tolerates.
 */
import { z } from 'zod'
import { isPlainEvent } from './event-check.ts'
import { toEventId } from './ids.ts'
import { PoisonError } from './outcome.ts'
import { reasonSchema } from './scoring.ts'
import { type Telemetry, telemetrySchema } from './telemetry.ts'

/** Streams, subjects, buckets and durable consumers, one name each. */
export const telemetryStream = 'TELEMETRY'
export const telemetrySubject = 'telemetry.batch'
/** Who stores events, and who decides on them once everything before them is stored. */
export const scorerConsumer = 'scorer'
export const deciderConsumer = 'decider'
export const alertsStream = 'ALERTS'
export const deliveryHintSubject = 'alerts.delivery'
export const deliveryConsumer = 'delivery'
export const deadLetterStream = 'DEAD_LETTERS'
export const deadLetterSubject = 'dead.telemetry'
/** KV bucket of the tenant directory's projection, and of what each edge has applied. */
export const tenantsBucket = 'tenants'

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
export type AcceptedEvent = EventHeader & {
  /** Its place in the stream: of two events, the lower came first. */
  position: number
  body: Telemetry
  /** The body as it was signed, proven by the event id; missing when it cannot be told apart. */
  bodyBytes?: Uint8Array
  /** `toFilledCategories` of its signals, where these are no longer at hand. */
  filledCategories?: number
}

/**
 * What stands before the body in one element of a batch message; the body and `}` follow. Ids,
 * hashes and actions come from closed alphabets that need no escaping; reasons are encoded in full.
 */
export function encodeEventHead(header: EventHeader): string {
  const reasons = header.reasons.length === 0 ? '[]' : JSON.stringify(header.reasons)
  return (
    `{"event_id":"${header.event_id}","tenant_id":"${header.tenant_id}",` +
    `"received_at":${header.received_at},"rasp_score":${header.rasp_score},` +
    `"rasp_action":"${header.rasp_action}","reasons":${reasons},` +
    `"policy_version":${header.policy_version},"policy_hash":"${header.policy_hash}",` +
    `"epoch":${header.epoch},"body":`
  )
}

export type DecodedBatch = {
  events: AcceptedEvent[]
  /** Elements that are no event, by index: poison, never a reason to lose their neighbours. */
  invalid: { index: number; detail: string; value: unknown }[]
}

/** Positions that one message has room for: no edge of any release puts more events into one. */
export const positionsPerMessage = 256

/**
 * The position of a message's first event: rises with the sequence, and from a stream to one that
 * is made later, as long as a stream takes less than 3,900 messages a second on average.
 * @param streamCreatedMs when the stream was made, since its sequences begin at 1
 */
export function toPosition(streamCreatedMs: number, sequence: number): number {
  return streamCreatedMs * 1_000 + sequence * positionsPerMessage
}

/**
 * Reads a batch message.
 * @param position of its first event
 * @throws PoisonError when the message as a whole cannot be read
 */
export function decodeBatch(data: Uint8Array, position: number): DecodedBatch {
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
    if (fault === null) {
      const event = value as AcceptedEvent
      event.position = position + Math.min(index, positionsPerMessage - 1)
      batch.events.push(event)
    } else batch.invalid.push({ index, detail: fault, value })
  })
  findBodies(data, values)
  return batch
}

const bodyMark = ',"body":'

/**
 * Finds each event's body among the bytes: it begins after its head and ends where the next head
 * begins. A client can write what looks like a head, but not one that leaves a body with the hash
 * that its event id is.
 */
function findBodies(data: Uint8Array, values: (Partial<AcceptedEvent> | null)[]): void {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  let at = 0
  for (let index = 0; index < values.length; index++) {
    const start = bytes.indexOf(bodyMark, at) + bodyMark.length
    if (start < bodyMark.length) return
    const next = values[index + 1]
    const nextHead = `},{"event_id":"${next?.event_id}"`
    const end = next === undefined ? bytes.length - 2 : bytes.indexOf(nextHead, start)
    if (end < start) return
    const value = values[index]
    const body = bytes.subarray(start, end)
    if (typeof value?.event_id === 'string' && toEventId(body) === value.event_id) {
      value.bodyBytes = body
    }
    at = end
  }
}

function findFault(value: unknown): string | null {
  if (isPlainEvent(value)) return null
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

/**
 * The KV key that says the bucket holds every tenant. It is lost with the bucket, and written again
 * only once the bucket was found equal to Postgres: without it an edge cannot tell a tenant that
 * does not exist from one that was not put back yet.
 */
export const wholeKey = 'whole'
/** How many tenants there are at least, for those that are lost one by one. */
export const wholeEntrySchema = z.object({ tenants: z.number().int().min(0) })
export type WholeEntry = z.infer<typeof wholeEntrySchema>

/** A tenant as the edges see it. The secret is sealed under MASTER_KEY. */
export const tenantEntrySchema = z.object({
  tenant_id: z.string(),
  environment: z.enum(['live', 'sandbox']),
  status: z.enum(['active', 'suspended']),
  /** Rises with every change of a credential or of the status. */
  epoch: z.number().int(),
  /** Null while a rotation has the old secret off and the new one not yet on. */
  hmac_secret_sealed: z.string().nullable(),
  /**
   * The one before, off for good: only to tell who still signs with it. Missing where there was no
   * rotation yet, and from consoles that do not know of it.
   */
  hmac_secret_retired_sealed: z.string().optional(),
  policy_version: z.number().int(),
  /** Stands unescaped in every event's header. */
  policy_hash: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Ingest rate; null is unlimited. */
  ingest_rate: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullable(),
})
export type TenantEntry = z.infer<typeof tenantEntrySchema>

/** KV bucket of what edges report of requests still signed with a retired secret. */
export const retiredUseBucket = 'retired_use'
/** One edge's report on one tenant; an edge's id is of letters, digits, `-` and `_`. */
export const retiredUseKey = (tenantId: string, edgeId: string): string => `${tenantId}.${edgeId}`

/** Requests that one edge refused because they were signed with a tenant's retired secret. */
export const retiredUseSchema = z.object({
  /** Which secret: a later rotation begins at zero. */
  last4: z.string(),
  versions: z.array(
    z.object({
      sdk_version: z.string(),
      requests: z.number().int(),
      /** How long ago the last one was, when this was reported: no clock is compared. */
      age_ms: z.number(),
    }),
  ),
})
export type RetiredUseReport = z.infer<typeof retiredUseSchema>

/** KV bucket of what edges claim to have accepted, for the ledger. */
export const acceptedBucket = 'accepted'
/** One edge's claims on one hour, a part of the tenants each; `*` for any. */
export const acceptedKey = (edgeId: string, hour: number | '*', part: number | '*'): string =>
  `${edgeId}.${hour}.${part}`

/** What an edge has answered with a 200 since its start, by tenant. */
export const acceptedSchema = z.object({
  edge_id: z.string(),
  hour_ms: z.number().int(),
  accepted: z.record(z.string(), z.number().int()),
})
export type AcceptedClaim = z.infer<typeof acceptedSchema>

/** What an edge reports: the newest revision of the tenants bucket that it has applied. */
export const edgeEntrySchema = z.object({ edge_id: z.string(), applied_revision: z.number().int() })
export type EdgeEntry = z.infer<typeof edgeEntrySchema>

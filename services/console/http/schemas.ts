/**
 * Schemas of the admin API: tenants, credentials, alerts, and parameters that many routes share.
 * Requests are validated and responses are written with them, so a response has no other fields.
 */
import { z } from 'zod'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import {
  bodyBytesMax,
  nameCharactersMax,
  noteCharactersMax,
  urlCharactersMax,
} from '#shared/core/base/limits/http.ts'
import { undecidedShareMax } from '#shared/core/base/limits/stream.ts'
import { webhookEvents } from '#shared/core/deliveries/webhook-events.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { clientAddresses } from '#shared/core/tenants/client-address.ts'
import { ingestAnswers } from '#shared/core/tenants/ingest-answer.ts'

const environmentSchema = z.enum(['live', 'sandbox'])
const statusSchema = z.enum(['active', 'suspended'])

export const tenantIdSchema = z
  .string()
  .regex(tenantIdPattern, 'must be 1 to 63 lower-case letters, digits and hyphens')

/** An id that the server gave. Postgres cannot hold every character of a path. */
export const idSchema = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9_-]+$/, 'must be an id')

export const tenantParams = z.object({ tenant_id: tenantIdSchema })
export const alertParams = z.object({ alert_id: z.string().min(1).max(64) })

const urlSchema = z.string().min(1).max(urlCharactersMax)

export const createTenantBody = z.strictObject({
  tenant_id: tenantIdSchema,
  name: operatorText(nameCharactersMax).default(''),
  environment: environmentSchema.default('live'),
  webhook_url: urlSchema.nullish(),
})

export const createdTenantSchema = z
  .object({
    tenant_id: z.string(),
    environment: environmentSchema,
    public_api_key: z.string(),
    hmac_secret: z.string(),
    webhook_secret: z.string(),
    webhook_url: z.string().nullable(),
  })
  .describe('The only time the secrets are shown.')

export const ingestAnswerSchema = z
  .enum(ingestAnswers)
  .describe(
    'what a 200 of ingest tells the client: full, or interface for the fields of the public ' +
      'interface and event_id alone, without flags and warnings',
  )

export const clientAddressSchema = z
  .enum(clientAddresses)
  .describe(
    'which address of a client counts: connection, or body for client_ip of a body that the ' +
      'tenant’s own secret signed',
  )

export const storeClientAddressSchema = z
  .boolean()
  .describe('whether events keep the full address of their client')

const retentionSchema = z
  .object({ days: z.number().int().nullable(), default: z.boolean() })
  .describe("days is null without a limit; default: whether it is the product's")

const rateSchema = z.object({ per_second: z.number(), burst: z.number() }).nullable()

export const tenantSchema = z
  .object({
    tenant_id: z.string(),
    name: z.string(),
    environment: environmentSchema,
    status: statusSchema,
    epoch: z.number().int(),
    created_at: z.string(),
    webhook_url: z.string().nullable(),
    webhook_state: z.enum(['on', 'off', 'paused']),
    webhook_off_reason: z
      .string()
      .nullable()
      .describe('operator, gone (it answered 410) or failing (for five days)'),
    webhook_changed_at: z.string().nullable(),
    webhook_events: z.array(z.enum(webhookEvents)).describe('which events it gets'),
    webhook_health: z
      .object({
        failing_since: z.string().describe('the first failed attempt since the last success'),
        failed_attempts: z.number().int(),
        last_failure: z.string().nullable(),
        held_until: z
          .string()
          .nullable()
          .describe('set while deliveries are held: when the next probe is sent'),
        failed_probes: z.number().int(),
      })
      .nullable()
      .describe('null without failed attempts'),
    policy_version: z.number().int(),
    policy_hash: z.string(),
    ingest_rate: rateSchema,
    ingest_bytes: rateSchema,
    ingest_share: z
      .number()
      .nullable()
      .describe("the share of the telemetry stream; null is the product's default"),
    telemetry_stream: z.number().int().describe('the number of its telemetry stream, for good'),
    ingest_answer: ingestAnswerSchema,
    client_address: clientAddressSchema,
    store_client_address: storeClientAddressSchema,
    rest_rate: rateSchema,
    retention: z
      .object({ events: retentionSchema, alerts: retentionSchema, deliveries: retentionSchema })
      .describe('retention periods'),
    public_api_key: z
      .object({
        prefix: z.string(),
        last4: z.string(),
        created_at: z.string(),
        last_used_at: z.string().nullable(),
      })
      .nullable(),
    hmac_secret: z
      .object({ last4: z.string(), created_at: z.string(), state: z.string() })
      .nullable(),
    shared_secret_off: z
      .boolean()
      .describe('whether telemetry that is signed with the HMAC secret itself is refused'),
    install_roots: z
      .array(
        z.object({
          epoch: z.number().int(),
          state: z.enum(['current', 'next', 'previous']),
          created_at: z.string(),
        }),
      )
      .describe('the valid install roots, the one that makes tokens first'),
    webhook_secret: z.object({ last4: z.string(), created_at: z.string() }).nullable(),
  })
  .meta({ id: 'Tenant' })

const unchanged = "null is the product's default; without the field nothing changes"

const newRateSchema = z
  .strictObject({
    per_second: z.number().positive().max(1_000_000),
    burst: z.number().min(1).max(1_000_000),
  })
  .nullish()
  .describe(unchanged)

const newByteRateSchema = z
  .strictObject({
    per_second: z.number().positive().max(1e9),
    burst: z.number().min(bodyBytesMax).max(1e9),
  })
  .nullish()
  .describe(`bytes of submissions; ${unchanged}`)

const newShareSchema = z
  .number()
  .positive()
  .max(undecidedShareMax)
  .nullish()
  .describe(`share of the telemetry stream that may wait undecided; ${unchanged}`)

export const ratesBody = z.strictObject({
  ingest_rate: newRateSchema,
  ingest_bytes: newByteRateSchema,
  ingest_share: newShareSchema,
  rest_rate: newRateSchema,
})

export const limitSchema = (most: number, usual: number) =>
  z.coerce.number().int().min(1).max(most).default(usual)

/** An empty request rotates both secrets, like the button of the dashboard. */
export const rotateBody = z
  .strictObject({
    hmac: z.boolean().default(false),
    webhook: z.boolean().default(false),
    api_key: z.boolean().default(false),
  })
  .nullish()

const newKeys = {
  tenant_id: z.string(),
  public_api_key: z.string().optional(),
  hmac_secret: z.string().optional(),
  webhook_secret: z.string().optional(),
}

export const rotatedSchema = z
  .object({
    ...newKeys,
    duration_ms: z.number().int(),
    confirmed_edges: z.array(z.string()),
    lease_expired_edges: z.array(z.string()),
  })
  .describe('The new credentials; the old ones are dead everywhere.')

export const rotationKeysSchema = z
  .object(newKeys)
  .describe('The new credentials of the latest rotation, for the person who began it.')

export const webhookBody = z.strictObject({ url: urlSchema })
export const webhookSchema = z.object({ tenant_id: z.string(), webhook_url: z.string().nullable() })
export const tenantStatusSchema = z.object({ tenant_id: z.string(), status: statusSchema })

export const dispositionBody = z.strictObject({
  disposition: z.enum(dispositions),
  note: operatorText(noteCharactersMax).nullish(),
  expected_disposition: z
    .enum(dispositions)
    .optional()
    .describe('what you last saw: when it was changed since, nothing is set and the answer is 409'),
})

export const edgesSchema = z.object({
  revision: z.number().int().describe('the newest revision of a tenant or policy'),
  data: z.array(
    z.object({
      edge_id: z.string(),
      applied_revision: z.number().int(),
      announced_at: z.string(),
    }),
  ),
})

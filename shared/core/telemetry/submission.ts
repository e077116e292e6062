/**
 * The submission of the public interface: its one description. Ingest and scorer validate with it,
 * and the OpenAPI document is made from it. `fast-path.ts` recognizes valid submissions faster; a
 * property test holds the two equal.
 */
import { z } from 'zod'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import {
  clientFlagsMax,
  idCharactersMax,
  metaCharactersMax,
} from '#shared/core/base/limits/telemetry.ts'
import { controlCharacters } from '#shared/core/base/visible-text.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import { type VerdictRequest, verdictRequestSchema } from '#shared/core/verdicts/verdict-request.ts'

/** Keys that change an object's prototype in JavaScript and similar languages. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

/** Whether a value is a JSON object: no array, and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A device, session, user or account id. */
export const idSchema = z
  .string()
  .min(1)
  .max(idCharactersMax)
  .refine((id) => !controlCharacters.test(id), 'must not contain control characters')
  .refine((id) => id.isWellFormed(), 'must not contain a lone surrogate')

/** Whether an id is a path segment that URLs resolve, so that no request can name it. */
export const isDotSegment = (id: string): boolean => id === '.' || id === '..'

/** An id that a URL can name. */
export const sentIdSchema = idSchema.refine(
  (id) => !isDotSegment(id),
  'must not be . or .., which no URL can name',
)

const metaSchema = z.string().max(metaCharactersMax)
// A record schema would copy every key of every event. The catalog checks the values.
const categorySchema = z
  .custom<CategorySignals>(isObject, {
    error: ({ input }) =>
      input === undefined ? 'is missing; send {} when nothing was measured' : 'must be an object',
  })
  .meta({
    type: 'object',
    propertyNames: { type: 'string' },
    additionalProperties: {},
    description: 'Signals by name. `null` means "not measured"; unknown signals are kept.',
  })

/**
 * A submission as it is stored, after `normalizeOptionals`. Unknown extra fields are accepted and
 * kept.
 */
export const telemetrySchema = z.looseObject({
  tenant_id: z.string().regex(tenantIdPattern).meta({ description: 'The tenant slug.' }),
  device_id: idSchema,
  session_id: idSchema,
  user_id: idSchema.optional(),
  account_id: idSchema.optional(),
  // `readOccurredAt` reads the time.
  occurred_at: z
    .unknown()
    .optional()
    .meta({
      description:
        'Kept, never trusted for ordering and never a reason to refuse. Stored as a time where it is ' +
        'an ISO-8601 time with an offset, a date, or milliseconds since 1970.',
    }),
  sdk_meta: z.looseObject({
    sdk_version: metaSchema,
    platform: metaSchema,
    batch_type: metaSchema.optional(),
  }),
  // `readClientVerdict` reads it: advice in another form must not keep evidence away.
  scorer: z
    .looseObject({
      rasp_score: z.unknown().optional().meta({ description: 'A number from 0 to 100.' }),
      rasp_action: z.unknown().optional().meta({ description: 'ALLOW, REVIEW or BLOCK.' }),
      rasp_flags: z.unknown().optional().meta({ description: 'An array of strings.' }),
    })
    .meta({
      description:
        'What the client computed. Advisory: the server scores `signals`, and takes any form of it. A ' +
        'client without a scorer sends a `rasp_score` of -1 and an empty `rasp_action`; then nothing ' +
        'is compared.',
    }),
  signals: z
    .looseObject({
      root: categorySchema,
      emulator: categorySchema,
      debugger: categorySchema,
      tamper: categorySchema,
      ecosystem: categorySchema,
      network: categorySchema,
    })
    .meta({ description: 'Detection data by category; each must be there, possibly empty.' }),
})

export type Telemetry = z.infer<typeof telemetrySchema>

/** What ingest accepts. Stored events of earlier releases can have other ids. */
export const sentTelemetrySchema = telemetrySchema.extend({
  device_id: sentIdSchema.meta({
    description: 'Persisted, scoped to an install.',
    examples: ['4f6c1d8e-device'],
  }),
  session_id: sentIdSchema.meta({ description: 'Fresh for each app launch.' }),
  user_id: sentIdSchema.optional(),
  account_id: sentIdSchema.optional(),
  verdict: verdictRequestSchema.optional(),
  client_ip: metaSchema.optional().meta({
    description:
      'The address of the client, from a backend that passes telemetry on. It counts only where the ' +
      'tenant’s `client_address` is `body` and the tenant’s own secret signed the body.',
    examples: ['203.0.113.9'],
  }),
})

/** What an accepted submission asks for; null for none. Call it for what ingest accepted. */
export const readVerdictRequest = ({ verdict }: Telemetry): VerdictRequest | null =>
  (verdict as VerdictRequest | undefined) ?? null

/**
 * Normalizes optional members in place: a null or empty `user_id` or `account_id`, which an SDK
 * sends before a login, becomes absent, and so do a `verdict` or `batch_type` that is null and a
 * `client_ip` that is null or empty.
 * @param value a parsed body; changed
 */
export function normalizeOptionals(value: Record<string, unknown>): void {
  for (const name of ['user_id', 'account_id', 'client_ip']) {
    // The member stays, so that the tree has as many members as the text.
    if (value[name] === null || value[name] === '') value[name] = undefined
  }
  if (value.verdict === null) value.verdict = undefined
  const { sdk_meta: meta } = value
  if (isObject(meta) && meta.batch_type === null) meta.batch_type = undefined
}

/** What a client says that it computed. */
export type ClientVerdict = { rasp_score: number; rasp_action: string; rasp_flags: string[] }

/**
 * Reads the client's advice in whatever form it came.
 * @returns a finite score, -1 for none; the action, empty for none; flags within the bounds
 */
export const readClientVerdict = (scorer: Telemetry['scorer']): ClientVerdict => ({
  rasp_score: readClientScore(scorer),
  rasp_action: readClientAction(scorer),
  rasp_flags: readClientFlags(scorer),
})

/** The score of `readClientVerdict` alone. */
export function readClientScore({ rasp_score: sent }: Telemetry['scorer']): number {
  const score = typeof sent === 'string' && sent.trim() !== '' ? Number(sent) : sent
  if (typeof score !== 'number' || Number.isNaN(score)) return -1
  return Math.min(Math.max(score, -Number.MAX_VALUE), Number.MAX_VALUE)
}

/** The action of `readClientVerdict` alone. */
export const readClientAction = ({ rasp_action: sent }: Telemetry['scorer']): string =>
  typeof sent === 'string' ? sent.slice(0, metaCharactersMax) : ''

/** The flags of `readClientVerdict` alone. */
export const readClientFlags = ({ rasp_flags: sent }: Telemetry['scorer']): string[] =>
  (Array.isArray(sent) ? sent.slice(0, clientFlagsMax) : [sent])
    .filter((flag) => typeof flag === 'string')
    .map((flag) => flag.slice(0, metaCharactersMax))

/**
 * Reads the stored body of an accepted event, without validating it again.
 * @throws SyntaxError when the text is not JSON
 */
export function readStoredTelemetry(text: string): Telemetry {
  const body = JSON.parse(text) as Record<string, unknown>
  normalizeOptionals(body)
  return body as Telemetry
}

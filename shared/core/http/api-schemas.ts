/**
 * The schemas of the REST API: parameters and answers. Routes parse queries with them, the OpenAPI
 * document is made from them, and tests check real answers against them. They are a promise to
 * clients.
 */
import { z } from 'zod'
import {
  type AlertFilter,
  alertFilters,
  type FilterEntry,
  type FilterName,
  filterNames,
  type OperatorsFilter,
  unassigned,
} from '#shared/core/alerts/alert-filters.ts'
import { parseInstant } from '#shared/core/base/instants.ts'
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import {
  alertsPageDefault,
  alertsPageMax,
  cursorCharactersMax,
  sessionsPageMax,
} from '#shared/core/base/limits/rest-api.ts'
import { membersMax } from '#shared/core/base/limits/telemetry.ts'
import { devicePhoneField } from '#shared/core/identity/phone-schemas.ts'
import { sentDeviceSchema } from '#shared/core/identity/sent-device-schema.ts'
import {
  installLevels,
  installProviders,
  installVerdicts,
} from '#shared/core/installs/registration.ts'
import { parseListedId } from '#shared/core/lists/listed-ids.ts'
import {
  formatNetwork,
  isNoNarrowerThanStored,
  parseNetwork,
} from '#shared/core/network/address.ts'
import { toConnectionField } from '#shared/core/network/connection-answer.ts'
import { emailSchema } from '#shared/core/operators/email-schema.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { warningCodes } from '#shared/core/telemetry/signal-warnings.ts'
import { idSchema, sentIdSchema, sentTelemetrySchema } from '#shared/core/telemetry/submission.ts'
import { verdictRequestSchema } from '#shared/core/verdicts/verdict-request.ts'
import {
  actionSchema,
  clientFields,
  dispositionSchema,
  flagSchema,
  instantSchema,
  riskPercentileSchema,
  riskSchema,
} from './field-schemas.ts'
import { problemCodes } from './problem.ts'

export const sessionSchema = z
  .object({
    session_id: z.string(),
    rasp_action: z.enum(actions).meta({ description: 'That of the session’s highest score.' }),
    started_at: instantSchema,
    last_seen_at: instantSchema,
    rasp_score: riskSchema.meta({ description: 'The session’s highest score.' }),
    flags: z.array(flagSchema).meta({ description: 'Those of its highest `rasp_score`.' }),
    risk_score: riskSchema.meta({
      description: 'The highest risk score of its events, by which alerts are raised.',
    }),
    action: actionSchema.meta({ description: 'The action of its highest risk score.' }),
    risk_flags: z.array(flagSchema).meta({ description: 'Those of its highest risk score.' }),
    ...clientFields,
    connection: toConnectionField('The network that its latest measured event came from.'),
  })
  .meta({ id: 'Session' })

const deviceInstallSchema = z
  .object({
    provider: z.enum(installProviders).meta({
      description: 'The evidence that the app sent: `none` registers without any.',
    }),
    verdict: z.enum(installVerdicts).meta({
      description: 'Whether the evidence held when the app registered; `none` without evidence.',
    }),
    level: z.enum(installLevels).meta({
      description: 'Where the key lies that signs for it, best first; `none` without a key.',
    }),
    registered_at: instantSchema,
    expires_at: instantSchema.meta({
      description: 'When its install token ends. The app registers again before.',
    }),
  })
  .meta({ id: 'DeviceInstall' })

export const deviceSchema = z
  .object({
    device_id: z.string(),
    first_seen_at: instantSchema,
    last_seen_at: instantSchema,
    peak_rasp_score: riskSchema.meta({ description: 'The highest score of all its sessions.' }),
    risk_score: riskSchema.meta({ description: 'The highest risk score of all its sessions.' }),
    risk_percentile: riskPercentileSchema,
    ...clientFields,
    connection: toConnectionField('The network that its latest measured event came from.'),
    install: deviceInstallSchema.nullable().meta({
      description: 'The latest registration of the app; null when it has never registered.',
    }),
    phone: devicePhoneField,
    users_seen_on: z.array(z.string()).meta({
      description: 'Every user or account the device has been associated with, sorted.',
    }),
    users_cursor: z.string().nullable().meta({
      description: 'Pass it as `users_cursor` for further users; null when there are none.',
    }),
    sessions: z.array(sessionSchema).meta({ description: 'Most recent first.' }),
    sessions_total: z.int().min(0).meta({ description: 'How many sessions there are in all.' }),
    sessions_cursor: z.string().nullable().meta({
      description: 'Pass it as `sessions_cursor` for older sessions; null when there are none.',
    }),
  })
  .meta({ id: 'Device' })

const problemCodeSchema = z.enum(Object.keys(problemCodes) as [keyof typeof problemCodes])

export const problemSchema = z
  .object({
    type: z.string().meta({ examples: ['urn:device-intelligence:problem:invalid_query'] }),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    code: problemCodeSchema.meta({ description: 'Stable: programs should use this field.' }),
    request_id: z.string().meta({ description: 'The same as the `X-Request-Id` header.' }),
    errors: z
      .array(
        z.object({
          path: z.string().meta({ description: 'A parameter, or a JSON path into the body.' }),
          message: z.string(),
        }),
      )
      .optional()
      .meta({ description: 'Every error of a request that was refused with 400.' }),
    present: z
      .object({ disposition: dispositionSchema, assignee: z.string().nullable() })
      .optional()
      .meta({ description: 'Of a 409 `alert_changed`: what the alert is now.' }),
    present_case: z
      .object({
        version: z.int(),
        state: z.string(),
        alerts: z.int(),
        open_alerts: z.int(),
        judged_by: z.string().nullable(),
      })
      .optional()
      .meta({ description: 'Of a 409 `case_changed`: what the case is now.' }),
    signature_form: z
      .string()
      .optional()
      .meta({
        description: 'Of a 401 of ingest: the form of `X-Service-Signature`.',
        examples: ['hex; base64 of 32 bytes expected'],
      }),
    received: z
      .object({
        bytes: z.int(),
        sha256: z.string().meta({ description: 'As hex. Compare it with what you signed.' }),
      })
      .optional()
      .meta({ description: 'Of a 401 of ingest: the body as it came.' }),
    accepted: z.int().optional().meta({ description: 'Of a 503 of a batch: stored events.' }),
    invalid: z.int().optional().meta({ description: 'Of a 503 of a batch: refused events.' }),
    unavailable: z
      .int()
      .optional()
      .meta({ description: 'Of a 503 of a batch: events that are not certainly stored.' }),
    events: z
      .array(z.looseObject({ status: z.enum(['accepted', 'invalid', 'unavailable']) }))
      .optional()
      .meta({
        description:
          'Of a 503 of a batch of which some events are stored: each as in `BatchResult`, or with ' +
          'the status `unavailable` and its `event_id`.',
      }),
  })
  .meta({ description: 'An error, as RFC 9457 has it.' })
  .meta({ id: 'Problem' })

/** A page size as text. A larger value becomes the largest, and the response's `limit` shows it. */
export const pageSize = (largest: number, standard: number, description: string) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number from 1')
    .transform((text) => Math.min(Number(text), largest))
    .refine((size) => size >= 1, 'must be a whole number from 1')
    .default(standard)
    // For clients it is a number.
    .meta({ type: 'integer', minimum: 1, default: standard, pattern: undefined, description })

/** An ISO-8601 time as text; the parsed value is in milliseconds. */
export const instantParameter = (description: string) =>
  z
    .string()
    .transform((text, context) => {
      const ms = parseInstant(text)
      if (ms !== null) return ms
      const message = 'must be an ISO-8601 date, or date and time with its offset'
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
    .optional()
    .meta({
      description,
      examples: ['2026-03-01T00:00:00Z', '2026-03-01T09:30:00.123+01:00', '2026-03-01'],
    })

export const cursorParameter = (description: string) =>
  z.string().min(1).max(cursorCharactersMax).optional().meta({ description })

/** Some of the words, separated by commas, each once. */
export const someOf = <const Words extends readonly [string, ...string[]]>(
  words: Words,
  description: string,
) => {
  const list = z
    .array(z.enum(words, `must be one of ${words.join(', ')}, or several with commas`))
    .refine((chosen) => new Set(chosen).size === chosen.length, 'must name each value once')
  return (
    z
      .string()
      // One more than there are words has a repeated or unknown one: the rest need not be read.
      .transform((text) => text.split(',', words.length + 1))
      .pipe(list)
      .optional()
      .meta({
        description: `${description} Several are separated by commas.`,
        pattern: toListPattern(words),
        examples: [words[0], words.slice(0, 2).join(',')],
      })
  )
}

/** Beyond so many words the pattern only says what a word is. */
const patternWordsMax = 8

function toListPattern(words: readonly string[]): string {
  const word = words.length > patternWordsMax ? '[\\w.]+' : `(?:${words.join('|')})`
  return `^${word}(?:,${word})*$`
}

export const scoreParameter = (description: string) =>
  z
    .string()
    .regex(/^(?:\d{1,2}|100)$/, 'must be a whole number from 0 to 100')
    .transform(Number)
    .optional()
    .meta({ type: 'integer', minimum: 0, maximum: 100, pattern: undefined, description })

/** A country, or an operator's number, in the spellings that lists take. */
const listedParameter = (kind: 'asn' | 'country', description: string, examples: string[]) =>
  z
    .string()
    .transform((text, context) => {
      const found = parseListedId(kind, text)
      if ('id' in found) return found.id
      context.addIssue({ code: 'custom', message: found.fault })
      return z.NEVER
    })
    .optional()
    .meta({ description, examples })

export const countryParameter = (description: string) =>
  listedParameter('country', description, ['DE'])

export const asnParameter = (description: string) =>
  listedParameter('asn', description, ['64500', 'AS64500']).transform((id) =>
    id === undefined ? undefined : Number(id),
  )

/** A network as text; the parsed value has the spelling of those that are stored. */
export const networkParameter = (description: string) =>
  z
    .string()
    .max(networkCharactersMax, networkMessage)
    .transform((text, context) => {
      const network = parseNetwork(text)
      if (network !== null && isNoNarrowerThanStored(network)) return formatNetwork(network)
      context.addIssue({ code: 'custom', message: networkMessage })
      return z.NEVER
    })
    .optional()
    .meta({ description, examples: ['203.0.113.0/24', '2001:db8::/32'] })
/** The longest IPv6 address with IPv4 in it has 45 characters, its prefix four. */
const networkCharactersMax = 49
const networkMessage =
  'must be a network in CIDR notation, at most /24 of IPv4 or /48 of IPv6, such as 203.0.113.0/24'

/** The parameter of a filter. */
function toFilterParameter({ takes, description }: FilterEntry) {
  if (typeof takes !== 'string') return someOf(takes, description)
  if (takes === 'score') return scoreParameter(description)
  if (takes === 'instant') return instantParameter(description)
  if (takes === 'country') return countryParameter(description)
  if (takes === 'asn') return asnParameter(description)
  if (takes === 'network') return networkParameter(description)
  if (takes === 'id') return idSchema.optional().meta({ description })
  return z
    .union([z.literal(unassigned), emailSchema])
    .optional()
    .meta({ description })
}

type FilterParameters<Name extends FilterName> = {
  [Key in Name]: z.ZodOptional<z.ZodType<NonNullable<AlertFilter[Key]>, string>>
}

/** The parameters of some filters. Parsed, they are an `AlertFilter`. */
const toFilterParameters = <Name extends FilterName>(names: readonly Name[]) =>
  Object.fromEntries(
    names.map((name) => [name, toFilterParameter(alertFilters[name])]),
  ) as unknown as FilterParameters<Name>

const isForOperators = (name: FilterName): name is OperatorsFilter =>
  'operatorsOnly' in alertFilters[name]
const tenantFilters = filterNames.filter(
  (name): name is Exclude<FilterName, OperatorsFilter> => !isForOperators(name),
)

const seqParameter = (description: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number from 0, of at most 15 digits')
    .transform(Number)
    .optional()
    .meta({ type: 'integer', minimum: 0, pattern: undefined, description })

const alertsQueryFields = {
  ...toFilterParameters(tenantFilters),
  limit: pageSize(
    alertsPageMax,
    alertsPageDefault,
    `Alerts per page. A value above ${alertsPageMax} becomes ${alertsPageMax}, and the response's \`limit\` shows it.`,
  ),
  cursor: cursorParameter(
    '`next_cursor` of the previous page, with the same filters. The page starts after its last alert, whatever was added or changed since.',
  ),
}

/** The query of `GET /v1/di/alerts`. Instants become milliseconds. */
export const alertsQuerySchema = z
  .strictObject({
    ...alertsQueryFields,
    after_seq: seqParameter(
      'Lists ascending by `seq`, from the first alert after this one on; 0 begins with the first of all. Pass the `seq` of the last alert that you have: no alert is skipped and none comes twice, since an alert is visible before one with a higher `seq` is. Filters apply, `total` counts as without it, `next_cursor` is null, and `cursor` is refused beside it.',
    ),
  })
  .refine(({ after_seq, cursor }) => after_seq === undefined || cursor === undefined, {
    path: ['cursor'],
    message: 'cannot be combined with after_seq, which says where the page begins',
  })

/** The query of the admin API's list: also the filters of operators. */
export const adminAlertsQuerySchema = z.strictObject({
  ...alertsQueryFields,
  ...toFilterParameters(filterNames.filter(isForOperators)),
})

/** The path of `GET /v1/di/devices/{device_id}`. */
export const devicePathSchema = z.object({
  device_id: idSchema.meta({
    description:
      'A device id from any telemetry or alert, percent-encoded once. A slash may be `%2F` or plain, since proxies may decode it.',
  }),
})

/** The query of `GET /v1/di/devices/{device_id}`. */
export const deviceQuerySchema = z.strictObject({
  sessions_limit: pageSize(
    sessionsPageMax,
    sessionsPageMax,
    `Sessions in the response, at most ${sessionsPageMax}.`,
  ),
  sessions_cursor: cursorParameter('`sessions_cursor` of the previous response.'),
  users_cursor: cursorParameter('`users_cursor` of the previous response.'),
})
export type DeviceQuery = z.output<typeof deviceQuerySchema>

/** `null` and an empty text are absent. */
const optionalId = z
  .union([sentIdSchema, z.literal(''), z.null()])
  .optional()
  .meta({ description: 'Collected in `users_seen_on`.' })

/** The body of the ingest call, which the ingest process serves. Here it is documented only. */
export const submissionSchema = sentTelemetrySchema
  .extend({
    user_id: optionalId,
    account_id: optionalId,
    verdict: verdictRequestSchema.nullish(),
    device: sentDeviceSchema.nullish(),
  })
  .meta({
    description: `Telemetry, at most ${bodyBytesMax} bytes. Unknown fields are kept as sent. At most ${membersMax} object members in all. Numbers that a double cannot hold are refused in known signals only.`,
  })
  .meta({ id: 'Submission' })

export const ingestResultSchema = z
  .object({
    status: z.literal('accepted'),
    rasp_score: riskSchema.meta({ description: 'Recomputed on the server.' }),
    rasp_action: actionSchema,
    event_id: z.string().meta({ description: 'The same for the same bytes, however often sent.' }),
    flags: z.array(flagSchema).optional().meta({
      description: 'Left out for tenants whose clients are told the score and the action alone.',
    }),
    verdict_token: z
      .string()
      .optional()
      .meta({
        description:
          'Where the submission asked for a `verdict`: a JWT (ES256, five minutes) for your backend. ' +
          'Without it nothing is wrong with the event; send the same bytes again to get one.',
      }),
    warnings: z
      .array(
        z.object({
          path: z.string().meta({ examples: ['$.signals.root.su_binay'] }),
          code: z.enum(warningCodes),
          message: z.string(),
          nearest: z
            .string()
            .nullable()
            .meta({
              description: 'The nearest known name or value, if there is one.',
              examples: ['root.su_binary'],
            }),
        }),
      )
      .optional()
      .meta({
        description:
          'Only in a sandbox tenant: what is accepted and probably a mistake, in the whole body. ' +
          'At most 16.',
      }),
  })
  .meta({ id: 'IngestResult' })

/** The schemas of events in the REST API: one, and lists of them. */
import { z } from 'zod'
import { eventsPageDefault, eventsPageMax } from '#shared/core/base/limits/rest-api.ts'
import { metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { devicePhoneField } from '#shared/core/identity/phone-schemas.ts'
import { toConnectionField } from '#shared/core/network/connection-answer.ts'
import { networkKinds } from '#shared/core/network/network-list.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { categories, serverCategories } from '#shared/core/signals/signal-definition.ts'
import type { EventFilter } from '#shared/core/telemetry/event-filters.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import {
  asnParameter,
  countryParameter,
  cursorParameter,
  instantParameter,
  networkParameter,
  pageSize,
  scoreParameter,
  someOf,
} from './api-schemas.ts'
import {
  actionSchema,
  flagSchema,
  instantSchema,
  reasonObjectSchema,
  riskSchema,
} from './field-schemas.ts'

/** The path of `GET /v1/di/events/{event_id}`. */
export const eventPathSchema = z.object({
  event_id: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be an event id')
    .meta({ description: 'The `event_id` of an ingest result or an alert.' }),
})

const whereSent = 'Present where the telemetry had one.'
const optionalText = z.string().optional().meta({ description: whereSent })

export const eventSchema = z
  .object({
    event_id: z.string(),
    tenant_id: z.string(),
    device_id: z.string(),
    session_id: z.string(),
    user_id: optionalText,
    account_id: optionalText,
    sdk_meta: z.object({
      sdk_version: z.string(),
      platform: z.string(),
      batch_type: z.string(),
    }),
    app_version: optionalText,
    os_version: optionalText,
    device_brand: optionalText,
    device_model: optionalText,
    connection: toConnectionField('The network that the event came from.'),
    phone: devicePhoneField,
    received_at: instantSchema,
    occurred_at: instantSchema.optional().meta({
      description: 'By the client’s clock, which is never trusted; where it reads as a time.',
    }),
    rasp_score: riskSchema.meta({
      description: 'Of the signals alone, as the ingest call answered it.',
    }),
    rasp_action: actionSchema.meta({ description: 'As the ingest call answered it.' }),
    risk_score: riskSchema.meta({
      description:
        '`rasp_score` raised by what the service knows of the device, the user and the session, or replaced by a list. Alerts are raised by it. Until the event is decided, usually for less than a second, it is what the edge made of it.',
    }),
    action: actionSchema.meta({ description: 'What was decided: the action of `risk_score`.' }),
    flags: z.array(flagSchema).meta({ description: 'The codes of `reasons`.' }),
    reasons: z.array(reasonObjectSchema).meta({
      description: 'Why it was decided so, as in an alert: the weights add up to `risk_score`.',
    }),
    policy_version: z
      .int()
      .min(1)
      .meta({ description: 'The version of the tenant’s policy that made the score.' }),
  })
  .meta({ description: 'An accepted event and what was decided.' })
  .meta({ id: 'Event' })

export const eventPageSchema = z
  .object({
    data: z.array(eventSchema).meta({ description: 'Newest first.' }),
    limit: z.int().meta({ description: 'The page size in effect.' }),
    next_cursor: z.string().nullable().meta({
      description:
        'Pass it as `cursor` for older events; null at the end. A page may have fewer events than `limit`, even none, and not be the last: a search that takes long ends early, and the cursor continues it.',
    }),
  })
  .meta({ id: 'EventPage' })

const allCategories = [...categories, ...serverCategories]
const signalPattern = new RegExp(`^(?:${allCategories.join('|')})\\..{1,64}$`, 'u')
const text = (description: string) =>
  z.string().min(1).max(metaCharactersMax).optional().meta({ description })

/** The filters of the event list, by parameter. Parsed, they are an `EventFilter`. */
export const eventFilterFields = {
  from: instantParameter(
    'Events received at this instant or later. ISO-8601 with an offset; a date is its midnight in UTC.',
  ),
  to: instantParameter('Events received before this instant.'),
  device_id: idSchema.optional().meta({ description: 'Events of this device.' }),
  user_id: idSchema.optional().meta({ description: 'Events of this user or account.' }),
  session_id: idSchema.optional().meta({ description: 'Events of this session.' }),
  flag: someOf(flagCodes, 'Events with this flag among the reasons of the decision.'),
  action: someOf(actions, 'Events with this decided `action`.'),
  signal: z
    .string()
    .regex(signalPattern, `must be a category (${allCategories.join(', ')}), a dot and a signal`)
    .optional()
    .meta({
      description:
        'Events in which the client or the service detected this boolean signal, or that have a value of this signal of another type.',
      examples: ['root.su_binary'],
    }),
  signal_value: text(
    'Events in which `signal` has this value, such as `false`, `high` or `3`. It needs `signal`.',
  ),
  platform: text('Events of this platform; spellings such as `Android 14` are `android`.'),
  app_version: text('Events of this version of the app.'),
  sdk_version: text('Events of this version of the SDK.'),
  country: countryParameter(
    'Events that came from this country, ISO 3166-1 alpha-2. It is the country of the address, which a VPN can choose.',
  ),
  asn: asnParameter(
    'Events that came from the networks of this operator: the number of the autonomous system, as `64500` or `AS64500`.',
  ),
  network: networkParameter(
    'Events that came from this network or one within it, in CIDR notation. Of an address the /24 of IPv4 and the /48 of IPv6 is kept, so a longer prefix is refused.',
  ),
  network_kind: someOf(networkKinds, 'Events that came from a network of this kind.'),
  min_score: scoreParameter('Events with this `risk_score` or more.'),
  max_score: scoreParameter('Events with this `risk_score` or less.'),
} satisfies { [Name in keyof Required<EventFilter>]: z.ZodType<EventFilter[Name]> }

/** A query with these filters, of which a value is that of a signal. */
export const withSignal = <Shape extends typeof eventFilterFields>(shape: Shape) =>
  z.strictObject(shape).refine(
    (query) => {
      const { signal, signal_value: value } = query as EventFilter
      return value === undefined || signal !== undefined
    },
    { path: ['signal_value'], message: 'needs signal, whose value it is' },
  )

/** The query of `GET /v1/di/events`. Instants become milliseconds. */
export const eventsQuerySchema = withSignal({
  ...eventFilterFields,
  limit: pageSize(
    eventsPageMax,
    eventsPageDefault,
    `Events per page. A value above ${eventsPageMax} becomes ${eventsPageMax}, and the response's \`limit\` shows it.`,
  ),
  cursor: cursorParameter(
    '`next_cursor` of the previous page, with the same filters. The page starts after its last event, whatever was added since.',
  ),
})

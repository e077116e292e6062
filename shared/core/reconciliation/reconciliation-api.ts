/**
 * Reconciliation in the REST API and the admin API: the query and the response.
 */
import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { instantParameter } from '#shared/core/http/api-schemas.ts'
import { instantSchema } from '#shared/core/http/field-schemas.ts'
import { toInvalidQuery } from '#shared/core/http/query-string.ts'
import {
  type ReconciliationDifference,
  type ReconciliationHour,
  reconciliationHourMs,
  reconciliationStages,
} from './reconciliation.ts'

/** Hours of one answer: 31 days. */
const reconciliationHoursMax = 31 * 24
/** Hours of a response when the query has no `from`. */
const reconciliationHoursDefault = 24

/** The query of `GET /v1/di/ledger`. Instants become milliseconds. */
export const reconciliationQuerySchema = z.strictObject({
  from: instantParameter(
    `Hours that begin at this instant or later. ISO-8601 with an offset; a date is its midnight in UTC. By default ${reconciliationHoursDefault} hours before \`to\`, at most ${reconciliationHoursMax / 24} days before it.`,
  ),
  to: instantParameter('Hours that begin before this instant. By default now.'),
})

const count = (description: string) => z.int().min(0).meta({ description })

const differenceSchema = z
  .object({
    stage: z.enum(reconciliationStages),
    kind: z.enum(['missing', 'unexplained']).meta({
      description: '`missing`: expected but absent. `unexplained`: present but not expected.',
    }),
    count: z.int().min(1),
    ids: z.array(z.string()).meta({
      description:
        'Some ids: events of `rows`, alerts of `alerts` and `deliveries`. Empty where only the number is known.',
    }),
  })
  .meta({ id: 'LedgerDifference' })

const hourSchema = z
  .object({
    hour: instantSchema,
    accepted: count(
      'Events that edges report as answered with a 200, repeats of the same bytes included. Less than `stored` where an edge was killed: its counts of the last seconds are lost.',
    ),
    stored: count('Events in the messages of the stream, repeats included.'),
    repeats: count('Of those, the same bytes again: they have no row of their own.'),
    refused: count('Of those, events that cannot be stored and are dead letters.'),
    erased: count('Of those, removed by the erasure of a device or a user.'),
    rows: count(
      'Events in the history: `stored` without `repeats`, `refused`, `erased` and `in_flight`.',
    ),
    decided: count('Events that were decided, repeats included.'),
    alerts_due: count('Alerts that events of the hour should raise first.'),
    alerts: count('Of those, the alerts that exist.'),
    deliveries: count('Of those alerts, the ones with a delivery.'),
    attempted: count('Of those deliveries, the ones with an attempt.'),
    delivered: count('Of those deliveries, the ones that succeeded.'),
    in_flight: count('Of `stored`, events that were not decided by `as_of`: in no other number.'),
    expired: z.boolean().meta({
      description: 'Retention has removed the events of this hour, so it is not compared.',
    }),
    differences: z.array(differenceSchema).meta({ description: 'Empty when all counts agree.' }),
  })
  .meta({ description: 'An hour by when the edges received the events, in UTC.' })
  .meta({ id: 'LedgerHour' })

export const reconciliationSchema = z
  .object({
    from: instantSchema,
    to: instantSchema,
    as_of: instantSchema.nullable().meta({
      description: 'Everything decided by then is compared; null before the first comparison.',
    }),
    agrees: z.boolean().meta({ description: 'Whether no hour has a difference.' }),
    data: z
      .array(hourSchema)
      .meta({ description: 'Latest first; without hours that have no events.' }),
  })
  .meta({ id: 'Ledger' })

export type ReconciliationView = z.infer<typeof reconciliationSchema>

/**
 * Resolves a query to the hours that begin within its span: by default up to now, and one day long.
 * @throws Problem invalid_query when the span is too long
 */
export function toReconciliationSpan(
  query: { from?: number | undefined; to?: number | undefined },
  nowMs: number,
): { fromMs: number; toMs: number } {
  const toMs = query.to ?? Math.floor(nowMs / reconciliationHourMs + 1) * reconciliationHourMs
  const fromMs = query.from ?? toMs - reconciliationHoursDefault * reconciliationHourMs
  if (toMs - fromMs <= reconciliationHoursMax * reconciliationHourMs) return { fromMs, toMs }
  const message = `must be at most ${reconciliationHoursMax / 24} days before \`to\``
  throw toInvalidQuery([{ path: 'from', message }])
}

/** The response for the hours of a span. */
export function toReconciliationView(
  reconciliation: {
    hours: readonly (ReconciliationHour & {
      differences: readonly (ReconciliationDifference & { ids: string[] })[]
    })[]
    asOfMs: number
  },
  { fromMs, toMs }: { fromMs: number; toMs: number },
): ReconciliationView {
  return {
    from: toIso(fromMs),
    to: toIso(toMs),
    as_of: reconciliation.asOfMs === 0 ? null : toIso(reconciliation.asOfMs),
    agrees: reconciliation.hours.every(({ differences }) => differences.length === 0),
    data: reconciliation.hours.map((hour) => ({
      hour: toIso(hour.hourMs),
      accepted: hour.accepted,
      stored: hour.stored,
      repeats: hour.repeats,
      refused: hour.refused,
      erased: hour.erased,
      rows: hour.rows,
      decided: hour.decided,
      alerts_due: hour.alertsExpected,
      alerts: hour.alerts,
      deliveries: hour.deliveries,
      attempted: hour.attempted,
      delivered: hour.delivered,
      in_flight: hour.inFlight,
      expired: hour.expired,
      differences: [...hour.differences],
    })),
  }
}

/** Schemas of the overview of a tenant: a period beside the one before it. */
import { z } from 'zod'
import {
  overviewDaysMax,
  overviewMoverDevicesMin,
  overviewMoversMax,
} from '#shared/core/base/limits/analytics.ts'
import { instantParameter, someOf } from '#shared/core/http/api-schemas.ts'

export const overviewParts = ['telemetry', 'outcomes', 'reconciliation'] as const

export const overviewQuery = z.strictObject({
  from: instantParameter(
    `The beginning of the period. By default a day before \`to\`, at most ${overviewDaysMax} days.`,
  ),
  to: instantParameter('The end of the period. By default now.'),
  parts: someOf(
    overviewParts,
    'What to read of what may take time; the others are null. By default all.',
  ),
})

import { outcomeCounts, outcomesAsOf } from '../analytics/outcome-schemas.ts'

const pair = z.object({ now: z.int(), before: z.int() })
const perStep = z.array(z.int())
const line = z
  .object({ now: perStep, before: perStep })
  .describe('a number for each of `times`; `before` as far from the beginning of its period')

export const overviewSchema = z
  .object({
    from: z.string(),
    to: z.string(),
    before_from: z
      .string()
      .describe(
        'the period before ends at `from` and is as long; to the hour, where `from` is on the hour ' +
          'and the period a day or more',
      ),
    step_seconds: z.int(),
    times: z
      .array(z.string())
      .describe('the beginning of each step of the lines, in UTC; the last may not have ended'),
    telemetry: z
      .object({
        events: pair,
        devices: pair,
        sessions: pair,
        actions: z
          .object({ ALLOW: pair, REVIEW: pair, BLOCK: pair })
          .describe('events by what was decided'),
        connections: z
          .object({ measured: pair, anonymous: pair, hosting: pair, countries: pair })
          .describe(
            'events with a measured connection; those over a VPN, a proxy, a relay or Tor; those from a data centre; how many countries',
          ),
        top_flags: z.array(z.object({ flag: z.string(), events: pair, devices: pair })),
        sdk_versions: z.array(
          z.object({
            platform: z.string(),
            sdk_version: z.string(),
            events: pair,
            devices: pair,
          }),
        ),
        lines: z.object({ events: line, REVIEW: line, BLOCK: line }),
        movers: z
          .array(
            z.object({
              signal: z.string().describe('category.signal'),
              devices: pair,
              share: z.object({ now: z.number(), before: z.number() }),
            }),
          )
          .nullable()
          .describe(
            `signals whose share of the devices changed most between the periods, at most ${overviewMoversMax}; ` +
              `null where one of them has fewer than ${overviewMoverDevicesMin} devices`,
          ),
        has_events: z.boolean().describe('whether any event is kept, of any time'),
        last_event_at: z.string().nullable().describe('the latest stored event of both periods'),
      })
      .nullable()
      .describe('null when ClickHouse cannot answer, or it was not asked for'),
    outcomes: z
      .object({ as_of: outcomesAsOf, ...outcomeCounts })
      .nullable()
      .describe(
        'of sessions that began in the period, by labels and dispositions; null when ClickHouse ' +
          'cannot answer',
      ),
    alerts: z.object({
      raised: pair,
      REVIEW: pair,
      BLOCK: pair,
      open: z.int().describe('all alerts that are OPEN, of any time'),
      open_by_age: z
        .array(
          z.object({
            from: z.string().nullable().describe('raised at this instant or later'),
            to: z.string().nullable().describe('raised before this instant'),
            alerts: z.int(),
          }),
        )
        .describe('those alerts, youngest first: of the last hour, day, week, and older'),
      line,
    }),
    cases: z
      .object({
        overdue: z.int().describe('open, snoozed or not, and past their due time'),
        ages: z
          .array(z.object({ from: z.string().nullable(), to: z.string().nullable() }))
          .describe('when the first alert was raised: the last hour, day, week, and earlier'),
        queues: z.array(
          z.object({
            name: z.string(),
            query: z.record(z.string(), z.string()).describe('the filters of `GET …/cases`'),
            by_age: z.array(z.int()).describe('open and not snoozed cases of each of `ages`'),
            overdue: z.int(),
          }),
        ),
      })
      .describe('cases that are open, of any time, by age and queue: the first queue has all'),
    webhook: z.object({
      state: z.string(),
      off_reason: z.string().nullable(),
      failing_since: z.string().nullable(),
      last_failure: z.string().nullable(),
      deliveries: z
        .array(z.object({ state: z.string(), count: pair }))
        .describe('by state, of deliveries that were created in each period'),
    }),
    reconciliation: z
      .object({
        as_of: z.string().nullable(),
        lag_seconds: z
          .number()
          .nullable()
          .describe('how far behind now everything is stored and decided'),
        agrees: z.boolean(),
        accepted: z.int(),
        stored: z.int(),
        decided: z.int(),
        alerts: z.int(),
        delivered: z.int(),
        differences: z.int().describe('in how many hours and stages counts differ'),
      })
      .nullable()
      .describe('of the hours that begin in the period; null when it cannot be read'),
  })
  .describe('of each number `now` and `before`')

export type Overview = z.infer<typeof overviewSchema>

/** Schemas of the admin API: a tenant's fleet over time. */
import { z } from 'zod'
import {
  fleetDaysMax,
  fleetLinesMax,
  fleetPlatformsMax,
  fleetVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { instantParameter } from '#shared/core/http/api-schemas.ts'

export const fleetQuery = z.strictObject({
  from: instantParameter(
    `Events received at this instant or later. By default a day before \`to\`, at most ${fleetDaysMax} days.`,
  ),
  to: instantParameter('Events received before this instant. By default now.'),
})

const count = z.number().int()
const counts = { events: count, devices: count, sessions: count }
const perTime = z.array(count).describe('one number for each of `times`')

export const fleetSchema = z.object({
  from: z.string(),
  to: z.string(),
  step_seconds: count,
  times: z.array(z.string()).describe('the beginning of each step, in UTC'),
  totals: z.object({ ...counts, new_devices: count }),
  over_time: z.object({
    events: perTime,
    devices: perTime,
    sessions: perTime,
    new_devices: perTime.describe('devices that were seen for the first time'),
  }),
  platforms: z
    .array(z.object({ platform: z.string(), devices: perTime, events: perTime }))
    .describe(`by name, at most the ${fleetPlatformsMax} of most devices at one time`),
  versions: z
    .array(
      z.object({
        platform: z.string(),
        sdk_version: z.string(),
        ...counts,
        first_seen_at: z.string().describe('within the span'),
        last_seen_at: z.string(),
        devices_over_time: perTime
          .nullable()
          .describe(`of the ${fleetLinesMax} largest; null for the others`),
      }),
    )
    .describe(`most devices first, at most ${fleetVersionsMax}`),
  signals: z
    .array(
      z.object({
        signal: z.string().describe('category.signal'),
        devices: count,
        share: z.number().describe('of the devices of the span'),
        by_version: z
          .array(z.number().nullable())
          .describe('share of the devices of each of the largest `versions`, in their order'),
      }),
    )
    .describe('signals that were detected, on most devices first'),
})

export type FleetBody = z.infer<typeof fleetSchema>

/** Schemas of timelines in the admin API. */
import { z } from 'zod'
import {
  timelineAlertsMax,
  timelinePageDefault,
  timelinePageMax,
} from '#shared/core/base/limits/entities.ts'
import { timelineKinds } from '#shared/core/devices/timeline.ts'
import { timelineEntrySchema } from '#shared/core/devices/timeline-schema.ts'
import {
  cursorParameter,
  instantParameter,
  pageSize,
  someOf,
} from '#shared/core/http/api-schemas.ts'

export const timelineQuery = z.strictObject({
  kinds: someOf(timelineKinds, 'Only entries of these kinds.'),
  from: instantParameter('Only entries of this instant or later.'),
  to: instantParameter('Only entries before this instant.'),
  limit: pageSize(timelinePageMax, timelinePageDefault, `At most ${timelinePageMax} entries.`),
  cursor: cursorParameter('`next_cursor` of the previous page, with the same parameters.'),
})
export type TimelineQuery = z.output<typeof timelineQuery>

export const timelineSchema = z.object({
  data: z.array(timelineEntrySchema).describe('newest first'),
  limit: z.int(),
  next_cursor: z.string().nullable(),
  incomplete: z
    .array(
      z.object({
        kind: z.enum(timelineKinds),
        state: z
          .enum(['unavailable', 'partial'])
          .describe('unavailable: none of this kind could be read now'),
        detail: z.string(),
      }),
    )
    .describe(
      `kinds that are not here, or not all: a store does not answer, or there are more than are read. Work on alerts is of the newest ${timelineAlertsMax.toLocaleString('en')} of them.`,
    ),
})
export type TimelineAnswer = z.output<typeof timelineSchema>

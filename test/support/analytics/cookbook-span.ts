/** The time span of the history behind the cookbook's answers. */
import { dayMs } from '#shared/core/base/instants.ts'
import type { HistorySpan } from '../../../deploy/fleet/history/history-plan.ts'

export const historyDays = 90
export const historyStartMs = Date.UTC(2026, 6, 1)
/** Its end is that of its last day, exclusive. */
export const historyEndMs = historyStartMs + historyDays * dayMs

/** The fleet of the history. */
export const cookbookFleet = { seed: 9, devices: 1_000 }

/** No phone is used on its last day. */
export const cookbookSpan: HistorySpan = {
  startMs: historyStartMs,
  days: historyDays,
  visitDays: historyDays - 1,
}

/** Says which parts of a tenant's period the counts of whole days and hours have. */
import {
  type HourlyCoverage,
  type HourlyMarks,
  toHourlyCoverage,
} from '#shared/core/analytics/hourly-coverage.ts'
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createHourlyCountStore } from './hourly-count-store.ts'

export type HourlyReader = {
  /**
   * @param spans in the order of time; none overlaps another
   * @param stepMs of what is shown; a day is read only where no shorter step is
   */
  readCoverage: (
    tenantId: string,
    spans: readonly Span[],
    stepMs: number,
  ) => Promise<HourlyCoverage>
}

export function createHourlyReader(clickhouse: Clickhouse): HourlyReader {
  const { readMarks } = createHourlyCountStore(clickhouse)
  /** Marks that are being read: the queries of a page begin together and ask for the same. */
  const reading = new Map<string, Promise<HourlyMarks>>()
  const readShared = (tenantId: string, around: Span) => {
    const key = `${tenantId} ${around.fromMs} ${around.toMs}`
    const marks = reading.get(key) ?? readMarks(tenantId, around).finally(() => reading.delete(key))
    reading.set(key, marks)
    return marks
  }
  return {
    readCoverage: async (tenantId, spans, stepMs) => {
      // Steps of minutes are counted from events; such a period is short.
      if (stepMs % hourMs !== 0) return { days: [], hours: [], events: [...spans] }
      const around = {
        fromMs: Math.floor(spans[0]!.fromMs / hourMs) * hourMs,
        toMs: Math.ceil(spans.at(-1)!.toMs / hourMs) * hourMs,
      }
      const withDays = stepMs % dayMs === 0
      return toHourlyCoverage(spans, await readShared(tenantId, around), { withDays })
    },
  }
}

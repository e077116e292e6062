/** Says which parts of a tenant's period the counts of whole hours have. */
import { type HourlyCoverage, toHourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createHourlyCountStore } from './hourly-count-store.ts'

export type HourlyReader = {
  /** @param spans in the order of time; none overlaps another */
  readCoverage: (tenantId: string, spans: readonly Span[]) => Promise<HourlyCoverage>
}

export function createHourlyReader(clickhouse: Clickhouse): HourlyReader {
  const { readMarks } = createHourlyCountStore(clickhouse)
  return {
    readCoverage: async (tenantId, spans) => {
      const around = {
        fromMs: Math.floor(spans[0]!.fromMs / hourMs) * hourMs,
        toMs: Math.ceil(spans.at(-1)!.toMs / hourMs) * hourMs,
      }
      return toHourlyCoverage(spans, await readMarks(tenantId, around))
    },
  }
}

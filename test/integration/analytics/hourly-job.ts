// The job that counts hours and merges days, on the databases of the file that calls this: it waits
// until all is decided, counts each hour once, and again what was forgotten.
import { expect, test } from 'vitest'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { hourlyCountDays } from '#shared/core/base/limits/analytics.ts'
import {
  forgetHourlyCounts,
  hourlyCountLease,
} from '#shared/io/analytics/counts/hourly-count-store.ts'
import { createHourlyReader } from '#shared/io/analytics/counts/hourly-reader.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createHourlyCounts } from '../../../services/console/jobs/hourly-counts.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

export function testHourlyJob(
  getStores: () => { clickhouse: Clickhouse; postgres: Postgres },
): void {
  test('finished hours are counted once everything in them is decided, and again when forgotten', async () => {
    const { clickhouse, postgres } = getStores()
    const leases = { renewals: postgres, work: postgres }
    const metrics = createMetrics('console')
    const job = createHourlyCounts({
      leases,
      clickhouse,
      metrics,
      log: testLog,
      // So that two days are looked at, and not all that is kept.
      wallMs: () => Date.now() + (hourlyCountDays - 2) * dayMs,
    })
    const exposed = async () =>
      (await metrics.registry.metrics()).match(/^di_(hourly|daily)_counts.*$/gm)
    const command = (query: string) => clickhouse.command({ query })
    const hour = Math.floor(Date.now() / hourMs) * hourMs - 2 * hourMs
    const today = Math.floor(hour / dayMs) * dayMs
    const yesterday = { fromMs: today - dayMs, toMs: today }
    const times = [hour + 5, yesterday.fromMs + 5]
    const events = makeEvents(
      times.map((receivedAtMs) => ({ tenantId: 'jobbed', receivedAtMs })),
      7,
    )
    await createTelemetryStore(clickhouse).insertTelemetry(events)
    await command('truncate table sdk_baselines')
    const span = { fromMs: hour, toMs: hour + hourMs }
    const counted = async () => {
      const reader = createHourlyReader(clickhouse)
      const { days } = await reader.readCoverage('jobbed', [yesterday], dayMs)
      return { ...(await reader.readCoverage('jobbed', [span], hourMs)), days }
    }

    expect(await job.runRound()).toBe('waiting')
    expect(await counted()).toEqual({ days: [], hours: [], events: [span] })
    await command('truncate table reconciliation_watermarks')
    await command(`insert into reconciliation_watermarks (at, stream, stream_offset)
      select now64(3), 1, max(stream_offset) + 1 from telemetry`)
    expect(await withLease(leases, hourlyCountLease, () => job.runRound())).toBe('elsewhere')
    expect(await job.runRound()).toBe('counted')
    expect(await counted()).toEqual({ days: [yesterday], hours: [span], events: [] })
    const first = await exposed()
    expect(await job.runRound()).toBe('counted')
    expect(await exposed()).toEqual(first)
    expect(first!.some((line) => /scope="tenant".*\} 0$/.test(line))).toBe(true)

    await forgetHourlyCounts(clickhouse, 'jobbed')
    expect(await counted()).toEqual({ days: [], hours: [], events: [span] })
    expect(await job.runRound()).toBe('counted')
    expect(await counted()).toEqual({ days: [yesterday], hours: [span], events: [] })
    expect((await exposed())!.some((line) => /scope="tenant".*\} [1-9]/.test(line))).toBe(true)
  })
}

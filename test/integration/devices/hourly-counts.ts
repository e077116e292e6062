// Counts of whole hours against events on the engine of the file that calls this: whatever is
// counted, late, repeated or forgotten, a page has the numbers that its events have.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { createDailyCountStore } from '#shared/io/analytics/counts/daily-count-store.ts'
import {
  createHourlyCountStore,
  forgetHourlyCounts,
} from '#shared/io/analytics/counts/hourly-count-store.ts'
import { createHourlyReader } from '#shared/io/analytics/counts/hourly-reader.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { seed } from '../../support/process/seed.ts'
import { type EventFacts, makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { anyConnection } from '../../support/telemetry/connections.ts'

const tenantId = 'hourly'
const nowHour = Math.floor(Date.now() / hourMs) * hourMs
const hours = 60

const anyEvent: fc.Arbitrary<EventFacts> = fc.record(
  {
    tenantId: fc.constantFrom(tenantId, 'hourly-other'),
    deviceId: fc.integer({ min: 1, max: 12 }).map((n) => `hd-${n}`),
    sessionId: fc.integer({ min: 1, max: 9 }).map((n) => `hs-${n}`),
    receivedAtMs: fc.integer({ min: 1, max: hours * hourMs }).map((ms) => nowHour - ms),
    signals: fc.constantFrom(...Object.values(signalsOf)),
    connection: anyConnection,
    nonce: fc.integer(),
  },
  { requiredKeys: ['tenantId', 'deviceId', 'sessionId', 'receivedAtMs', 'signals', 'nonce'] },
)

export function describeHourlyCounts(getClickhouse: () => Clickhouse): void {
  let clickhouse: Clickhouse
  let events: AcceptedEvent[]
  const insert = (some: readonly AcceptedEvent[]) =>
    createTelemetryStore(clickhouse).insertTelemetry([...some])
  const command = (query: string) => clickhouse.command({ query })
  /** As if a minute had passed since the last insert. */
  const settle = () => command('truncate table sdk_baselines')

  beforeAll(async () => {
    clickhouse = getClickhouse()
    events = makeEvents(fc.sample(anyEvent, { seed, numRuns: 250 }))
    await insert(events)
  })

  /** Both pages of a period; `counted` and `days` are how many hours and days were read as counts. */
  const readPages = async (fromMs: number, toMs: number, stepMs: number = hourMs) => {
    const overview = createOverviewStore(clickhouse)
    const fleet = createFleetStore(clickhouse)
    const span = { tenantId, beforeMs: 2 * fromMs - toMs, fromMs, toMs }
    const steps = { tenantId, fromMs, toMs, stepSeconds: stepMs / 1_000 }
    const reader = createHourlyReader(clickhouse)
    const coverage = await reader.readCoverage(tenantId, [{ fromMs, toMs }], stepMs)
    const toHours = (parts: readonly Span[]) =>
      parts.reduce((sum, one) => sum + (one.toMs - one.fromMs) / hourMs, 0)
    const counts = await fleet.readCounts(steps)
    const versions = counts.versions.slice(0, 2)
    return {
      counted: toHours(coverage.hours),
      days: toHours(coverage.days) / 24,
      pages: [
        await overview.readCounts(span, { versionsMax: 20, stepMs }),
        await overview.listSignals(span),
        await overview.listFlags(span, 20),
        counts,
        await fleet.listSignals({ ...steps, versions, signalsMax: 50 }),
      ],
    }
  }
  const spans: [fromMs: number, toMs: number][] = [
    [nowHour - 24 * hourMs, nowHour],
    [nowHour - 25.3 * hourMs, nowHour - 2.7 * hourMs],
    [nowHour - 2 * hourMs + 5, nowHour - hourMs + 7],
  ]
  const readAll = () => Promise.all(spans.map(([from, to]) => readPages(from, to)))

  describe('hours that are counted', () => {
    it('have the numbers of their events, and those of events that come later', async () => {
      const store = createHourlyCountStore(clickhouse)
      const plain = await readAll()
      expect(plain.map(({ counted }) => counted)).toEqual([0, 0, 0])
      const model = events.filter(
        ({ tenant_id: tenant, received_at: ms }) => tenant === tenantId && ms >= spans[0]![0],
      )
      expect(plain[0]!.pages[3]).toMatchObject({ totals: { events: model.length } })
      const all = { fromMs: nowHour - (hours + 20) * hourMs, toMs: nowHour }
      await store.count(null, all)
      // Rows that were inserted just now: the hours are not trusted yet.
      expect((await readAll())[0]!.counted).toBeLessThan(24)
      await settle()
      const counted = await readAll()
      expect(counted.map((one) => one.counted)).toEqual([24, 22, 0])
      expect(counted.map(({ pages }) => pages)).toEqual(plain.map(({ pages }) => pages))

      const late = { ...events[0]!, event_id: 'evt_late', received_at: nowHour - 3.5 * hourMs }
      await insert([{ ...late, tenant_id: tenantId }])
      const [after] = await readAll()
      expect(after!.counted).toBe(23)
      expect(after!.pages[3]).toMatchObject({ totals: { events: model.length + 1 } })
    })

    it('are merged to days, which an hour that is counted later takes out of force', async () => {
      const store = createHourlyCountStore(clickhouse)
      const daily = createDailyCountStore(clickhouse)
      // With a day whose events came a while ago, and the ends of its neighbours.
      const day = Math.floor((nowHour - 28 * hourMs) / dayMs) * dayMs
      const read = () => readPages(day - 1.5 * hourMs, day + dayMs + 0.7 * hourMs, dayMs)
      const plain = await read()
      await daily.merge(null, day)
      const merged = await read()
      expect([plain.days, merged.days]).toEqual([0, 1])
      expect(merged.pages).toEqual(plain.pages)
      // Merging again changes nothing; only one merging is in force.
      await daily.merge(null, day)
      expect(await read()).toEqual(merged)

      const late = { tenantId, deviceId: 'hd-late', receivedAtMs: day + 5.5 * hourMs }
      await insert(makeEvents([late], 1_000))
      const withLate = await read()
      expect([withLate.days, withLate.counted]).toEqual([0, 24])
      const eventsOf = ({ pages }: { pages: unknown[] }) =>
        (pages[3] as { totals: { events: number } }).totals.events
      expect(eventsOf(withLate)).toBe(eventsOf(plain) + 1)
      await settle()
      await store.count(tenantId, { fromMs: day + 5 * hourMs, toMs: day + 6 * hourMs })
      const counted = await read()
      expect(counted.days).toBe(0)
      expect(counted.pages).toEqual(withLate.pages)
      expect(await daily.listStale(nowHour - 90 * dayMs)).toEqual([{ tenantId, days: [day] }])
      await daily.removeEarlier(tenantId, day, await daily.merge(tenantId, day))
      expect(await daily.listStale(nowHour - 90 * dayMs)).toEqual([])
      const again = await read()
      expect(again.days).toBe(1)
      expect(again.pages).toEqual(withLate.pages)
    })

    it('do not hold once they are forgotten, and are counted again', async () => {
      const store = createHourlyCountStore(clickhouse)
      await forgetHourlyCounts(clickhouse, tenantId)
      const left = await clickhouse.query({
        query: `select countIf(tenant_id = '${tenantId}'), count() > 0 from hourly_counts union all
          select countIf(tenant_id = '${tenantId}'), count() > 0 from daily_counts`,
        format: 'JSONCompactEachRow',
      })
      expect(await left.json()).toEqual([
        [0, 1],
        [0, 1],
      ])
      const plain = await readAll()
      expect(plain.map(({ counted }) => counted)).toEqual([0, 0, 0])
      const span = { fromMs: nowHour - 26 * hourMs, toMs: nowHour }
      await store.count(tenantId, span)
      await settle()
      const counted = await readAll()
      expect(counted[0]!.counted).toBe(24)
      expect(counted.map(({ pages }) => pages)).toEqual(plain.map(({ pages }) => pages))
    })
  })
}

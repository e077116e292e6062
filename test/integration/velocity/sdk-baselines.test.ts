// Baselines of SDK versions, on a real ClickHouse: counted by the insert of the telemetry itself,
// unchanged by repeated or later inserts, and separate for each tenant and version.
import { describe, expect, it } from 'vitest'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import {
  findMissingCategories,
  findSignalsMissing,
  noBaseline,
  type SdkBaseline,
  toBaselineWindow,
  toFilledCategories,
} from '#shared/core/velocity/signals-missing.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import {
  createSdkBaselineStore,
  type SdkBaselineQuery,
} from '#shared/io/velocity/sdk-baseline-store.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'

const clickhouse = await useClickhouse()

// Baselines are kept for eight days, so their tests use the current time.
const hourMs = 3_600_000
const nowMs = Math.floor(Date.now() / hourMs) * hourMs + 20 * 60_000
const { fromMs, toMs } = toBaselineWindow(nowMs)

const full = Object.fromEntries(
  categories.map((name) => [name, { measured: false }]),
) as unknown as Record<Category, Record<string, unknown>>
const signalsWithout = (...names: Category[]) => ({
  ...full,
  ...Object.fromEntries(names.map((name) => [name, { measured: null }])),
})

type Sent = EventFacts & { version?: string; platform?: string }

/** Events of one device each, a second apart, unless they set other values. */
async function insert(events: readonly Sent[]): Promise<void> {
  const facts = events.map(({ version = '4.2.0', platform = 'android', ...rest }, index) => ({
    deviceId: `device-${index}`,
    receivedAtMs: fromMs + index * 1000,
    signals: full,
    ...rest,
    more: { sdk_meta: { sdk_version: version, platform, batch_type: 'start' } },
  }))
  const outcome = await createTelemetryStore(clickhouse).insertTelemetry(makeEvents(facts))
  expect(outcome).toMatchObject({ withoutSignals: [], refused: [] })
}

const toQuery = (tenantId: string, more: Partial<SdkBaselineQuery> = {}): SdkBaselineQuery => ({
  tenantId,
  sdkVersion: '4.2.0',
  platform: 'android',
  atMs: nowMs,
  ...more,
})
/** Queries with a fresh cache. */
const find = (...questions: SdkBaselineQuery[]) =>
  createSdkBaselineStore(clickhouse).loadBaselines(questions)
const ofDevices = (
  devices: number,
  emptyOn: Partial<SdkBaseline['emptyOn']> = {},
): SdkBaseline => ({
  devices,
  emptyOn: { ...noBaseline.emptyOn, ...emptyOn },
})

describe('a baseline', () => {
  it('counts the devices of a version, and those that ever left a category empty', async () => {
    await insert([
      ...Array.from({ length: 20 }, (_, n) => ({ tenantId: 'counted', nonce: n })),
      { tenantId: 'counted', deviceId: 'device-3', signals: signalsWithout('network') },
      { tenantId: 'counted', deviceId: 'device-4', signals: signalsWithout('network', 'root') },
      { tenantId: 'counted', deviceId: 'device-4', signals: { ...full, network: {} }, nonce: 1 },
    ])
    expect(await find(toQuery('counted'))).toEqual([ofDevices(20, { network: 2, root: 1 })])
  })

  it('detects an event with an empty category that hardly any device leaves empty', async () => {
    await insert([
      ...Array.from({ length: 120 }, () => ({ tenantId: 'stripped' })),
      ...Array.from({ length: 60 }, (_, n) => ({
        tenantId: 'stripped',
        signals: signalsWithout('ecosystem'),
        nonce: n,
      })),
    ])
    const filled = toFilledCategories(signalsWithout('ecosystem', 'debugger') as Signals)
    const [baseline] = await find(toQuery('stripped'))
    const signalsMissing = { threshold: 0, usualShare: 0.95, devicesMin: 100, weight: 15 }
    const finding = findSignalsMissing(
      { filled, baseline: baseline!, sdkVersion: '4.2.0' },
      { signalsMissing },
    )
    expect(finding?.evidence).toMatchObject({ count: 1, categories: ['debugger'] })
  })

  it('includes 24 hours from their first moment to their last', async () => {
    const at = (tenantId: string, receivedAtMs: number) => ({ tenantId, receivedAtMs })
    await insert([
      at('bounds', fromMs - 1),
      at('bounds', fromMs),
      at('bounds', toMs - 1),
      at('bounds', toMs),
    ])
    const baselines = await find(
      toQuery('bounds'),
      toQuery('bounds', { atMs: nowMs - hourMs }),
      toQuery('bounds', { atMs: nowMs + hourMs }),
      toQuery('bounds', { atMs: nowMs + 24 * hourMs }),
      toQuery('bounds', { atMs: nowMs + 25 * hourMs }),
    )
    expect(baselines.map((one) => one.devices)).toEqual([2, 2, 2, 1, 0])
  })

  it('is empty where nothing was seen', async () => {
    expect(await find(toQuery('nobody'))).toEqual([noBaseline])
    expect(await find()).toEqual([])
  })

  it('is within 1 % for a fleet of 20,000, with any distribution of its events', async () => {
    const spread = (events: number) => `
      insert into telemetry (tenant_id, device_id, session_id, event_id, received_at,
        sdk_version, platform, filled_categories)
      select 'fleet', concat('d-', toString(number % 20000)), 's', toString(number),
        fromUnixTimestamp64Milli(toInt64(${fromMs} + number * 1000), 'UTC'),
        '4.2.0', 'android', if(number % 20000 < 400, 31, 63)
      from numbers(${events})`
    await clickhouse.command({ query: spread(60_000) })
    const [baseline] = await find(toQuery('fleet'))
    expect(Math.abs(baseline!.devices - 20_000)).toBeLessThan(200)
    expect(Math.abs(baseline!.emptyOn.network - 400)).toBeLessThan(5)
    expect(baseline!.emptyOn.root).toBe(0)
    await clickhouse.command({ query: spread(60_000) })
    expect(await find(toQuery('fleet'))).toEqual([baseline])
  })
})

describe('an answer', () => {
  it('is not changed by repeated inserts, in parts, before and after merges', async () => {
    const events = Array.from({ length: 300 }, (_, n) => ({
      tenantId: 'again',
      deviceId: `device-${n % 260}`,
      receivedAtMs: fromMs + (n % 24) * hourMs,
      signals: n % 9 === 0 ? signalsWithout('tamper') : full,
      nonce: n,
    }))
    await insert(events)
    const before = await find(toQuery('again'))
    expect(before[0]!.devices).toBeGreaterThan(250)
    await insert(events)
    await insert(events.slice(100).reverse())
    expect(await find(toQuery('again'))).toEqual(before)
    await clickhouse.command({ query: 'optimize table sdk_baselines final' })
    expect(await find(toQuery('again'))).toEqual(before)
    await insert(events.slice(0, 50))
    expect(await find(toQuery('again'))).toEqual(before)
  })

  it('is not changed by later events, so a cached one equals a fresh one', async () => {
    await insert(Array.from({ length: 30 }, () => ({ tenantId: 'later' })))
    const store = createSdkBaselineStore(clickhouse)
    const before = await store.loadBaselines([toQuery('later')])
    expect(before).toEqual([ofDevices(30)])
    for (const receivedAtMs of [toMs, toMs + hourMs, nowMs, nowMs + hourMs]) {
      await insert(
        Array.from({ length: 40 }, (_, n) => ({
          tenantId: 'later',
          deviceId: `late-${n}`,
          receivedAtMs,
          signals: signalsWithout('root', 'debugger'),
        })),
      )
    }
    expect(await store.loadBaselines([toQuery('later')])).toEqual(before)
    expect(await find(toQuery('later'))).toEqual(before)
  })

  it('takes one query for all events of a batch, and none for cached baselines', async () => {
    const receivedAtMs = fromMs + 2 * hourMs
    await insert([
      { tenantId: 'batch-a', receivedAtMs },
      { tenantId: 'batch-b', receivedAtMs, version: '5.0.0' },
      { tenantId: 'batch-b', receivedAtMs, version: '5.0.0', platform: 'ios' },
    ])
    let queries = 0
    const counting = {
      query: (params: Parameters<Clickhouse['query']>[0]) => {
        queries++
        return clickhouse.query(params)
      },
    } as unknown as Clickhouse
    const store = createSdkBaselineStore(counting)
    const questions = [
      toQuery('batch-a'),
      toQuery('batch-b', { sdkVersion: '5.0.0', platform: 'ios' }),
      toQuery('batch-a', { atMs: nowMs + hourMs }),
      toQuery('batch-b', { platform: 'ios' }),
      toQuery('batch-a'),
    ]
    const first = await store.loadBaselines(questions)
    expect(first.map((one) => one.devices)).toEqual([1, 1, 1, 0, 1])
    expect(queries).toBe(1)
    expect(await store.loadBaselines([...questions].reverse())).toEqual([...first].reverse())
    expect(queries).toBe(1)
  })
})

describe('baselines are separate', () => {
  it('between tenants: no fleet affects the baselines of another tenant', async () => {
    await insert([
      ...Array.from({ length: 120 }, () => ({ tenantId: 'apart-a' })),
      ...Array.from({ length: 10 }, () => ({ tenantId: 'apart-b', signals: {} })),
    ])
    const [a, b] = await find(toQuery('apart-a'), toQuery('apart-b'))
    expect([a!.devices, b!.devices]).toEqual([120, 10])
    const usual = { usualShare: 0.95, devicesMin: 100 }
    expect(findMissingCategories(0, a!, usual)).toEqual([...categories])
    expect(findMissingCategories(0, b!, usual)).toEqual([])
  })

  it('between versions and platforms, with any names from a client', async () => {
    const names = [
      '4.2.0',
      '4.2.0 ',
      '',
      "a'b\\",
      'a\tb\nc',
      '["x","y"]',
      'é😀',
      '\\'.repeat(128),
      "'".repeat(128),
      '\u0000',
    ]
    const pairs = names.flatMap((version) => names.map((platform) => ({ version, platform })))
    await insert(
      pairs.flatMap((pair, index) =>
        Array.from({ length: 1 + (index % 3) }, (_, n) => ({
          tenantId: 'names',
          deviceId: `d-${n}`,
          nonce: index,
          ...pair,
        })),
      ),
    )
    const baselines = await find(
      ...pairs.map(({ version, platform }) => toQuery('names', { sdkVersion: version, platform })),
    )
    expect(baselines.map((one) => one.devices)).toEqual(pairs.map((_, index) => 1 + (index % 3)))
  })

  it('and read for any number of a hostile client’s versions, then expire', async () => {
    const versions = Array.from({ length: 450 }, (_, n) => `${n}`.padEnd(128, "\\'😀\u0001"))
    await insert(versions.map((version) => ({ tenantId: 'hostile', version })))
    const baselines = await find(
      ...versions.map((sdkVersion) => toQuery('hostile', { sdkVersion })),
    )
    expect(baselines).toEqual(versions.map(() => ofDevices(1)))
    const old = versions.map((version) => ({
      tenantId: 'forgotten',
      version,
      receivedAtMs: nowMs - 10 * 24 * hourMs,
    }))
    await insert(old)
    await clickhouse.command({ query: 'optimize table sdk_baselines final' })
    const result = await clickhouse.query({
      query: `select tenant_id, count() from sdk_baselines
        where tenant_id in ('hostile', 'forgotten') group by tenant_id`,
      format: 'JSONCompactEachRow',
    })
    expect(await result.json()).toEqual([['hostile', 450]])
  })
})

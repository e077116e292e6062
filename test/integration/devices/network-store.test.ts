// Networks of a real ClickHouse against a plain model: the devices that were last on one, and the
// countries and networks of a fleet, with duplicated and unmerged rows.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { createNetworkStore, type NetworkStore } from '#shared/io/devices/network-store.ts'
import { createTelemetryStore, type TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { seed } from '../../support/process/seed.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'
import {
  anyConnection,
  findLatestShown,
  hostingConnection,
  plainConnection,
  toShown,
} from '../../support/telemetry/connections.ts'
import { describeHourlyCounts } from './hourly-counts.ts'

const minuteMs = 60_000
const nowMs = Math.floor(Date.now() / minuteMs) * minuteMs
const clickhouse = await useClickhouse()
let telemetry: TelemetryStore
let networks: NetworkStore
let events: AcceptedEvent[]

const anyEvent: fc.Arbitrary<EventFacts> = fc.record(
  {
    tenantId: fc.constantFrom('net-a', 'net-b'),
    deviceId: fc.constantFrom('d1', 'd2', 'd3', 'd4', 'd/5 ü', '<b>'),
    sessionId: fc.integer({ min: 1, max: 9 }).map((n) => `s-${n}`),
    receivedAtMs: fc.integer({ min: 0, max: 600 }).map((n) => nowMs - n * minuteMs),
    signals: fc.constantFrom(...Object.values(signalsOf)),
    connection: anyConnection,
    nonce: fc.integer(),
  },
  { requiredKeys: ['tenantId', 'deviceId', 'sessionId', 'receivedAtMs', 'signals', 'nonce'] },
)

beforeAll(async () => {
  process.stdout.write(`networks seed ${seed}\n`)
  telemetry = createTelemetryStore(clickhouse)
  networks = createNetworkStore(clickhouse)
  events = makeEvents(fc.sample(anyEvent, { seed, numRuns: 160 }))
  // Rows of a device are in several parts, some of them twice.
  for (let at = 0; at < events.length; at += 40)
    await telemetry.insertTelemetry(events.slice(at, at + 50))
})

const of = (tenantId: string) => events.filter((event) => event.tenant_id === tenantId)
const devicesOf = (some: readonly AcceptedEvent[]) => [
  ...new Set(some.map((event) => event.body.device_id)),
]
const lastSeen = (some: readonly AcceptedEvent[]) =>
  Math.max(...some.map((event) => event.received_at))

describe('the devices of a network', () => {
  const model = (tenantId: string, deviceId: string) => {
    const byDevice = Map.groupBy(of(tenantId), (event) => event.body.device_id)
    const connection = findLatestShown(byDevice.get(deviceId)!)
    const devices = [...byDevice].flatMap(([id, own]) => {
      const latest = findLatestShown(own)
      if (id === deviceId || connection === null || latest?.network !== connection.network)
        return []
      return [
        {
          deviceId: id,
          lastSeenAtMs: lastSeen(own),
          peakRiskScore: Math.max(...own.map((event) => event.rasp_score)),
          connectedAtMs: lastSeen(own.filter((event) => event.connection !== undefined)),
        },
      ]
    })
    devices.sort((a, b) => b.lastSeenAtMs - a.lastSeenAtMs || (a.deviceId < b.deviceId ? -1 : 1))
    return { connection, devices, total: devices.length }
  }

  it('are those whose latest connection is in it, of the tenant alone', async () => {
    let others = 0
    for (const tenantId of ['net-a', 'net-b']) {
      for (const deviceId of devicesOf(of(tenantId))) {
        const found = await networks.findNetworkDevices({ tenantId, deviceId, limit: 50 })
        expect([deviceId, found]).toEqual([deviceId, model(tenantId, deviceId)])
        others += found!.total
      }
    }
    expect(others).toBeGreaterThan(0)
  })

  it('are counted beyond those that are shown', async () => {
    const facts = Array.from(
      { length: 9 },
      (_, n): EventFacts => ({
        tenantId: 'crowd',
        deviceId: `c-${n}`,
        receivedAtMs: nowMs - n * minuteMs,
        connection: hostingConnection,
      }),
    )
    await telemetry.insertTelemetry(makeEvents(facts, 9_000))
    const query = { tenantId: 'crowd', deviceId: 'c-0', limit: 3 }
    const found = await networks.findNetworkDevices(query)
    expect(found?.total).toBe(8)
    expect(found?.devices.map((one) => one.deviceId)).toEqual(['c-1', 'c-2', 'c-3'])
  })

  it('are none of a device that moved away, or that was never measured', async () => {
    const at = (deviceId: string, minutes: number, connection?: EventFacts['connection']) => ({
      tenantId: 'moved',
      deviceId,
      receivedAtMs: nowMs - minutes * minuteMs,
      nonce: minutes,
      ...(connection === undefined ? {} : { connection }),
    })
    const facts = [
      at('home', 9, hostingConnection),
      at('gone', 9, hostingConnection),
      at('gone', 1, plainConnection),
      at('dark', 1),
    ]
    for (const [n, one] of facts.entries())
      await telemetry.insertTelemetry(makeEvents([one], 9_100 + n))
    const find = (deviceId: string) =>
      networks.findNetworkDevices({ tenantId: 'moved', deviceId, limit: 50 })
    expect(await find('home')).toEqual({
      connection: toShown(hostingConnection),
      devices: [],
      total: 0,
    })
    expect(await find('dark')).toEqual({ connection: null, devices: [], total: 0 })
    expect(await find('nobody')).toBeNull()
  })
})

describe('the countries and networks of a fleet', () => {
  const span = { fromMs: nowMs - 500 * minuteMs, toMs: nowMs - 10 * minuteMs }
  const within = (tenantId: string) =>
    of(tenantId).filter(({ received_at: ms }) => ms >= span.fromMs && ms < span.toMs)
  const counts = (some: readonly AcceptedEvent[]) => ({
    events: some.length,
    blocked: some.filter((event) => event.rasp_action === 'BLOCK').length,
    devices: devicesOf(some).length,
  })

  it('are counted by events and devices, those of most devices first', async () => {
    const own = within('net-a')
    const measured = own.filter((event) => event.connection !== undefined)
    const placed = measured.filter((event) => event.connection?.country !== undefined)
    const query = { tenantId: 'net-a', ...span, limit: 50 }
    const found = await networks.readFleetNetworks(query)
    expect([found.events, found.measured]).toEqual([own.length, measured.length])
    const countries = [...Map.groupBy(placed, (event) => event.connection!.country!)].map(
      ([country, some]) => ({
        country,
        networks: new Set(some.map((event) => event.connection!.network)).size,
        ...counts(some),
      }),
    )
    expect(countries.length).toBeGreaterThan(1)
    expect(found.countries).toEqual(
      countries.sort((a, b) => b.devices - a.devices || (a.country < b.country ? -1 : 1)),
    )
    const byNetwork = [...Map.groupBy(measured, (event) => event.connection!.network)].map(
      ([, some]) => ({ connection: findLatestShown(some)!, ...counts(some) }),
    )
    expect(byNetwork.length).toBeGreaterThan(2)
    expect(found.networks).toEqual(
      byNetwork.sort(
        (a, b) => b.devices - a.devices || (a.connection.network < b.connection.network ? -1 : 1),
      ),
    )
    const short = await networks.readFleetNetworks({ ...query, limit: 1 })
    expect([short.countries, short.networks]).toEqual([
      found.countries.slice(0, 1),
      found.networks.slice(0, 1),
    ])
  })

  it('are a line of the overview, beside the period before', async () => {
    const [beforeMs, fromMs, toMs] = [nowMs - 600 * minuteMs, nowMs - 300 * minuteMs, nowMs + 1]
    const { readCounts } = createOverviewStore(clickhouse)
    const { now, before } = await readCounts(
      { tenantId: 'net-a', beforeMs, fromMs, toMs },
      { versionsMax: 10, stepMs: 3_600_000 },
    )
    const expected = (from: number, to: number) => {
      const some = of('net-a').filter(({ received_at: ms }) => ms >= from && ms < to)
      const kinds = (...any: string[]) =>
        some.filter((event) => event.connection?.kinds?.some((kind) => any.includes(kind))).length
      return {
        events: some.length,
        measured: some.filter((event) => event.connection !== undefined).length,
        anonymous: kinds('vpn', 'proxy', 'relay', 'tor'),
        hosting: kinds('hosting'),
        countries: new Set(some.flatMap((event) => event.connection?.country ?? [])).size,
      }
    }
    expect(now).toMatchObject(expected(fromMs, toMs))
    expect(before).toMatchObject(expected(beforeMs, fromMs))
    expect(now.anonymous).toBeGreaterThan(0)
  })
})

describeHourlyCounts(() => clickhouse)

// Changes of a device's signals in a real ClickHouse against a plain model, and the bounds of a
// device with very many sessions.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { changedEventsMax, signalChangesMax } from '#shared/core/base/limits/entities.ts'
import { type SignalChange, toSignalChanges } from '#shared/core/devices/signal-changes.ts'
import type { TimelineBound } from '#shared/core/devices/timeline.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  createSignalHistoryStore,
  type SignalHistoryStore,
} from '#shared/io/devices/signal-history-store.ts'
import { createTimelineEvents } from '#shared/io/devices/timeline-events-store.ts'
import { createTelemetryStore, type TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { modelSignalHistory } from '../../support/devices/signal-changes-model.ts'
import { seed } from '../../support/process/seed.ts'
import { inTime } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'

const nowMs = Math.floor(Date.now() / 60_000) * 60_000
let server: TestClickhouse
let clickhouse: Clickhouse
/** For inserts that take as long as they need. */
let patient: Clickhouse
let telemetry: TelemetryStore
let store: SignalHistoryStore

beforeAll(async () => {
  server = await startClickhouse({ isMigrated: true })
  clickhouse = createClickhouse(server.url, { name: 'test' })
  patient = createClickhouse(server.url, { name: 'test', requestTimeoutMs: 300_000 })
  telemetry = createTelemetryStore(clickhouse)
  store = createSignalHistoryStore(clickhouse)
})
afterAll(async () => {
  await Promise.all([clickhouse?.close(), patient?.close()])
  await server?.stop()
})

const anySignals = fc.record(
  {
    root: fc.record(
      { su_binary: fc.boolean(), magisk_detected: fc.boolean() },
      { requiredKeys: [] },
    ),
    tamper: fc.record({ app_attest_valid: fc.boolean() }, { requiredKeys: [] }),
    network: fc.record({ vpn_active: fc.boolean(), forged_request: fc.boolean() }),
    debugger: fc.record({ 'own "name"': fc.boolean() }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
)

const anyEvent: fc.Arbitrary<EventFacts> = fc.record({
  tenantId: fc.constantFrom('model-a', 'model-b'),
  deviceId: fc.constantFrom('d1', 'd/\'2"<b>'),
  sessionId: fc.integer({ min: 1, max: 9 }).map((n) => `s-${n}`),
  receivedAtMs: fc.integer({ min: 0, max: 60 }).map((n) => nowMs - n * 86_400_000),
  signals: anySignals,
  nonce: fc.integer({ min: 1, max: 500 }),
})

const sortChanges = (changes: readonly SignalChange[]) =>
  changes
    .map((one) => [one.atMs, one.eventId, one.signal, one.change, one.sessionId])
    .sort((a, b) => (String(a) < String(b) ? -1 : 1))

describe('events of a timeline', () => {
  it('are each there once, newest first, and continue after any of them', async () => {
    const at = (tenantId: string, deviceId: string, n: number): EventFacts => ({
      tenantId,
      deviceId,
      sessionId: `s-${n % 3}`,
      // Two of each instant.
      receivedAtMs: nowMs - Math.floor(n / 2) * 3_600_000,
      nonce: n,
    })
    const numbers = Array.from({ length: 9 }, (_, n) => n)
    const events = makeEvents([
      ...numbers.map((n) => at('timeline', 'one', n)),
      ...numbers.map((n) => at('timeline', 'two', n + 20)),
      at('timeline', 'three', 1),
      at('timeline-b', 'one', 1),
    ])
    const again = events.slice(0, 5).map((event) => {
      return { ...event, received_at: event.received_at + 60_000 }
    })
    await telemetry.insertTelemetry(events)
    await telemetry.insertTelemetry(again)
    const { listTimelineEvents } = createTimelineEvents(clickhouse)
    const read = async (bound: TimelineBound, limit: number) => {
      const query = { tenantId: 'timeline', deviceIds: ['one', 'two'], fromMs: 0, bound, limit }
      const found = await listTimelineEvents(query)
      return found.map(({ eventId: id, receivedAtMs: atMs }) => ({ atMs, id }))
    }
    const expected = events
      .filter(({ tenant_id: tenant, body }) => tenant === 'timeline' && body.device_id !== 'three')
      .map(({ event_id: id, received_at: atMs }) => ({ atMs, id }))
      .sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1))
    const end = { atMs: nowMs + 1, id: '' }
    expect(await read(end, 100)).toEqual(expected)
    const paged = []
    for (let bound: TimelineBound | undefined = end; bound !== undefined; bound = paged.at(-1)) {
      const page = await read(bound, 4)
      if (page.length === 0) break
      paged.push(...page)
    }
    expect(paged).toEqual(expected)
  })
})

describe('changes of signals', () => {
  it('equal a plain model, with repeats and in any order', async () => {
    process.stdout.write(`signal changes seed ${seed}\n`)
    const events = makeEvents(fc.sample(anyEvent, { seed, numRuns: 150 }))
    const again = events.slice(0, 60).map((event) => {
      return { ...event, received_at: event.received_at + 86_400_000 * 40 }
    })
    await telemetry.insertTelemetry([...events.slice(70), ...again])
    await telemetry.insertTelemetry(events.slice(0, 100))
    for (const tenant of ['model-a', 'model-b']) {
      for (const device of ['d1', 'd/\'2"<b>']) {
        const own = [...events, ...again].filter(
          (event) => event.tenant_id === tenant && event.body.device_id === device,
        )
        const model = modelSignalHistory(own)
        const history = await store.readSignalHistory({ tenantId: tenant, deviceId: device })
        const { changes, total, states } = toSignalChanges(history.spans, history.events)
        expect(history.complete).toBe(true)
        expect(total).toBe(model.changes.length)
        expect(sortChanges(changes)).toEqual(sortChanges(model.changes))
        expect(changes.map(({ atMs }) => -atMs)).toEqual(
          changes.map(({ atMs }) => -atMs).toSorted((a, b) => a - b),
        )
        const spans = history.spans.map(({ signal, firstAtMs, lastAtMs }) => [
          signal,
          { firstAtMs, lastAtMs, state: states.get(signal) ?? null },
        ])
        expect(Object.fromEntries(spans)).toEqual(Object.fromEntries(model.signals))
        expect(model.changes.length).toBeGreaterThan(10)
      }
    }
    const unknown = await store.readSignalHistory({ tenantId: 'model-a', deviceId: 'nobody' })
    expect(unknown).toEqual({ spans: [], events: [], complete: true })
  })

  it.each([
    ['that became rooted once', 'number >= 35000', 1],
    ['that changes with every event', 'number % 2 = 1', signalChangesMax],
  ])(
    'of a device %s in 50,000 sessions are bounded, and include the first one',
    async (device, rooted, changesShown) => {
      // One event of each session: bit 0 is su_binary.
      await patient.command({
        query: `
          insert into telemetry (tenant_id, device_id, session_id, event_id, received_at,
            detected_bits, clean_bits, detected_signals)
          select 'large', {device:String}, 's-' || toString(number), 'evt_' || toString(number),
            toDateTime64('2026-01-01', 3, 'UTC') + number * 60, ${rooted}, not (${rooted}),
            if(${rooted}, ['root.su_binary'], [])
          from numbers(50000)`,
        query_params: { device },
      })
      const history = await inTime(() =>
        store.readSignalHistory({ tenantId: 'large', deviceId: device }),
      )
      const { changes } = toSignalChanges(history.spans, history.events)
      expect(changes).toHaveLength(changesShown)
      expect(history.complete).toBe(changesShown === 1)
      expect(history.events.length).toBe(changesShown === 1 ? 2 : changedEventsMax)
      const first = changesShown === 1 ? 35_000 : 1
      expect(history.spans).toMatchObject([
        { signal: 'root.su_binary', firstSessionId: `s-${first}`, lastSessionId: 's-49999' },
      ])
    },
  )

  it('say that a token is missing of devices alone that have registered an install', async () => {
    const serverSignals = { attestation: { missing: true } }
    const devices = ['registered', 'never']
    await telemetry.insertTelemetry(
      makeEvents(devices.map((deviceId) => ({ tenantId: 'tokens', deviceId, serverSignals }))),
    )
    await clickhouse.command({
      query: `insert into installs (tenant_id, device_id, token_id, received_at)
        values ('tokens', 'registered', 't1', now64(3))`,
    })
    const read = async (deviceId: string) => {
      const { spans } = await store.readSignalHistory({ tenantId: 'tokens', deviceId })
      return spans.map(({ signal }) => signal)
    }
    expect(await read('registered')).toEqual(['attestation.missing'])
    expect(await read('never')).toEqual([])
  })
})

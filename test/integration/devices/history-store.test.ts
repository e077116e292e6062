// Device histories in a real ClickHouse against a plain model: complete, exact, most recent first,
// with duplicates, in any order of inserts, and after any merges.

import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type DeviceHistory,
  type SessionHistory,
  type SessionPosition,
  toClient,
} from '#shared/core/devices/device-history.ts'
import { actions } from '#shared/core/scoring/score.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { seed } from '../../support/process/seed.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { anyConnection, findLatestShown } from '../../support/telemetry/connections.ts'

const nowMs = Math.floor(Date.now() / 60_000) * 60_000
const clickhouse = await useClickhouse()
const store = createTelemetryStore(clickhouse)
const history = createHistoryStore(clickhouse)

const find = (tenantId: string, deviceId: string, more: Partial<DeviceQuery> = {}) =>
  history.findDevice({ tenantId, deviceId, sessionsLimit: 10_000, before: null, ...more })
type DeviceQuery = { sessionsLimit: number; before: SessionPosition | null }

describe('a device history', () => {
  it('is null for an unknown device and for another tenant’s device', async () => {
    await store.insertTelemetry(makeEvents([{ tenantId: 'owner', deviceId: 'd' }]))
    expect(await find('owner', 'd')).not.toBeNull()
    expect(await find('owner', 'unknown')).toBeNull()
    expect(await find('other', 'd')).toBeNull()
  })

  it('shows an event as soon as its insert has returned', async () => {
    for (let n = 0; n < 20; n++) {
      await store.insertTelemetry(makeEvents([{ tenantId: 'fresh', sessionId: `s-${n}` }]))
      expect((await find('fresh', 'device-1'))?.sessionsTotal).toBe(n + 1)
    }
  })

  it('gives a session the action and flags of its highest score, in any order', async () => {
    const levels = ['REVIEW', 'BLOCK', 'ALLOW', 'REVIEW'] as const
    const facts = levels.map((level, n) => ({
      tenantId: 'highest',
      signals: signalsOf[level],
      receivedAtMs: nowMs + n,
      nonce: n,
    }))
    for (const one of facts) await store.insertTelemetry(makeEvents([one]))
    const device = await find('highest', 'device-1')
    const [block] = makeEvents([facts[1]!])
    expect(device?.peakRaspScore).toBe(block?.rasp_score)
    expect(device?.sessions).toEqual([
      {
        sessionId: 'session-1',
        raspAction: 'BLOCK',
        raspScore: block?.rasp_score,
        flags: ['HOOKING_DETECTED'],
        riskScore: block?.rasp_score,
        action: 'BLOCK',
        riskFlags: ['HOOKING_DETECTED'],
        ...clientOf(block!),
        connection: null,
        startedAtMs: nowMs,
        lastSeenAtMs: nowMs + 3,
      },
    ])
  })

  it('accepts ids of every spelling and keeps them distinct', async () => {
    const ids = ["d'1", 'd\\1', 'd"1', 'd 1', 'd%31', 'dé😀', '{d:1}', 'd/../1', '0', 'null', 'D']
    const facts = ids.map((id) => ({
      tenantId: 'spelling',
      deviceId: id,
      sessionId: id,
      userId: id,
    }))
    await store.insertTelemetry(makeEvents(facts))
    for (const id of ids) {
      const device = await find('spelling', id)
      expect(device?.users).toEqual([id])
      expect(device?.sessions.map((session) => session.sessionId)).toEqual([id])
      const older = { startedAtMs: device!.sessions[0]!.startedAtMs, sessionId: id }
      expect((await find('spelling', id, { before: older }))?.sessions).toEqual([])
    }
  })

  it('equals a plain model of all inserts, with repeats and in any order', async () => {
    process.stdout.write(`history seed ${seed}\n`)
    const events = makeEvents(fc.sample(anyEvent, { seed, numRuns: 400 }))
    // Redelivery: overlapping batches, one of them again at the end.
    for (const [from, to] of [
      [0, 150],
      [100, 300],
      [250, 400],
      [50, 120],
    ] as const) {
      await store.insertTelemetry(events.slice(from, to))
    }
    await expectModel(events)
    for (const table of ['devices', 'sessions', 'telemetry']) {
      await clickhouse.command({ query: `optimize table ${table} final` })
    }
    await expectModel(events)
    await store.insertTelemetry([...events, ...events])
    await expectModel(events)
  })
})

const anyEvent: fc.Arbitrary<EventFacts> = fc.record(
  {
    tenantId: fc.constantFrom('model-a', 'model-b'),
    deviceId: fc.constantFrom('d1', 'd2', 'd3'),
    sessionId: fc.integer({ min: 1, max: 40 }).map((n) => `s-${n}`),
    userId: fc.integer({ min: 1, max: 9 }).map((n) => `u-${n}`),
    accountId: fc.integer({ min: 1, max: 9 }).map((n) => `u-${n + 5}`),
    receivedAtMs: fc.integer({ min: nowMs - 90 * 86_400_000, max: nowMs }),
    signals: fc.constantFrom(
      ...Object.values(signalsOf),
      { root: { su_binary: true } },
      { network: { vpn_active: true } },
    ),
    connection: anyConnection,
    nonce: fc.integer(),
  },
  { requiredKeys: ['tenantId', 'deviceId', 'sessionId', 'receivedAtMs', 'signals', 'nonce'] },
)

async function expectModel(events: readonly AcceptedEvent[]): Promise<void> {
  for (const tenantId of ['model-a', 'model-b']) {
    for (const deviceId of ['d1', 'd2', 'd3']) {
      const mine = events.filter(
        (event) => event.tenant_id === tenantId && event.body.device_id === deviceId,
      )
      expect(await find(tenantId, deviceId)).toEqual(modelDevice(deviceId, mine))
    }
  }
}

function modelDevice(deviceId: string, events: readonly AcceptedEvent[]): DeviceHistory {
  const times = events.map((event) => event.received_at)
  const bySession = Map.groupBy(events, (event) => event.body.session_id)
  const sessions = [...bySession].map(([id, own]) => modelSession(id, own))
  const users = events.flatMap(({ body }) => [body.user_id, body.account_id])
  return {
    deviceId,
    firstSeenAtMs: Math.min(...times),
    lastSeenAtMs: Math.max(...times),
    peakRaspScore: Math.max(...events.map((event) => event.rasp_score)),
    // None of them is decided, so each has the edge's own decision.
    peakRiskScore: Math.max(...events.map((event) => event.rasp_score)),
    install: null,
    client: clientOf(events[0]!),
    connection: findLatestShown(events),
    users: [...new Set(users.filter((user) => user !== undefined))].sort(),
    sessions: sessions.sort(
      (a, b) => b.startedAtMs - a.startedAtMs || (a.sessionId < b.sessionId ? 1 : -1),
    ),
    sessionsTotal: sessions.length,
    next: null,
    nextUser: null,
  }
}

/** The facts have no app and no model. */
const clientOf = ({ body }: AcceptedEvent) =>
  toClient([body.sdk_meta.platform, body.sdk_meta.sdk_version, '', ''])

function modelSession(sessionId: string, events: readonly AcceptedEvent[]): SessionHistory {
  const times = events.map((event) => event.received_at)
  const flagsOf = (event: AcceptedEvent) => event.reasons.map((reason) => reason.code)
  const [highest] = [...events].sort(
    (a, b) =>
      b.rasp_score - a.rasp_score ||
      actions.indexOf(b.rasp_action) - actions.indexOf(a.rasp_action) ||
      (flagsOf(a).join() < flagsOf(b).join() ? 1 : -1),
  )
  return {
    sessionId,
    raspAction: highest!.rasp_action,
    raspScore: highest!.rasp_score,
    flags: flagsOf(highest!),
    riskScore: highest!.rasp_score,
    action: highest!.rasp_action,
    riskFlags: flagsOf(highest!),
    ...clientOf(highest!),
    connection: findLatestShown(events),
    startedAtMs: Math.min(...times),
    lastSeenAtMs: Math.max(...times),
  }
}

describe('a history of many sessions', () => {
  const sessionsCount = 3_000
  // Many starts in the same millisecond: the id decides.
  const facts = (n: number): EventFacts => ({
    tenantId: 'pages',
    sessionId: `s-${n}`,
    receivedAtMs: nowMs - Math.floor(n / 7),
  })

  beforeAll(async () => {
    const events = makeEvents(Array.from({ length: sessionsCount }, (_, n) => facts(n)))
    for (let at = 0; at < sessionsCount; at += 500) {
      await store.insertTelemetry(events.slice(at, at + 500))
    }
  })

  it('comes in pages without gaps and duplicates', async () => {
    const all = await find('pages', 'device-1')
    expect(all?.sessions).toHaveLength(sessionsCount)
    expect(all?.next).toBeNull()
    const paged: SessionHistory[] = []
    let before: SessionPosition | null = null
    do {
      const page: DeviceHistory | null = await find('pages', 'device-1', {
        sessionsLimit: 700,
        before,
      })
      expect(page?.sessionsTotal).toBe(sessionsCount)
      paged.push(...page!.sessions)
      before = page!.next
    } while (before !== null)
    expect(paged).toEqual(all?.sessions)
  })

  it('is equal while every session has unmerged rows', async () => {
    const tenantId = 'unmerged'
    const rounds = 4
    await clickhouse.command({ query: 'system stop merges sessions' })
    try {
      // Later rows of a session have a later start: only its first row has the true start.
      for (let round = 0; round < rounds; round++) {
        const some = Array.from({ length: 600 }, (_, n) => ({
          ...facts(n),
          tenantId,
          receivedAtMs: nowMs - 9_000_000 + n * 10 + round * 4_001,
          nonce: round,
        }))
        await store.insertTelemetry(makeEvents(some))
      }
      const device = await find(tenantId, 'device-1', { sessionsLimit: 50 })
      expect(device?.sessionsTotal).toBe(600)
      const started = (n: number) => nowMs - 9_000_000 + n * 10
      expect(device?.sessions.map((one) => [one.sessionId, one.startedAtMs])).toEqual(
        Array.from({ length: 50 }, (_, n) => [`s-${599 - n}`, started(599 - n)]),
      )
      const older = await find(tenantId, 'device-1', { sessionsLimit: 1_000, before: device!.next })
      expect(older?.sessions.map((one) => one.startedAtMs)).toEqual(
        Array.from({ length: 550 }, (_, n) => started(549 - n)),
      )
      expect(older?.lastSeenAtMs).toBe(started(599) + (rounds - 1) * 4_001)
    } finally {
      await clickhouse.command({ query: 'system start merges sessions' })
    }
  })

  it('is exact for a device that had many and was erased, also when it returns', async () => {
    const tenantId = 'erased'
    const many = Array.from({ length: 1_100 }, (_, n) => ({ ...facts(n), tenantId }))
    await store.insertTelemetry(makeEvents(many))
    expect((await find(tenantId, 'device-1'))?.sessionsTotal).toBe(1_100)
    await clickhouse.command({ query: `delete from sessions where tenant_id = '${tenantId}'` })
    expect(await find(tenantId, 'device-1')).toBeNull()
    const again = makeEvents([7, 8, 9].map((n) => ({ ...facts(n), tenantId, userId: `u-${n}` })))
    await store.insertTelemetry(again)
    expect(await find(tenantId, 'device-1')).toEqual(modelDevice('device-1', again))
    const page = await find(tenantId, 'device-1', { sessionsLimit: 2 })
    expect(page?.sessions).toEqual(modelDevice('device-1', again).sessions.slice(0, 2))
    expect(page?.next).not.toBeNull()
  })

  it('has no next page when the last one is exactly full', async () => {
    const page = await find('pages', 'device-1', { sessionsLimit: sessionsCount })
    expect(page?.sessions).toHaveLength(sessionsCount)
    expect(page?.next).toBeNull()
  })

  it('keeps its total and its device when a page is empty', async () => {
    const page = await find('pages', 'device-1', { before: { startedAtMs: 1, sessionId: 'x' } })
    expect(page).toMatchObject({ sessions: [], sessionsTotal: sessionsCount, next: null })
    expect(page?.firstSeenAtMs).toBe(nowMs - Math.floor((sessionsCount - 1) / 7))
  })
})

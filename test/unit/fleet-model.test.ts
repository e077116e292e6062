/**
 * The fleet's expectations on cases small enough to count by hand: what must be, what can be, and
 * where events that were under way together leave both open.
 */
import { describe, expect, it } from 'vitest'
import {
  boundAlerts,
  dueMs,
  requiredActions,
} from '../../services/console/cli/fleet/alert-model.ts'
import {
  checkDevice,
  type DeviceModel,
  toDeviceModels,
} from '../../services/console/cli/fleet/device-model.ts'
import { createLatencies } from '../../services/console/cli/fleet/latencies.ts'
import {
  addMismatch,
  createMismatches,
  type EventFact,
} from '../../services/console/cli/fleet/ledger.ts'
import type { DeviceHistory } from '../../services/console/cli/fleet/read-back.ts'
import { defaultPolicy } from '../../shared/core/policy.ts'
import { compilePolicy } from '../../shared/core/scoring.ts'
import type { Signals } from '../../shared/core/telemetry.ts'

const scorer = compilePolicy(defaultPolicy)
const clock = { startedAtMs: Date.UTC(2026, 0, 15, 12), clockToleranceMs: 10 }

function signals(some: Partial<Signals> = {}): Signals {
  const none = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  return { ...none, ...some }
}

// 35 points: REVIEW with the 30 of HIGH_VELOCITY, ALLOW without.
const automated = scorer(signals({ debugger: { automation_detected: true } }))
const clean = scorer(signals())
const hooked = scorer(signals({ debugger: { frida_detected: true } }))

function fact(session: number, sentMs: number, more: Partial<EventFact> = {}): EventFact {
  return {
    event: session,
    session,
    scored: automated,
    userIds: [],
    outcome: 'accepted',
    sentMs,
    acceptedMs: sentMs + 5,
    endedMs: sentMs + 5,
    ...more,
  }
}

/** A device of which each fact is an event; facts of one number are one session. */
function deviceOf(facts: EventFact[]): DeviceModel {
  const sessions = Array.from({ length: 100 }, (_, at) => ({
    phone: 0,
    sessionId: `s${at}`,
    userId: null,
    batches: 1,
  }))
  const phones = [{ deviceId: 'd' }] as Parameters<typeof toDeviceModels>[0]['phones']
  return toDeviceModels({ phones, sessions }, facts)[0]!
}

const every = (gapMs: number, count: number) =>
  Array.from({ length: count }, (_, session) => fact(session, session * gapMs))

const bounds = (facts: EventFact[]) =>
  boundAlerts(deviceOf(facts), defaultPolicy).map(
    ({ events }) => `${events[0]!.low}-${events[0]!.high}`,
  )

describe('velocity', () => {
  it('is certain from the 21st session in five minutes on, when they come one by one', () => {
    const all = bounds(every(2_000, 30))
    expect(all.slice(0, 20)).toEqual(Array(20).fill('ALLOW-ALLOW'))
    expect(all.slice(20)).toEqual(Array(10).fill('REVIEW-REVIEW'))
  })

  it('is open where sessions are under way together', () => {
    // Ten a second: the last ten before and after the boundary may be counted either way.
    const all = bounds(every(100, 60))
    expect(all.slice(0, 10)).toEqual(Array(10).fill('ALLOW-ALLOW'))
    expect(all.slice(14, 28).every((one) => one === 'ALLOW-REVIEW')).toBe(true)
    expect(all.slice(32)).toEqual(Array(28).fill('REVIEW-REVIEW'))
  })

  it('forgets what has left the window', () => {
    // One in 20 s is never more than 15 in five minutes, and 50 are not too many in an hour.
    expect(new Set(bounds(every(20_000, 50)))).toEqual(new Set(['ALLOW-ALLOW']))
  })

  it('counts a session once, however many events it has', () => {
    const facts = Array.from({ length: 60 }, (_, at) => fact(at % 15, at * 1_000, { event: at }))
    expect(new Set(bounds(facts))).toEqual(new Set(['ALLOW-ALLOW']))
  })

  it('leaves open what rests on events without an answer', () => {
    const lost = { outcome: 'unknown', acceptedMs: null } as const
    const facts = every(2_000, 30).map((one, at) => (at < 12 ? { ...one, ...lost } : one))
    const all = bounds(facts)
    expect(all.slice(20)).toEqual(Array(10).fill('ALLOW-REVIEW'))
  })

  it('counts users and accounts alike', () => {
    const facts = every(2_000, 8).map((one, at) => ({ ...one, userIds: [`u${at}`] }))
    const session = boundAlerts(deviceOf(facts), defaultPolicy)[7]!
    expect([...session.events[0]!.lowCounts]).toContainEqual(['users_per_device:86400', 8])
    // 35 and the 30 of more than five users in 30 days.
    expect([...requiredActions(session)]).toEqual(['REVIEW'])
  })
})

describe('when an alert is due', () => {
  it('is with the first answer that makes it certain', () => {
    const facts = [
      fact(0, 1_000, { scored: clean }),
      fact(0, 2_000, { scored: hooked }),
      fact(0, 3_000, { scored: hooked }),
    ]
    const [session] = boundAlerts(deviceOf(facts), defaultPolicy)
    expect(dueMs(session!, 'BLOCK')).toBe(2_005)
    expect(dueMs(session!, 'REVIEW')).toBeNull()
  })
})

const at = (ms: number) => new Date(clock.startedAtMs + ms).toISOString()

describe('a device history', () => {
  const facts = [
    fact(0, 100, { scored: clean, userIds: ['ada'] }),
    fact(0, 200, { scored: hooked, userIds: ['ada', 'acc'] }),
    fact(1, 300, { scored: clean }),
  ]
  const history = (): DeviceHistory => ({
    device_id: 'd',
    first_seen_at: at(102),
    last_seen_at: at(303),
    peak_rasp_score: 80,
    users_seen_on: ['acc', 'ada'],
    sessions_total: 2,
    sessions: [
      {
        session_id: 's1',
        rasp_action: 'ALLOW',
        rasp_score: 0,
        flags: [],
        started_at: at(303),
        last_seen_at: at(303),
      },
      {
        session_id: 's0',
        rasp_action: 'BLOCK',
        rasp_score: 80,
        flags: ['HOOKING_DETECTED'],
        started_at: at(102),
        last_seen_at: at(202),
      },
    ],
  })
  const found = (change: (one: DeviceHistory) => unknown, model = deviceOf(facts)) => {
    const changed = history()
    change(changed)
    return checkDevice(model, changed, clock).map(({ what }) => what)
  }

  it('agrees with what was sent', () => {
    expect(hooked.score).toBe(80)
    expect(found(() => {})).toEqual([])
  })

  const wrong: [string, string[], (one: DeviceHistory) => unknown][] = [
    ['a peak too low', ['device_peak_score'], (one) => Object.assign(one, { peak_rasp_score: 79 })],
    ['a user missing', ['device_users_missing'], (one) => void one.users_seen_on.pop()],
    ['a user too many', ['device_users_foreign'], (one) => void one.users_seen_on.push('bob')],
    ['users unsorted', ['device_users_order'], (one) => void one.users_seen_on.reverse()],
    [
      'a session missing',
      ['session_missing'],
      (one) => {
        one.sessions.pop()
        one.sessions_total--
      },
    ],
    ['a wrong total', ['sessions_total'], (one) => void one.sessions_total++],
    ['sessions in another order', ['sessions_order'], (one) => void one.sessions.reverse()],
    [
      'a wrong action',
      ['session_action'],
      (one) => Object.assign(one.sessions[1]!, { rasp_action: 'REVIEW' }),
    ],
    [
      'a wrong score',
      ['session_score'],
      (one) => Object.assign(one.sessions[0]!, { rasp_score: 80 }),
    ],
    ['wrong flags', ['session_flags'], (one) => void one.sessions[1]!.flags.push('ROOTED')],
    [
      'a first sight too late',
      ['device_first_seen'],
      (one) => Object.assign(one, { first_seen_at: at(150) }),
    ],
    [
      'a last sight too early',
      ['device_last_seen'],
      (one) => Object.assign(one, { last_seen_at: at(210) }),
    ],
    [
      'a session begun before it was sent',
      ['session_first_seen', 'sessions_order'],
      (one) => Object.assign(one.sessions[0]!, { started_at: at(50) }),
    ],
  ]

  it.each(wrong)('does not agree with %s', (_, what, change) => {
    expect(found(change).sort()).toEqual(what.sort())
  })

  it('is missing only when something of it was accepted', () => {
    const unknown = facts.map((one) => ({ ...one, outcome: 'unknown' as const, acceptedMs: null }))
    expect(checkDevice(deviceOf(facts), null, clock).map(({ what }) => what)).toEqual([
      'device_missing',
    ])
    expect(checkDevice(deviceOf(unknown), null, clock)).toEqual([])
  })

  it('may or may not hold a higher score that was never answered for', () => {
    const lost = { scored: hooked, outcome: 'unknown', acceptedMs: null } as const
    const model = deviceOf([
      ...facts.slice(0, 2),
      fact(1, 300, { scored: clean }),
      fact(1, 400, lost),
    ])
    expect(found(() => {}, model)).toEqual([])
    const higher = (one: DeviceHistory) => {
      Object.assign(one.sessions[0]!, { rasp_score: 80, rasp_action: 'BLOCK' })
      one.sessions[0]!.flags = ['HOOKING_DETECTED']
    }
    expect(found(higher, model)).toEqual([])
    expect(found(higher)).toContain('session_score')
  })
})

describe('measuring and listing', () => {
  it('gives percentiles to within two per cent, and the largest value exactly', () => {
    const latencies = createLatencies()
    for (let ms = 1; ms <= 1_000; ms++) latencies.record(ms)
    const { p50, p99, max, count } = latencies.summary()
    expect(Math.abs(p50 - 500) / 500).toBeLessThan(0.02)
    expect(Math.abs(p99 - 990) / 990).toBeLessThan(0.02)
    expect([max, count]).toEqual([1_000, 1_000])
  })

  it('counts every mismatch and keeps the first of each kind', () => {
    const mismatches = createMismatches()
    for (let n = 0; n < 1_000; n++) addMismatch(mismatches, { what: 'a', got: n })
    addMismatch(mismatches, { what: 'b' })
    expect(mismatches.byWhat).toEqual({ a: 1_000, b: 1 })
    expect(mismatches.total).toBe(1_001)
    expect(mismatches.kept.map(({ what }) => what)).toEqual([...Array(10).fill('a'), 'b'])
  })
})

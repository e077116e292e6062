/**
 * The fleet's expectations on cases small enough to count by hand: required results, possible
 * results, and where concurrent events allow both.
 */
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import {
  boundAlerts,
  canBeFirst,
  dueMs,
  requiredActions,
} from '../../../deploy/fleet/check/alert-model.ts'
import {
  checkDevice,
  type DeviceModel,
  toDeviceModels,
} from '../../../deploy/fleet/check/device-model.ts'
import type { DeviceHistory } from '../../../deploy/fleet/check/read-back.ts'
import { createLatencies } from '../../../deploy/fleet/send/latencies.ts'
import {
  addMismatch,
  createMismatches,
  type EventFact,
} from '../../../deploy/fleet/send/sent-events.ts'
import { toSignalBits } from '../../../shared/core/signals/watched-signals.ts'

const scorer = compilePolicy(defaultPolicy)
const clock = { startedAtMs: Date.UTC(2026, 0, 15, 12), clockToleranceMs: 10 }

function signals(some: Partial<Signals> = {}): Signals {
  const none = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  return { ...none, ...some }
}

/** The content of an event whose client score equals ours. */
function contentOf(some: Partial<Signals>, clientScore?: number) {
  const all = signals(some)
  const scored = scorer(all, { sdkVersion: '1', platform: 'android', receivedAtMs: 0 })
  const rasp_score = clientScore ?? scored.score
  const client = { rasp_score, rasp_action: scored.action as string, rasp_flags: [] }
  return { scored, client, signalBits: toSignalBits(all) }
}

// 35 points: REVIEW with the 30 of HIGH_VELOCITY, ALLOW without.
const automated = contentOf({ debugger: { automation_detected: true } })
const clean = contentOf({})
const hooked = contentOf({ debugger: { frida_detected: true } })
const unhooked = contentOf({ debugger: { frida_detected: false } })

function fact(session: number, sentMs: number, more: Partial<EventFact> = {}): EventFact {
  return {
    event: session,
    session,
    ...automated,
    userIds: [],
    outcome: 'accepted',
    sentMs,
    acceptedMs: sentMs + 5,
    endedMs: sentMs + 5,
    ...more,
  }
}

const lost = { outcome: 'unknown', acceptedMs: null } as const
/** An event that is answered only after three seconds. */
const slow = (one: EventFact): EventFact => {
  return { ...one, acceptedMs: one.sentMs + 3_000, endedMs: one.sentMs + 3_000 }
}

/** A device with one event per fact; facts with the same number share a session. */
function deviceOf(facts: EventFact[], deviceId = 'd'): DeviceModel {
  const sessions = Array.from({ length: 100 }, (_, at) => ({
    phone: 0,
    sessionId: `s${at}`,
    userId: null,
    batches: 1,
  }))
  const phones = [{ deviceId }] as Parameters<typeof toDeviceModels>[0]['phones']
  return toDeviceModels({ phones, sessions }, facts)[0]!
}

const boundOne = (facts: EventFact[]) => boundAlerts([deviceOf(facts)], defaultPolicy)[0]!

const every = (gapMs: number, count: number) =>
  Array.from({ length: count }, (_, session) => fact(session, session * gapMs))

/** The least and the most that each session's first event can lead to. */
const bounds = (facts: EventFact[]) =>
  boundOne(facts).sessions.map(({ events }) => `${events[0]!.low}-${events[0]!.high}`)

/** The bounds of one count, event by event. */
const countsBy = (facts: EventFact[], key: string) => {
  const { countsOf } = boundOne(facts)
  return facts.map((one) => {
    const { low, high } = countsOf(one).get(key)!
    return low === high ? low : [low, high]
  })
}

describe('velocity', () => {
  it('is certain from the 21st session in five minutes, when sessions are sequential', () => {
    const all = bounds(every(100, 30))
    expect(all.slice(0, 20)).toEqual(Array(20).fill('ALLOW-ALLOW'))
    expect(all.slice(20)).toEqual(Array(10).fill('REVIEW-REVIEW'))
  })

  it('is open where sessions are concurrent', () => {
    // One in 100 ms, answered after 3 s: the thirty around each may be counted or not.
    const all = bounds(every(100, 60).map(slow))
    expect(all.slice(20, 49)).toEqual(Array(29).fill('ALLOW-REVIEW'))
    expect(all.slice(51)).toEqual(Array(9).fill('REVIEW-REVIEW'))
  })

  it('is counted at an event’s first arrival, however late it is repeated', () => {
    const repeated = every(100, 30).map((one) => ({ ...one, endedMs: one.sentMs + 60_000 }))
    expect(bounds(repeated)).toEqual(bounds(every(100, 30)))
  })

  it('excludes what has left the window', () => {
    // One in 20 s: never more than 15 in five minutes, and 50 in an hour are below the limit.
    expect(new Set(bounds(every(20_000, 50)))).toEqual(new Set(['ALLOW-ALLOW']))
  })

  it('counts a session once, with any number of events', () => {
    const facts = Array.from({ length: 60 }, (_, at) => fact(at % 15, at * 1_000, { event: at }))
    expect(new Set(bounds(facts))).toEqual(new Set(['ALLOW-ALLOW']))
  })

  it('is open only where it depends on events without an answer', () => {
    const some = (until: number) =>
      bounds(every(2_000, 40).map((one, at) => (at < until ? { ...one, ...lost } : one)))
    expect(some(12).slice(20, 32)).toEqual(Array(12).fill('ALLOW-REVIEW'))
    expect(some(12).slice(32)).toEqual(Array(8).fill('REVIEW-REVIEW'))
    expect(some(1).slice(21)).toEqual(Array(19).fill('REVIEW-REVIEW'))
  })

  it('allows an event without an answer to arrive at any time after it was sent', () => {
    const facts = every(2_000, 30).map((one, at) => (at === 3 ? { ...one, ...lost } : one))
    expect(bounds(facts)[3]).toBe('ALLOW-REVIEW')
    expect(bounds(facts)[4]).toBe('ALLOW-ALLOW')
  })

  it('counts users and accounts alike', () => {
    const facts = every(2_000, 8).map((one, at) => ({ ...one, userIds: [`u${at}`] }))
    expect(countsBy(facts, 'users_per_device:86400')).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    // 35 points, and 30 for more than five users in 30 days.
    expect([...requiredActions(boundOne(facts).sessions[7]!)]).toEqual(['REVIEW'])
  })
})

describe('the devices of a user', () => {
  const key = 'devices_per_user:86400'
  const onDevices = (change: (one: EventFact) => EventFact = (one) => one) => {
    const models = Array.from({ length: 6 }, (_, at) => {
      const userIds = [`own${at}`, 'shared']
      return deviceOf([change(fact(at, at * 1_000, { userIds }))], `d${at}`)
    })
    return boundAlerts(models, defaultPolicy).map(({ countsOf }, at) =>
      countsOf(models[at]!.facts[0]!).get(key),
    )
  }

  it('are exact when they are sequential; of user and account the higher count is used', () => {
    expect(onDevices()).toEqual([1, 2, 3, 4, 5, 6].map((count) => ({ low: count, high: count })))
  })

  it('are open where they are concurrent', () => {
    expect(onDevices(slow)[3]).toEqual({ low: 1, high: 6 })
  })

  it('are none for an event without user and account', () => {
    expect(countsBy([fact(0, 0)], key)).toEqual([0])
  })
})

describe('a flipping signal', () => {
  const key = 'signal_flips:86400'
  const flapping = (gapMs: number) =>
    Array.from({ length: 6 }, (_, at) =>
      fact(0, at * gapMs, { event: at, ...(at % 2 === 0 ? unhooked : hooked) }),
    )

  it('is counted exactly and named when events are sequential', () => {
    expect(countsBy(flapping(1_000), key)).toEqual([0, 1, 2, 3, 4, 5])
    const facts = flapping(1_000)
    const count = boundOne(facts).countsOf(facts[5]!).get(key)
    expect(count!.signals).toEqual(['debugger.frida_detected'])
  })

  it('has certainly not flipped when no signal was both detected and clean', () => {
    const facts = flapping(10).map((one) => ({ ...slow(one), ...hooked }))
    expect(countsBy(facts, key)).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('is not changed by events that did not measure it', () => {
    const facts = flapping(1_000).map((one, at) => (at === 2 ? { ...one, ...clean } : one))
    expect(countsBy(facts, key)).toEqual([0, 1, 1, 1, 2, 3])
  })

  it('is exact among concurrent events with the same value', () => {
    const facts = flapping(1).map((one, at) => ({ ...one, ...(at < 3 ? unhooked : hooked) }))
    const apart = facts.map((one, at) => (at < 3 ? one : { ...one, ...slow(fact(0, 100 + at)) }))
    const equal = apart.map((one, at) => ({ ...one, event: at, ...(at < 3 ? unhooked : hooked) }))
    expect(countsBy(equal, key)).toEqual([0, 0, 0, 1, 1, 1])
  })

  it('is open from the point where the order of different events is not certain', () => {
    const facts = flapping(1_000).map((one, at) => (at === 2 ? slow(one) : one))
    expect(countsBy(facts, key)).toEqual([0, 1, [0, 4], [0, 3], [0, 4], [0, 5]])
    const unanswered = flapping(1_000).map((one, at) => (at === 4 ? { ...one, ...lost } : one))
    expect(countsBy(unanswered, key).slice(3)).toEqual([3, [0, 5], [0, 5]])
  })
})

describe('the client’s score', () => {
  it('adds its points exactly when it is far from ours', () => {
    const policy = { ...defaultPolicy, scoreMismatch: { threshold: 30, weight: 5 } }
    const bound = (clientScore: number) => {
      const content = contentOf({ debugger: { automation_detected: true } }, clientScore)
      const [device] = boundAlerts([deviceOf([fact(0, 0, content)])], policy)
      const { low, high } = device!.sessions[0]!.events[0]!
      return `${low}-${high}`
    }
    // Our score is 35: five more points make a REVIEW.
    expect(bound(66)).toBe('REVIEW-REVIEW')
    expect(bound(65)).toBe('ALLOW-ALLOW')
  })
})

describe('the time at which an alert is expected', () => {
  const facts = [
    fact(0, 1_000, { event: 0, ...clean }),
    fact(0, 2_000, { event: 1, ...hooked }),
    fact(0, 2_003, { event: 2, ...hooked }),
    fact(0, 3_000, { event: 3, ...hooked }),
  ]

  it('is the first answer that makes it certain', () => {
    const [session] = boundOne(facts).sessions
    expect(dueMs(session!, 'BLOCK')).toBe(2_005)
    expect(dueMs(session!, 'REVIEW')).toBeNull()
  })

  it('includes an event that may have been the first to raise it', () => {
    const [session] = boundOne(facts).sessions
    const first = session!.events.map((event) => canBeFirst(event, session!, 'BLOCK'))
    expect(first).toEqual([false, true, true, false])
  })
})

const at = (ms: number) => new Date(clock.startedAtMs + ms).toISOString()

describe('a device history', () => {
  const facts = [
    fact(0, 100, { ...clean, userIds: ['ada'] }),
    fact(0, 200, { ...hooked, userIds: ['ada', 'acc'] }),
    fact(1, 300, { ...clean }),
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

  it('matches the sent events', () => {
    expect(hooked.scored.score).toBe(80)
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

  it.each(wrong)('does not match with %s', (_, what, change) => {
    expect(found(change).sort()).toEqual(what.sort())
  })

  it('is missing only when one of its events was accepted', () => {
    const unknown = facts.map((one) => ({ ...one, outcome: 'unknown' as const, acceptedMs: null }))
    expect(checkDevice(deviceOf(facts), null, clock).map(({ what }) => what)).toEqual([
      'device_missing',
    ])
    expect(checkDevice(deviceOf(unknown), null, clock)).toEqual([])
  })

  it('may or may not contain a higher score of an unanswered event', () => {
    const lostHook = { ...hooked, ...lost }
    const model = deviceOf([
      ...facts.slice(0, 2),
      fact(1, 300, { ...clean }),
      fact(1, 400, lostHook),
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

describe('the summary', () => {
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

/**
 * The fleet's checks against a service in memory: a correct service passes, and every fault is
 * found and named. A checker that cannot fail proves nothing.
 */
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { type Judging, judge } from '../../../deploy/fleet/check/judge.ts'
import { kinds } from '../../../deploy/fleet/phones/kinds.ts'
import { makePlan } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation, type Phone } from '../../../deploy/fleet/phones/population.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'
import type { Received } from '../../../deploy/fleet/send/deliveries.ts'
import { createSentEvents, noteEnded, noteSent } from '../../../deploy/fleet/send/sent-events.ts'
import { toDeliveryId } from '../../../shared/core/base/ids.ts'
import type { Flag } from '../../../shared/core/signals/flag-codes.ts'
import { type Bug, bugs, createModelService } from '../../support/telemetry/model-service.ts'

const tenantId = 'fleet-model'
const startedAtMs = Date.UTC(2026, 0, 15, 12)
const seed = 20_260_115
const scorer = compilePolicy(defaultPolicy)

/** Two phones of every kind, and a farm large enough for its accounts to be on many phones. */
function choosePhones(): Phone[] {
  const all = makePopulation(seed, 2_000)
  const chosen = kinds.flatMap((kind) =>
    all.filter((phone) => phone.kind === kind).slice(0, kind.name === 'cloud-phone' ? 12 : 2),
  )
  return chosen.map((phone, index) => ({ ...phone, index }))
}

const phones = choosePhones()
const plan = makePlan({ seed, phones, ratePerSecond: 30, durationMs: 40_000 })

const prepared = Array.from(plan.sessionOf, (_, event) =>
  prepareEvent(
    { plan, tenantId, scorer, startedAtMs },
    event,
    plan.atMs[plan.eventOf.indexOf(event)]!,
  ),
)

/** Sends a plan to a service in simulated time; `fate` decides what happens to each request. */
function play(
  bug?: Bug,
  fate: (arrival: number) => 'answered' | 'lost' | 'swallowed' = () => 'answered',
) {
  const service = createModelService(tenantId, bug)
  const sentEvents = createSentEvents(plan)
  plan.eventOf.forEach((event, arrival) => {
    const atMs = plan.atMs[arrival]!
    const { body, ...content } = prepared[event]!
    const fact = noteSent(sentEvents, content, atMs, plan.isRepeat[arrival] === 1)
    const end = fate(arrival)
    // A lost request never arrived; for a swallowed one only the answer was lost.
    if (end !== 'lost') service.accept(body, startedAtMs + atMs + 2)
    noteEnded(sentEvents, fact, end === 'answered' ? 'accepted' : 'unknown', atMs + 5)
  })
  return { service, sentEvents }
}

function received(service: ReturnType<typeof play>['service']): Received {
  const deliveries: Received['deliveries'] = new Map()
  for (const alert of service.alerts) {
    const deliveryId = toDeliveryId(alert.alert_id)
    const body = JSON.stringify(alert)
    const firstMs = Date.parse(alert.created_at) - startedAtMs
    const one = { deliveryId, alertId: alert.alert_id, body, firstMs }
    deliveries.set(deliveryId, { ...one, arrivals: 1, faults: 0, accepted: 1, changed: false })
  }
  return {
    deliveries,
    requests: deliveries.size,
    verified: deliveries.size,
    refused: {},
    faults: 0,
  }
}

async function judged(
  { service, sentEvents }: ReturnType<typeof play>,
  more: Partial<Judging> = {},
) {
  let clockMs = 60_000
  const judgement = await judge({
    tenantId,
    ownTenant: true,
    policy: defaultPolicy,
    plan,
    sentEvents,
    get: async (path) => ({ ...service.get(path), retryAfterMs: null }),
    received: received(service),
    listDeliveries: async () => [],
    startedAtMs,
    clockToleranceMs: 10,
    sinceStartMs: () => clockMs,
    settleMs: 5_000,
    pause: async (ms) => {
      clockMs += ms
    },
    onProgress: () => {},
    ...more,
  })
  return { judgement, found: sentEvents.mismatches.byWhat, mismatches: sentEvents.mismatches.kept }
}

describe('a correct service', () => {
  it('agrees in every device, session, alert and webhook', async () => {
    const { judgement, mismatches } = await judged(play())
    expect(mismatches).toEqual([])
    expect(judgement.devices).toBe(phones.length)
    expect(judgement.alerts.length).toBeGreaterThan(50)
    expect(judgement.requiredAlerts).toBeLessThanOrEqual(judgement.alerts.length)
  })

  it('raises the expected alerts from facts of several events', async () => {
    const { judgement } = await judged(play())
    const flags = new Set(judgement.alerts.flatMap((alert) => alert.flags))
    const expected: Flag[] = [
      'HIGH_VELOCITY',
      'MANY_USERS_PER_DEVICE',
      'MANY_DEVICES_PER_USER',
      'SIGNAL_FLAPPING',
      'SCORE_MISMATCH',
    ]
    expect([...flags]).toEqual(expect.arrayContaining(expected))
  })

  it('may or may not have stored a request without an answer', async () => {
    const fates = ['answered', 'lost', 'answered', 'swallowed'] as const
    const { mismatches } = await judged(play(undefined, (arrival) => fates[arrival % 4]!))
    expect(mismatches).toEqual([])
  })
})

describe('a service with one fault', () => {
  const expected: Record<Bug, string> = {
    loses_a_session: 'session_missing',
    loses_the_first_event_of_a_session: 'session_first_seen',
    loses_a_user: 'device_users_missing',
    shows_a_lower_score: 'session_score',
    shows_another_action: 'session_action',
    counts_a_session_twice: 'sessions_total',
    loses_an_alert: 'alert_missing',
    raises_a_needless_alert: 'alert_unexplained',
    ignores_velocity: 'alert_missing',
    sees_velocity_too_early: 'alert_unexplained',
    counts_one_session_too_many: 'alert_unexplained',
    counts_one_session_too_few: 'alert_unexplained',
    ignores_flips: 'alert_unexplained',
    blames_another_signal_for_flips: 'alert_unexplained',
    ignores_devices_per_user: 'alert_unexplained',
    ignores_score_mismatch: 'alert_unexplained',
    misses_signals_that_are_there: 'alert_unexplained',
    leaves_a_reason_out: 'alert_unexplained',
    tells_of_a_later_event: 'alert_unexplained',
    skips_a_seq: 'alert_seq_gap',
    miscounts_the_total: 'alerts_total',
    lists_in_another_order: 'alerts_order',
    misattributes_a_reason: 'alert_unexplained',
  }

  it.each(bugs)('is reported when it %s', async (bug) => {
    const { found } = await judged(play(bug), { settleMs: 0 })
    expect(Object.keys(found)).toContain(expected[bug])
  })
})

describe('webhooks', () => {
  const cases: [string, string, (all: Received) => void][] = [
    [
      'does not arrive',
      'webhook_missing',
      ({ deliveries }) => deliveries.delete(first(deliveries)),
    ],
    [
      'carries another payload than the API',
      'webhook_payload',
      ({ deliveries }) => {
        const one = deliveries.get(first(deliveries))!
        one.body = one.body.replace('"risk_score":', '"risk_score":1')
      },
    ],
    [
      'changes its bytes between attempts',
      'webhook_bytes',
      ({ deliveries }) => {
        deliveries.get(first(deliveries))!.changed = true
      },
    ],
    [
      'is for an unknown alert',
      'webhook_foreign',
      ({ deliveries }) => {
        const one = deliveries.get(first(deliveries))!
        deliveries.set('dlv_other', { ...one, deliveryId: 'dlv_other', alertId: 'alr_other' })
      },
    ],
    [
      'comes as two deliveries',
      'webhook_deliveries',
      ({ deliveries }) => {
        const one = deliveries.get(first(deliveries))!
        deliveries.set('dlv_other', { ...one, deliveryId: 'dlv_other' })
      },
    ],
    [
      'is not signed',
      'webhook_unverified',
      (all) => {
        all.refused.signature = 1
      },
    ],
  ]

  it.each(cases)('are reported when one %s', async (_, what, spoil) => {
    const played = play()
    const all = received(played.service)
    spoil(all)
    const { found } = await judged(played, { settleMs: 0, received: all })
    expect(found).toEqual({ [what]: expect.any(Number) })
  })

  it('missing at the end count as left over, unless they were failed on purpose', async () => {
    const waiting = async (state: string) => (state === 'pending' ? [{ delivery_id: 'dlv_x' }] : [])
    const left = await judged(play(), { settleMs: 0, listDeliveries: waiting })
    expect(left.found).toEqual({ deliveries_waiting: 1 })
    const played = play()
    const all = received(played.service)
    all.deliveries.get(first(all.deliveries))!.faults = 1
    const rehearsed = await judged(played, { received: all, listDeliveries: waiting })
    expect(rehearsed.mismatches).toEqual([])
  })
})

describe('a late result', () => {
  it('is read again before it counts as a mismatch', async () => {
    const played = play()
    let reads = 0
    const { mismatches } = await judged(played, {
      get: async (path) => {
        const isLate = path.includes('/devices/') && ++reads < 40
        const answer = isLate ? { status: 404, json: null } : played.service.get(path)
        return { ...answer, retryAfterMs: null }
      },
    })
    expect(mismatches).toEqual([])
  })
})

function first<T>(map: Map<string, T>): string {
  return [...map.keys()][0]!
}

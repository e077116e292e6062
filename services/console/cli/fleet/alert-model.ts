/**
 * Which alerts there must be. An event's own score says most of it; what velocity adds depends on
 * what the scorer had counted by then, and events that were under way together may be counted
 * either way. So the model has bounds: what must have been counted, what can have been, and the
 * actions between the two.
 */
import { correlate, countKey } from '#shared/core/correlation.ts'
import type { Policy, VelocityRule } from '#shared/core/policy.ts'
import type { Action } from '#shared/core/scoring.ts'
import type { DeviceModel } from './device-model.ts'
import { type EventFact, isAccepted } from './ledger.ts'

type VelocityPolicy = Pick<Policy, 'velocity' | 'thresholds'>

/** What one event leads to at least and at most. */
export type EventBounds = {
  fact: EventFact
  low: Action
  high: Action
  lowCounts: Map<string, number>
  highCounts: Map<string, number>
}

export type SessionBounds = { sessionId: string; events: EventBounds[] }

/**
 * How far apart two events must be for their order to be certain: events that were accepted less
 * than this before another may be counted after it.
 */
const orderMarginMs = 1_000

/** Bounds for every event of a device, by session. */
export function boundAlerts(model: DeviceModel, policy: VelocityPolicy): SessionBounds[] {
  const counters = new Map(
    (['sessions_per_device', 'users_per_device'] as const).map((metric) => [
      metric,
      createSightings(model, metric),
    ]),
  )
  const bound = (fact: EventFact): EventBounds => {
    const lowCounts = new Map<string, number>()
    const highCounts = new Map<string, number>()
    for (const rule of policy.velocity) {
      const sightings = counters.get(rule.metric)
      if (sightings === undefined) continue
      lowCounts.set(countKey(rule), sightings.atLeast(fact, rule.windowSeconds * 1000))
      highCounts.set(countKey(rule), sightings.atMost(fact, rule.windowSeconds * 1000))
    }
    const low = correlate(fact.scored, lowCounts, policy).action
    const high = correlate(fact.scored, highCounts, policy).action
    return { fact, low, high, lowCounts, highCounts }
  }
  return model.sessions.map(({ sessionId, facts }) => ({ sessionId, events: facts.map(bound) }))
}

type Sightings = {
  atLeast(fact: EventFact, windowMs: number): number
  atMost(fact: EventFact, windowMs: number): number
}

/** When each session or user of a device can first and last have been seen, ready to be counted. */
function createSightings(model: DeviceModel, metric: VelocityRule['metric']): Sightings {
  const keysOf = (fact: EventFact): readonly (string | number)[] =>
    metric === 'users_per_device' ? fact.userIds : [fact.session]
  type Sighting = { sentMs: number; acceptedMs: number; endedMs: number }
  const byKey = new Map<string | number, Sighting>()
  for (const fact of model.facts) {
    for (const key of keysOf(fact)) {
      const known = byKey.get(key)
      const acceptedMs = isAccepted(fact) ? fact.acceptedMs : Number.POSITIVE_INFINITY
      byKey.set(key, {
        sentMs: Math.min(known?.sentMs ?? fact.sentMs, fact.sentMs),
        acceptedMs: Math.min(known?.acceptedMs ?? acceptedMs, acceptedMs),
        endedMs: Math.max(known?.endedMs ?? fact.endedMs, fact.endedMs),
      })
    }
  }
  const sorted = (pick: (sighting: Sighting) => number) =>
    Float64Array.from(byKey.values(), pick).sort()
  const sent = sorted((one) => one.sentMs)
  const accepted = sorted((one) => one.acceptedMs)
  const ended = sorted((one) => one.endedMs)
  return {
    atLeast(fact, windowMs) {
      const before = fact.sentMs - orderMarginMs
      const since = (fact.acceptedMs ?? fact.endedMs) - windowMs + orderMarginMs
      const certain = Math.max(0, countBelow(accepted, before) - countBelow(sent, since))
      // The event itself is always counted.
      const own = keysOf(fact).filter((key) => byKey.get(key)!.acceptedMs >= before).length
      return certain + own
    },
    atMost(fact, windowMs) {
      const until = fact.endedMs + orderMarginMs
      const since = fact.sentMs - windowMs - orderMarginMs
      return countBelow(sent, until) - countBelow(ended, since)
    },
  }
}

/** How many of the ascending values are below `limit`. */
function countBelow(values: Float64Array, limit: number): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! < limit) low = middle + 1
    else high = middle
  }
  return low
}

const rank: Record<Action, number> = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

/** Whether an event can have led to an action. */
export function canLeadTo({ low, high }: EventBounds, action: Action): boolean {
  return rank[low] <= rank[action] && rank[action] <= rank[high]
}

/** Actions of a session that are certain to have raised an alert each. */
export function requiredActions(session: SessionBounds): Set<Action> {
  const required = new Set<Action>()
  for (const { fact, low, high } of session.events) {
    if (low === high && low !== 'ALLOW' && isAccepted(fact)) required.add(low)
  }
  return required
}

/**
 * When an alert was due at the latest: the first answer to an event that certainly raises it.
 * @returns ms from the start of the run, or null when no single event is certain to
 */
export function dueMs(session: SessionBounds, action: string): number | null {
  let due: number | null = null
  for (const { fact, low, high } of session.events) {
    if (low !== high || low !== action || !isAccepted(fact)) continue
    due = Math.min(due ?? fact.acceptedMs, fact.acceptedMs)
  }
  return due
}

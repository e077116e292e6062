/**
 * The model of alerts: which alerts must exist, and for which events. The event's own score and the
 * client's verdict are certain. Velocity counts the earlier events in the stream; their order is
 * uncertain only for events that were in flight at the same time or got no response. So the model
 * has bounds: the lowest and the highest possible counts, and the actions between them.
 */

import type { Policy, VelocityMetric } from '#shared/core/policies/policy.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import {
  type Counts,
  correlate,
  countKey,
  findVelocity,
  type Risk,
  type RiskLimits,
} from '#shared/core/velocity/correlation.ts'
import { findScoreMismatch } from '#shared/core/velocity/score-mismatch.ts'
import { type EventFact, isAccepted } from '../send/sent-events.ts'
import type { DeviceModel } from './device-model.ts'
import { createFlips } from './flip-model.ts'
import { type CountBounds, createSightings, type Sightings } from './sightings.ts'

/**
 * The inputs of risk. Missing signals are not among them: the fleet's phones fill every category in
 * every event, so an alert with missing signals is wrong.
 */
type RiskPolicy = RiskLimits & Pick<Policy, 'velocity' | 'scoreMismatch'>

/** The lowest and the highest risk and action of one event. */
export type EventBounds = { fact: EventFact; low: Action; high: Action }

export type SessionBounds = { sessionId: string; events: EventBounds[] }

export type DeviceBounds = {
  deviceId: string
  sessions: SessionBounds[]
  /** Possible counts for an event of the device, by `countKey`. */
  countsOf: (fact: EventFact) => Map<string, CountBounds>
}

/** Bounds for every event of the fleet, by device and session. */
export function boundAlerts(models: readonly DeviceModel[], policy: RiskPolicy): DeviceBounds[] {
  const users = seeUsers(models)
  return models.map((model) => boundDevice(model, users, policy))
}

/** On which devices each user was seen, and when. */
function seeUsers(models: readonly DeviceModel[]): Map<string, Sightings> {
  const users = new Map<string, Sightings>()
  for (const { deviceId, facts } of models) {
    for (const fact of facts) {
      for (const user of fact.userIds) {
        let devices = users.get(user)
        if (devices === undefined) {
          devices = createSightings()
          users.set(user, devices)
        }
        devices.note(deviceId, fact)
      }
    }
  }
  return users
}

function boundDevice(
  model: DeviceModel,
  users: ReadonlyMap<string, Sightings>,
  policy: RiskPolicy,
): DeviceBounds {
  const bounds = boundMetrics(model, users)
  const countsOf = (fact: EventFact) =>
    new Map(
      policy.velocity.map((rule) => [
        countKey(rule),
        bounds[rule.metric](fact, rule.windowSeconds * 1000),
      ]),
    )
  const bound = (fact: EventFact): EventBounds => {
    const counts = [...countsOf(fact)]
    const actionAt = (end: 'low' | 'high') =>
      toRisk(fact, new Map(counts.map(([key, one]) => [key, one[end]])), policy).action
    const low = actionAt('low')
    // Nearly always both bounds are equal.
    const isOpen = counts.some(([, one]) => one.low !== one.high)
    return { fact, low, high: isOpen ? actionAt('high') : low }
  }
  const sessions = model.sessions.map(({ sessionId, facts }) => {
    return { sessionId, events: facts.map(bound) }
  })
  return { deviceId: model.deviceId, sessions, countsOf }
}

type MetricBounds = Record<VelocityMetric, (fact: EventFact, windowMs: number) => CountBounds>

function boundMetrics(model: DeviceModel, users: ReadonlyMap<string, Sightings>): MetricBounds {
  const { deviceId, facts } = model
  const sessionsSeen = createSightings()
  const usersSeen = createSightings()
  for (const fact of facts) {
    sessionsSeen.note(fact.session, fact)
    for (const user of fact.userIds) usersSeen.note(user, fact)
  }
  // A session id is drawn for one phone, and a phone has one platform.
  const one = () => ({ low: 1, high: 1 })
  return {
    sessions_per_device: (fact, windowMs) => sessionsSeen.count(fact, [fact.session], windowMs),
    users_per_device: (fact, windowMs) => usersSeen.count(fact, fact.userIds, windowMs),
    platforms_per_device: one,
    signal_flips: createFlips(facts),
    // Of an event's user and account, the one on more devices counts.
    devices_per_user: (fact, windowMs) => {
      const counts = fact.userIds.map((user) => users.get(user)!.count(fact, [deviceId], windowMs))
      return {
        low: Math.max(0, ...counts.map((count) => count.low)),
        high: Math.max(0, ...counts.map((count) => count.high)),
      }
    },
    devices_per_session: one,
    new_device_of_user: (fact) => boundNewDevice(fact, deviceId, users),
    // A phone of the fleet stays in its network, and its users do not travel.
    countries_per_user: one,
    countries_per_device: one,
    networks_per_device: one,
    devices_per_network: one,
    users_per_network: one,
    impossible_travel: () => ({ low: 0, high: 0 }),
    // No preset has a rule on phones.
    installs_per_phone: one,
    users_per_phone: one,
  }
}

/** A run takes less than a day, so a device is new for as long as another was seen before it. */
function boundNewDevice(
  { userIds }: EventFact,
  deviceId: string,
  users: ReadonlyMap<string, Sightings>,
): CountBounds {
  const bounds = userIds.map((user) => users.get(user)!.isLaterThanAnother(deviceId))
  return {
    low: bounds.some(({ certainly }) => certainly) ? 1 : 0,
    high: bounds.some(({ possibly }) => possibly) ? 1 : 0,
  }
}

/** The risk of an event with these counts. */
export function toRisk(
  { scored, client }: Pick<EventFact, 'scored' | 'client'>,
  counts: Counts,
  policy: RiskPolicy,
  details?: ReadonlyMap<string, Record<string, unknown>>,
): Risk {
  const findings = findVelocity(policy.velocity, counts, details)
  const mismatch = findScoreMismatch(client, scored.score, policy)
  if (mismatch !== null) findings.push(mismatch)
  return correlate(scored, findings, policy)
}

const rank: Record<Action, number> = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

/** Whether an event may have led to an action. */
export function canLeadTo({ low, high }: EventBounds, action: Action): boolean {
  return rank[low] <= rank[action] && rank[action] <= rank[high]
}

/**
 * Whether an event may be the one of an alert: the first in the stream that led to its action. It
 * cannot be when an event that certainly led to it was answered before this one was sent.
 */
export function canBeFirst(event: EventBounds, session: SessionBounds, action: Action): boolean {
  const firstByMs = dueMs(session, action)
  return canLeadTo(event, action) && (firstByMs === null || event.fact.sentMs <= firstByMs)
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
 * @returns ms from the start of the run, or null when no single event certainly does
 */
export function dueMs(session: SessionBounds, action: string): number | null {
  let due: number | null = null
  for (const { fact, low, high } of session.events) {
    if (low !== high || low !== action || !isAccepted(fact)) continue
    due = Math.min(due ?? fact.acceptedMs, fact.acceptedMs)
  }
  return due
}

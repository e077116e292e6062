/**
 * The events whose activity is counted, with the keys of their rows, and the counts of their rules
 * over rows that were read.
 */
import type { Assertion } from '#shared/core/installs/reused-counters.ts'
import type { VelocityRule } from '#shared/core/policies/policy.ts'
import {
  type ActivityCount,
  type ActivityKind,
  type ActivityRow,
  countRule,
  metricSources,
} from '#shared/core/velocity/activity-counts.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import { type ActivityKey, toActivityKey, toShortHash } from './activity-rows-store.ts'

/** An event whose activity is counted. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts alike. */
  userIds: readonly string[]
  /** The network that it came from, in CIDR notation; null where none was measured. */
  network: string | null
  eventId: string
  streamOffset: number
  receivedAtMs: number
  /** The velocity rules of the policy that scored it. */
  rules: readonly VelocityRule[]
  /** The assertion that came with it, where a reused counter is to be found; else null. */
  assertion: Assertion | null
  /** Whether a replay before it is to be found. */
  seeksReplay: boolean
}

/** A subject with the keys of its rows. */
export type KeyedSubject = ActivitySubject & {
  eventHash: string
  keys: Record<ActivityKind, ActivityKey[]>
}

export function toKeyedSubject(subject: ActivitySubject): KeyedSubject {
  const { tenantId, deviceId, sessionId, userIds, network } = subject
  return {
    ...subject,
    eventHash: toHash(subject.eventId),
    keys: {
      device: [toActivityKey(tenantId, 'device', deviceId)],
      user: [...new Set(userIds)].map((id) => toActivityKey(tenantId, 'user', id)),
      session: [toActivityKey(tenantId, 'session', sessionId)],
      network: network === null ? [] : [toActivityKey(tenantId, 'network', network)],
    },
  }
}

/**
 * Counts by rules; the counts of a key by a rule are computed once for all its events.
 * @returns a function from a subject and a rule to its count, of several users the highest; null
 *   when none of its keys is among the rows
 */
export function createCounting(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
): (subject: KeyedSubject, rule: VelocityRule) => ActivityCount | null {
  const eventsOf = new Map<ActivityKey, KeyedSubject[]>()
  for (const one of subjects) {
    for (const key of Object.values(one.keys).flat()) {
      if (!rows.has(key)) continue
      const events = eventsOf.get(key)
      if (events === undefined) eventsOf.set(key, [one])
      else events.push(one)
    }
  }
  const counted = new Map<string, Map<KeyedSubject, ActivityCount>>()
  const countKeyOf = (key: ActivityKey, rule: VelocityRule): Map<KeyedSubject, ActivityCount> => {
    const name = `${key} ${countKey(rule)}`
    let counts = counted.get(name)
    if (counts === undefined) {
      const events = eventsOf.get(key)!
      const moments = events.map(({ streamOffset, receivedAtMs: atMs, eventHash }) => {
        return { streamOffset, atMs, event: toShortHash(eventHash) }
      })
      const all = countRule(rows.get(key)!, rule, moments)
      counts = new Map(events.map((event, index) => [event, all[index]!]))
      counted.set(name, counts)
    }
    return counts
  }
  return (one, rule) => {
    let highest: ActivityCount | null = null
    for (const key of one.keys[metricSources[rule.metric].kind]) {
      if (!rows.has(key)) continue
      const found = countKeyOf(key, rule).get(one)!
      if (highest === null || isHigher(found, highest)) highest = found
    }
    return highest
  }
}

/**
 * Whether one count is to be used and not another one of the same event. Of equal ones the evidence
 * decides, so that the order of keys does not.
 */
export function isHigher(one: ActivityCount, other: ActivityCount): boolean {
  if (one.count !== other.count || one.details === null) return one.count > other.count
  return JSON.stringify(one.details) > JSON.stringify(other.details)
}

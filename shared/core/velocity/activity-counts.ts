/**
 * From the stored events of a device, user or session to the counts of velocity rules, as of each
 * event.
 */

import type { PlaceBits } from '#shared/core/network/place.ts'
import type { VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'
import type { SignalBits } from '#shared/core/signals/watched-signals.ts'
import { findImpossibleTravel } from './impossible-travel.ts'
import { countNewDevice, type NumberedMoment } from './new-device.ts'
import { countSignalFlips } from './signal-flips.ts'
import { countInWindow, type Moment } from './windowed-counts.ts'

/** One stored event of a key. Subjects are hashes; 0 is none. */
export type ActivityRow = Moment &
  SignalBits & {
    event: number
    session: number
    user: number
    account: number
    platform: number
    userDevice: number
    sessionDevice: number
    networkDevice: number
    /** Of a device and of a user: the two letters of the connection's country. */
    country: number
    /** Of a device: its network. */
    network: number
    /** Of a user: where the connection is. */
    place: PlaceBits
    /** Of a device: the assertion that came with the event; see `Assertion`. */
    counter: number
    assertedKey: number
  }

/** The keys that activity is read by. */
export type ActivityKind = 'device' | 'user' | 'session' | 'network'

export type Subject =
  | 'session'
  | 'user'
  | 'account'
  | 'platform'
  | 'userDevice'
  | 'sessionDevice'
  | 'networkDevice'
  | 'country'
  | 'network'

/** For each metric, the distinct subjects that it counts and the key they are counted for. */
export const metricSources: Record<VelocityMetric, { kind: ActivityKind; subjects: Subject[] }> = {
  sessions_per_device: { kind: 'device', subjects: ['session'] },
  users_per_device: { kind: 'device', subjects: ['user', 'account'] },
  platforms_per_device: { kind: 'device', subjects: ['platform'] },
  signal_flips: { kind: 'device', subjects: [] },
  devices_per_user: { kind: 'user', subjects: ['userDevice'] },
  devices_per_session: { kind: 'session', subjects: ['sessionDevice'] },
  new_device_of_user: { kind: 'user', subjects: ['userDevice'] },
  countries_per_user: { kind: 'user', subjects: ['country'] },
  countries_per_device: { kind: 'device', subjects: ['country'] },
  networks_per_device: { kind: 'device', subjects: ['network'] },
  devices_per_network: { kind: 'network', subjects: ['networkDevice'] },
  users_per_network: { kind: 'network', subjects: ['user', 'account'] },
  impossible_travel: { kind: 'user', subjects: [] },
  // Of all installs of a phone together: see `countPhones`.
  installs_per_phone: { kind: 'device', subjects: [] },
  users_per_phone: { kind: 'device', subjects: ['user', 'account'] },
}

export type ActivityCount = {
  count: number
  /** More evidence, where the metric has some. */
  details: Record<string, unknown> | null
}

/**
 * Counts one rule in the activity of one key, for many events at once.
 * @param rows in any order, repetitions allowed
 * @param events the events to count for
 * @returns one count for each event, in their order
 */
export function countRule(
  rows: readonly ActivityRow[],
  rule: Pick<VelocityRule, 'metric' | 'windowSeconds'>,
  events: readonly NumberedMoment[],
): ActivityCount[] {
  if (rule.metric === 'new_device_of_user') {
    const counts = countNewDevice(rows, rule.windowSeconds, events)
    return counts.map((count) => ({ count, details: null }))
  }
  if (rule.metric === 'impossible_travel') {
    const journeys = findImpossibleTravel(rows, rule.windowSeconds, events)
    return journeys.map((journey) => ({ count: journey === null ? 0 : 1, details: journey }))
  }
  if (rule.metric === 'signal_flips') {
    const observations = rows.map((row) => ({ ...row, event: String(row.event) }))
    return countSignalFlips(observations, events, rule.windowSeconds * 1000).map(
      ({ flips, signal }) => ({ count: flips, details: signal === null ? null : { signal } }),
    )
  }
  const seen = new Map<number, Moment[]>()
  for (const row of rows) {
    for (const subject of metricSources[rule.metric].subjects) {
      const id = row[subject]
      if (id === 0) continue
      const moments = seen.get(id)
      if (moments === undefined) seen.set(id, [row])
      else moments.push(row)
    }
  }
  const counts = countInWindow([...seen.values()], rule.windowSeconds, events)
  return counts.map((count) => ({ count, details: null }))
}

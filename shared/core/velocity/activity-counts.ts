/**
 * From what is stored of a device, a user or a session to the counts of velocity rules, as of each
 * event asked about.
 */

import type { VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'
import { type BitHalves, countSignalFlips } from './signal-flips.ts'
import { countInWindow, type Moment } from './windowed-counts.ts'

/** One event in the activity of a key. Subjects are hashes; 0 is none. */
export type ActivityRow = Moment & {
  event: number
  session: number
  user: number
  account: number
  platform: number
  userDevice: number
  sessionDevice: number
  detected: BitHalves
  clean: BitHalves
}

/** Whose activity a metric is counted in. */
export type ActivityKind = 'device' | 'user' | 'session'

type Subject = 'session' | 'user' | 'account' | 'platform' | 'userDevice' | 'sessionDevice'

/** What each metric counts, and where. */
export const countedBy: Record<VelocityMetric, { kind: ActivityKind; subjects: Subject[] }> = {
  sessions_per_device: { kind: 'device', subjects: ['session'] },
  users_per_device: { kind: 'device', subjects: ['user', 'account'] },
  platforms_per_device: { kind: 'device', subjects: ['platform'] },
  signal_flips: { kind: 'device', subjects: [] },
  devices_per_user: { kind: 'user', subjects: ['userDevice'] },
  devices_per_session: { kind: 'session', subjects: ['sessionDevice'] },
}

export type ActivityCount = {
  count: number
  /** More evidence, where the metric has some. */
  details: Record<string, unknown> | null
}

/**
 * Counts one rule in the activity of one key, for all events asked about at once.
 * @param rows in any order, repetitions allowed
 * @returns one count for each moment asked, in their order
 */
export function countRows(
  rows: readonly ActivityRow[],
  rule: Pick<VelocityRule, 'metric' | 'windowSeconds'>,
  asked: readonly Moment[],
): ActivityCount[] {
  if (rule.metric === 'signal_flips') {
    const sightings = rows.map((row) => ({ ...row, event: String(row.event) }))
    return countSignalFlips(sightings, asked, rule.windowSeconds * 1000).map(
      ({ flips, signal }) => ({ count: flips, details: signal === null ? null : { signal } }),
    )
  }
  const seen = new Map<number, Moment[]>()
  for (const row of rows) {
    for (const subject of countedBy[rule.metric].subjects) {
      const id = row[subject]
      if (id === 0) continue
      const moments = seen.get(id)
      if (moments === undefined) seen.set(id, [row])
      else moments.push(row)
    }
  }
  const counts = countInWindow([...seen.values()], rule.windowSeconds, asked)
  return counts.map((count) => ({ count, details: null }))
}

/**
 * Compares the decisions of a shadow policy with those of the active one, summed over groups of
 * sessions. Alerts count as they are raised: one for each device, session and action.
 */
import { actions } from '#shared/core/scoring/score.ts'
import { type ActionMatrix, addToMatrix, emptyMatrix } from './action-matrix.ts'
import {
  type NamedChanges,
  noChanges,
  ofName,
  type SessionChanges,
  toNamed,
  toSessionChange,
} from './session-changes.ts'

/** Sessions with equal decisions. Actions as bits: bit n is set when an event has action n. */
export type ComparedSessions = {
  activeActions: number
  shadowActions: number
  platform: string
  sdkVersion: string
  /** Flags of events that raise an alert; empty where the actions are the same. */
  activeFlags: string[]
  shadowFlags: string[]
  sessions: number
  /** Events by the active action, then by the shadow's: 0 ALLOW, 1 REVIEW, 2 BLOCK. */
  events: number[][]
}

/** Alerts of each policy. */
type ComparedAlerts = { active: number; shadow: number }

type ComparedSum = {
  events: number
  sessions: number
  /** `matrix.ALLOW.REVIEW` were allowed and would have been reviewed. */
  matrix: ActionMatrix
  alerts: ComparedAlerts
  by_action: Record<string, ComparedAlerts>
  /** What the shadow would change. */
  changes: SessionChanges
  /** By the names that clients send, those with most changes first; at most 100. */
  by_platform: NamedChanges[]
  by_sdk_version: NamedChanges[]
  /**
   * Sessions that change, by the flags of their alerts: the active policy's of those gone or
   * milder, the shadow's of the others. A session counts for each.
   */
  by_flag: NamedChanges[]
}

/** Sums groups of sessions. */
export function sumCompared(groups: readonly ComparedSessions[]): ComparedSum {
  const sum = {
    events: 0,
    sessions: 0,
    matrix: emptyMatrix(),
    alerts: noAlerts(),
    by_action: { REVIEW: noAlerts(), BLOCK: noAlerts() },
    changes: noChanges(),
  }
  const split: Split = { platforms: new Map(), versions: new Map(), flags: new Map() }
  for (const group of groups) {
    sum.sessions += group.sessions
    sum.events += addToMatrix(sum.matrix, group.events)
    addAlerts(sum, group)
    addChange(sum.changes, split, group)
  }
  return {
    ...sum,
    by_platform: toNamed(split.platforms),
    by_sdk_version: toNamed(split.versions),
    by_flag: toNamed(split.flags),
  }
}

type Split = Record<'platforms' | 'versions' | 'flags', Map<string, SessionChanges>>

function addAlerts(
  sum: Pick<ComparedSum, 'alerts' | 'by_action'>,
  { activeActions, shadowActions, sessions }: ComparedSessions,
): void {
  for (const action of [1, 2] as const) {
    for (const alerts of [sum.alerts, sum.by_action[actions[action]]!]) {
      if ((activeActions & (1 << action)) !== 0) alerts.active += sessions
      if ((shadowActions & (1 << action)) !== 0) alerts.shadow += sessions
    }
  }
}

function addChange(changes: SessionChanges, split: Split, group: ComparedSessions): void {
  const change = toSessionChange(group.activeActions, group.shadowActions)
  if (change === null) return
  const { sessions } = group
  changes[change] += sessions
  ofName(split.platforms, group.platform, noChanges)[change] += sessions
  ofName(split.versions, group.sdkVersion, noChanges)[change] += sessions
  if (change === 'unchanged') return
  const isLess = change === 'gone' || change === 'milder'
  for (const flag of isLess ? group.activeFlags : group.shadowFlags) {
    ofName(split.flags, flag, noChanges)[change] += sessions
  }
}

const noAlerts = (): ComparedAlerts => ({ active: 0, shadow: 0 })

/**
 * Compares the decisions of a shadow policy with those of the active one, summed over groups of
 * sessions. Alerts count as they are raised: one for each device, session and action.
 */
import { actions } from '#shared/core/scoring/score.ts'
import { type ActionMatrix, addToMatrix, emptyMatrix } from './action-matrix.ts'
import { ofName, toGainedLost, toNamed } from './named-changes.ts'

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

/** Alerts of each policy; gained by the shadow alone, lost from the active one. */
type ComparedAlerts = { active: number; shadow: number; gained: number; lost: number }
type NamedAlerts = ComparedAlerts & { name: string }

type ComparedSum = {
  events: number
  sessions: number
  /** `matrix.ALLOW.REVIEW` were allowed and would have been reviewed. */
  matrix: ActionMatrix
  alerts: ComparedAlerts
  by_action: Record<string, ComparedAlerts>
  /** By the names that clients send, those with most changes first; at most 100. */
  by_platform: NamedAlerts[]
  by_sdk_version: NamedAlerts[]
  /** Gained by the shadow's flags, lost by the active policy's; an alert counts for each. */
  by_flag: Pick<NamedAlerts, 'name' | 'gained' | 'lost'>[]
}

/** Sums groups of sessions. */
export function sumCompared(groups: readonly ComparedSessions[]): ComparedSum {
  const sum = {
    events: 0,
    sessions: 0,
    matrix: emptyMatrix(),
    alerts: noAlerts(),
    by_action: { REVIEW: noAlerts(), BLOCK: noAlerts() },
  }
  const split: Split = { platforms: new Map(), versions: new Map(), flags: new Map() }
  for (const group of groups) {
    sum.sessions += group.sessions
    sum.events += addToMatrix(sum.matrix, group.events)
    addAlerts(sum, split, group)
  }
  return {
    ...sum,
    by_platform: toNamed(split.platforms, ofActive),
    by_sdk_version: toNamed(split.versions, ofActive),
    by_flag: toNamed(split.flags, ofActive).map(toGainedLost),
  }
}

type Split = Record<'platforms' | 'versions' | 'flags', Map<string, ComparedAlerts>>

function addAlerts(
  sum: Pick<ComparedSum, 'alerts' | 'by_action'>,
  split: Split,
  group: ComparedSessions,
): void {
  for (const action of [1, 2] as const) {
    const active = (group.activeActions & (1 << action)) !== 0
    const shadow = (group.shadowActions & (1 << action)) !== 0
    if (!active && !shadow) continue
    const { sessions } = group
    for (const alerts of [
      sum.alerts,
      sum.by_action[actions[action]]!,
      ofName(split.platforms, group.platform, noAlerts),
      ofName(split.versions, group.sdkVersion, noAlerts),
    ]) {
      if (active) alerts.active += sessions
      if (shadow) alerts.shadow += sessions
      if (shadow && !active) alerts.gained += sessions
      if (active && !shadow) alerts.lost += sessions
    }
    if (active === shadow) continue
    for (const flag of shadow ? group.shadowFlags : group.activeFlags) {
      ofName(split.flags, flag, noAlerts)[shadow ? 'gained' : 'lost'] += sessions
    }
  }
}

const noAlerts = (): ComparedAlerts => ({ active: 0, shadow: 0, gained: 0, lost: 0 })

const ofActive = ({ active }: ComparedAlerts) => active

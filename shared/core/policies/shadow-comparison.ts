/**
 * What a shadow policy would have decided against what was decided, summed up from sessions that
 * fared alike. An alert is one for each device, session and action, and so it is counted here.
 */

import { actions } from '#shared/core/scoring/score.ts'
import { ofName, toNamed } from './named-changes.ts'

/** Sessions that fared alike. Actions as bits: bit n is set when some event was given action n. */
export type ComparedSessions = {
  activeActions: number
  shadowActions: number
  platform: string
  sdkVersion: string
  /** Of the events that would raise an alert; empty where no action came or went. */
  activeFlags: string[]
  shadowFlags: string[]
  sessions: number
  /** Events by the active action, then by the shadow's: 0 ALLOW, 1 REVIEW, 2 BLOCK. */
  events: number[][]
}

/** Alerts of either, and those that the shadow alone or the active policy alone raises. */
export type ComparedAlerts = { active: number; shadow: number; gained: number; lost: number }
export type NamedAlerts = ComparedAlerts & { name: string }

export type ComparedSum = {
  events: number
  sessions: number
  /** `matrix.ALLOW.REVIEW` were allowed and would have been reviewed. */
  matrix: Record<string, Record<string, number>>
  alerts: ComparedAlerts
  by_action: Record<string, ComparedAlerts>
  /** The names that clients give, those with most changes first; at most 100. */
  by_platform: NamedAlerts[]
  by_sdk_version: NamedAlerts[]
  /** Gained by the shadow's flags, lost by the active policy's; an alert counts for each. */
  by_flag: Pick<NamedAlerts, 'name' | 'gained' | 'lost'>[]
}

/** Sums up groups of sessions. */
export function sumCompared(groups: readonly ComparedSessions[]): ComparedSum {
  const zeros = () => Object.fromEntries(actions.map((action) => [action, 0]))
  const sum = {
    events: 0,
    sessions: 0,
    matrix: Object.fromEntries(actions.map((action) => [action, zeros()])),
    alerts: noAlerts(),
    by_action: { REVIEW: noAlerts(), BLOCK: noAlerts() },
  }
  const split: Split = { platforms: new Map(), versions: new Map(), flags: new Map() }
  for (const group of groups) {
    sum.sessions += group.sessions
    actions.forEach((from, active) => {
      actions.forEach((to, shadow) => {
        const events = group.events[active]![shadow]!
        sum.matrix[from]![to]! += events
        sum.events += events
      })
    })
    addAlerts(sum, split, group)
  }
  return {
    ...sum,
    by_platform: toNamed(split.platforms, ofActive),
    by_sdk_version: toNamed(split.versions, ofActive),
    by_flag: toNamed(split.flags, ofActive).map(({ name, gained, lost }) => ({
      name,
      gained,
      lost,
    })),
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

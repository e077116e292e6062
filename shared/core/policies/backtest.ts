/**
 * Sums the findings of a backtest, slice by slice, into its report: which actions a new policy
 * changes, and what that means for sessions. A backtest scores signals alone. It does not compute
 * risk features again, so alerts that they raised are reported apart.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { type ActionMatrix, addToMatrix, emptyMatrix } from './action-matrix.ts'
import type { Policy } from './policy.ts'
import {
  type NamedChanges,
  noChanges,
  ofName,
  type SessionChange,
  type SessionChanges,
  toNamed,
  toSessionChange,
} from './session-changes.ts'

/**
 * A range of device ids in byte order, from (inclusive) to (exclusive), null is open; or a
 * sandbox's test devices, which are in no range.
 */
export type BacktestSlice = { from: string | null; to: string | null } | 'test devices'

/** A policy under which stored events were scored. */
export type ScoredBy = { policyHash: string; policy: Policy }

/** Sessions with equal changes. Actions as bits: bit n is set when an event has action n. */
export type SessionGroup = {
  oldActions: number
  newActions: number
  platform: string
  sdkVersion: string
  /** Flags of events that raise an alert; empty where the actions are the same. */
  oldFlags: string[]
  newFlags: string[]
  /** The stored alert of each action: 0 none, 1 raised by its own score, 2 by risk features. */
  reviewRaised: number
  blockRaised: number
  /** Empty when there is none. */
  reviewDisposition: string
  blockDisposition: string
  sessions: number
}

/** Alerts whose risk score is above the event's own score. */
export type CorrelatedAlerts = { action: string; disposition: string; alerts: number }

/** A session whose highest score changes. */
type SessionMove = {
  deviceId: string
  sessionId: string
  oldScore: number
  newScore: number
}

export type SliceFindings = {
  /** Events by old action, then by new one: 0 ALLOW, 1 REVIEW, 2 BLOCK. */
  events: number[][]
  sessions: SessionGroup[]
  moves: SessionMove[]
  /** Events that were scored again under the policy that scored them. */
  recomputed: number
  /** Those of them whose stored score or action differs. */
  differing: number
  /** The first few of them. */
  differingIds: string[]
}

/**
 * Alerts that signals alone raise, at most one for each session and action, under the policies that
 * scored the events and under the new one.
 */
export type AlertCounts = { before: number; after: number }
/**
 * Alerts before. `lost`: their session has none under the new policy. `may_stay`: those lost that
 * risk features raised, and may raise again.
 */
type DispositionCounts = { before: number; lost: number; may_stay: number }

export type BacktestReport = {
  events: number
  /** Sessions that score under either policy. */
  sessions: number
  /** Events by old and new action: `matrix.ALLOW.REVIEW` were allowed and would be reviewed. */
  matrix: ActionMatrix
  alerts: AlertCounts
  by_action: Record<string, AlertCounts>
  changes: SessionChanges
  /** The alerts before, by disposition; NOT_STORED: no alert of this session and action is stored. */
  by_disposition: (DispositionCounts & { name: string })[]
  /** By the names that clients send, those with most changes first; at most 100. */
  by_platform: NamedChanges[]
  by_sdk_version: NamedChanges[]
  /**
   * Sessions that change, by the flags of their alerts: the old flags of those gone or milder, the
   * new ones of the others. A session counts for each.
   */
  by_flag: NamedChanges[]
  /** Stored alerts that risk features raised above the event's own score. */
  correlated: {
    alerts: number
    by_action: Record<string, number>
    by_disposition: Record<string, number>
    /** Of the sessions gone: signals no longer raise their alert, risk features may still. */
    may_stay: number
    /** Of the new sessions: they have an alert already, because risk features raised it. */
    exist_already: number
  }
  moved_most: { device_id: string; session_id: string; old_score: number; new_score: number }[]
  recomputed: { events: number; different: number; first: string[] }
}

/** Events of one query: a second or two of work, and one step of the progress line. */
export const eventsPerSlice = 1_000_000

const movedMostMax = 20
const differingShown = 10

type BacktestSum = {
  add: (findings: SliceFindings) => void
  addCorrelated: (alerts: readonly CorrelatedAlerts[]) => void
  report: () => BacktestReport
}

const emptyReport = (): BacktestReport => ({
  events: 0,
  sessions: 0,
  matrix: emptyMatrix(),
  alerts: noAlerts(),
  by_action: { REVIEW: noAlerts(), BLOCK: noAlerts() },
  changes: noChanges(),
  by_disposition: [],
  by_platform: [],
  by_sdk_version: [],
  by_flag: [],
  correlated: {
    alerts: 0,
    by_action: { REVIEW: 0, BLOCK: 0 },
    by_disposition: {},
    may_stay: 0,
    exist_already: 0,
  },
  moved_most: [],
  recomputed: { events: 0, different: 0, first: [] },
})

/** Creates a sum over the slices of one backtest. */
export function createBacktestSum(): BacktestSum {
  const report = emptyReport()
  const split: Split = {
    dispositions: new Map(),
    platforms: new Map(),
    versions: new Map(),
    flags: new Map(),
  }
  let moves: SessionMove[] = []
  return {
    add: ({ events, sessions, moves: more, recomputed: again, differing, differingIds }) => {
      report.events += addToMatrix(report.matrix, events)
      for (const group of sessions) addSessions(report, split, group)
      moves = [...moves, ...more].sort(byDistance).slice(0, movedMostMax)
      const { recomputed } = report
      recomputed.events += again
      recomputed.different += differing
      recomputed.first = [...recomputed.first, ...differingIds].slice(0, differingShown)
    },
    addCorrelated: (alerts) => addCorrelated(report.correlated, alerts),
    report: () => ({ ...report, ...toSplitReport(split), moved_most: moves.map(toMovedMost) }),
  }
}

function addCorrelated(
  correlated: BacktestReport['correlated'],
  alerts: readonly CorrelatedAlerts[],
): void {
  const { by_action: byAction, by_disposition: byDisposition } = correlated
  for (const { action, disposition, alerts: count } of alerts) {
    correlated.alerts += count
    byAction[action] = (byAction[action] ?? 0) + count
    byDisposition[disposition] = (byDisposition[disposition] ?? 0) + count
  }
}

function toSplitReport({ dispositions, platforms, versions, flags }: Split) {
  return {
    by_disposition: [...dispositions]
      .map(([name, one]) => ({ name, ...one }))
      .sort((a, b) => b.lost - a.lost || b.before - a.before || (a.name < b.name ? -1 : 1)),
    by_platform: toNamed(platforms),
    by_sdk_version: toNamed(versions),
    by_flag: toNamed(flags),
  }
}

const toMovedMost = (move: SessionMove): BacktestReport['moved_most'][number] => ({
  device_id: move.deviceId,
  session_id: move.sessionId,
  old_score: move.oldScore,
  new_score: move.newScore,
})

type Split = Record<'platforms' | 'versions' | 'flags', Map<string, SessionChanges>> & {
  dispositions: Map<string, DispositionCounts>
}

const noAlerts = (): AlertCounts => ({ before: 0, after: 0 })
const noneJudged = (): DispositionCounts => ({ before: 0, lost: 0, may_stay: 0 })

function addSessions(report: BacktestReport, split: Split, group: SessionGroup): void {
  const { sessions, oldActions, newActions } = group
  report.sessions += sessions
  const change = toSessionChange(oldActions, newActions)
  if (change === null) return
  report.changes[change] += sessions
  ofName(split.platforms, group.platform, noChanges)[change] += sessions
  ofName(split.versions, group.sdkVersion, noChanges)[change] += sessions
  addToFlags(split, change, group)
  const raised = [group.reviewRaised, group.blockRaised]
  if (change === 'gone' && raised.includes(byMore)) report.correlated.may_stay += sessions
  if (change === 'new' && raised.some((one) => one !== notRaised)) {
    report.correlated.exist_already += sessions
  }
  for (const action of [1, 2] as const) addAlerts(report, split, { group, action })
}

function addToFlags(
  { flags }: Split,
  change: SessionChange,
  { oldFlags, newFlags, sessions }: SessionGroup,
): void {
  if (change === 'unchanged') return
  const isLess = change === 'gone' || change === 'milder'
  for (const flag of isLess ? oldFlags : newFlags)
    ofName(flags, flag, noChanges)[change] += sessions
}

function addAlerts(
  report: BacktestReport,
  split: Split,
  { group, action }: { group: SessionGroup; action: 1 | 2 },
): void {
  const { sessions } = group
  const isAmong = (actionBits: number) => (actionBits & (1 << action)) !== 0
  for (const alerts of [report.alerts, report.by_action[actions[action]!]!]) {
    if (isAmong(group.oldActions)) alerts.before += sessions
    if (isAmong(group.newActions)) alerts.after += sessions
  }
  if (!isAmong(group.oldActions)) return
  const raised = action === 1 ? group.reviewRaised : group.blockRaised
  const disposition = action === 1 ? group.reviewDisposition : group.blockDisposition
  const name = raised === notRaised ? notStored : disposition
  const judged = ofName(split.dispositions, name, noneJudged)
  judged.before += sessions
  if (toSessionChange(group.oldActions, group.newActions) !== 'gone') return
  judged.lost += sessions
  if (raised === byMore) judged.may_stay += sessions
}

const notRaised = 0
const byMore = 2
const notStored = 'NOT_STORED'

function byDistance(a: SessionMove, b: SessionMove): number {
  const distance = (one: SessionMove) => Math.abs(one.newScore - one.oldScore)
  const byId = compareBytes(a.deviceId, b.deviceId) || compareBytes(a.sessionId, b.sessionId)
  return distance(b) - distance(a) || byId
}

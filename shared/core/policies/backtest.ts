/**
 * Sums the findings of a backtest, slice by slice, into its report: which actions a new policy
 * changes, and which alerts it gains or loses. A backtest scores signals alone. It does not compute
 * risk features again, so alerts that they raised are reported apart.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { type ActionMatrix, addToMatrix, emptyMatrix } from './action-matrix.ts'
import { ofName, toGainedLost, toNamed } from './named-changes.ts'
import type { Policy } from './policy.ts'

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
 * scored the events and under the new one. `before + gained - lost` is `after`.
 */
export type AlertMoves = { before: number; after: number; gained: number; lost: number }
export type NamedMoves = AlertMoves & { name: string }
/** `may_stay`: those lost that risk features raised, and may raise again. */
type DispositionMoves = { name: string; before: number; lost: number; may_stay: number }

export type BacktestReport = {
  events: number
  /** Sessions that score under either policy. */
  sessions: number
  /** Events by old and new action: `matrix.ALLOW.REVIEW` were allowed and would be reviewed. */
  matrix: ActionMatrix
  alerts: AlertMoves
  by_action: Record<string, AlertMoves>
  /** The alerts before, by disposition; NOT_STORED: no alert of this session and action is stored. */
  by_disposition: DispositionMoves[]
  /** By the names that clients send, those with most changes first; at most 100. */
  by_platform: NamedMoves[]
  by_sdk_version: NamedMoves[]
  /** Gained by the new flags, lost by the old ones; an alert counts for each of its flags. */
  by_flag: Pick<NamedMoves, 'name' | 'gained' | 'lost'>[]
  /** Stored alerts that risk features raised above the event's own score. */
  correlated: {
    alerts: number
    by_action: Record<string, number>
    by_disposition: Record<string, number>
    /** Of those lost: signals no longer raise it, risk features may still. */
    may_be_lost: number
    /** Of those gained: it exists already, because risk features raised it. */
    would_be_own: number
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
  alerts: noMoves(),
  by_action: { REVIEW: noMoves(), BLOCK: noMoves() },
  by_disposition: [],
  by_platform: [],
  by_sdk_version: [],
  by_flag: [],
  correlated: {
    alerts: 0,
    by_action: { REVIEW: 0, BLOCK: 0 },
    by_disposition: {},
    may_be_lost: 0,
    would_be_own: 0,
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
    by_disposition: toNamed(dispositions, alertsBefore).map(
      ({ name, before, lost, mayStay = 0 }) => ({ name, before, lost, may_stay: mayStay }),
    ),
    by_platform: toNamed(platforms, alertsBefore),
    by_sdk_version: toNamed(versions, alertsBefore),
    by_flag: toNamed(flags, alertsBefore).map(toGainedLost),
  }
}

const toMovedMost = (move: SessionMove): BacktestReport['moved_most'][number] => ({
  device_id: move.deviceId,
  session_id: move.sessionId,
  old_score: move.oldScore,
  new_score: move.newScore,
})

/** `mayStay` is counted for dispositions alone. */
type SplitMoves = AlertMoves & { mayStay?: number }
type Split = Record<'dispositions' | 'platforms' | 'versions' | 'flags', Map<string, SplitMoves>>

const movesOf = (moves: Map<string, SplitMoves>, name: string) => ofName(moves, name, noMoves)

const alertsBefore = ({ before }: AlertMoves) => before

const noMoves = (): SplitMoves => ({ before: 0, after: 0, gained: 0, lost: 0 })

function addSessions(report: BacktestReport, split: Split, group: SessionGroup): void {
  const { sessions } = group
  report.sessions += sessions
  for (const action of [1, 2] as const) {
    const before = (group.oldActions & (1 << action)) !== 0
    const after = (group.newActions & (1 << action)) !== 0
    if (!before && !after) continue
    const name = actions[action]!
    const raised = action === 1 ? group.reviewRaised : group.blockRaised
    const disposition = action === 1 ? group.reviewDisposition : group.blockDisposition
    const judged = movesOf(split.dispositions, raised === notRaised ? notStored : disposition)
    const all = [
      ...[report.alerts, report.by_action[name]!, movesOf(split.platforms, group.platform)],
      ...[movesOf(split.versions, group.sdkVersion)],
      ...(before ? [judged] : []),
    ]
    for (const moves of all) {
      if (before) moves.before += sessions
      if (after) moves.after += sessions
      if (after && !before) moves.gained += sessions
      if (before && !after) moves.lost += sessions
    }
    if (before === after) continue
    if (before && raised === byMore) {
      report.correlated.may_be_lost += sessions
      judged.mayStay = (judged.mayStay ?? 0) + sessions
    }
    if (after && raised !== notRaised) report.correlated.would_be_own += sessions
    for (const flag of after ? group.newFlags : group.oldFlags) {
      movesOf(split.flags, flag)[after ? 'gained' : 'lost'] += sessions
    }
  }
}

const notRaised = 0
const byMore = 2
const notStored = 'NOT_STORED'

function byDistance(a: SessionMove, b: SessionMove): number {
  const distance = (one: SessionMove) => Math.abs(one.newScore - one.oldScore)
  const byId = compareBytes(a.deviceId, b.deviceId) || compareBytes(a.sessionId, b.sessionId)
  return distance(b) - distance(a) || byId
}

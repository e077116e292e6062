/**
 * What a backtest finds, slice by slice, and the report that its slices add up to: which actions
 * would have been others, and which alerts would have been gained or lost. It knows signals alone:
 * what velocity and the rest add to a risk score is not computed again, so alerts that those raised
 * are told apart.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { ofName, toNamed } from './named-changes.ts'
import type { Policy } from './policy.ts'

/**
 * A range of device ids by their bytes, from (inclusive) to (exclusive), null is open; or the
 * devices of a sandbox whose ids force an action, which are in no range.
 */
export type BacktestSlice = { from: string | null; to: string | null } | 'test devices'

/** A policy that scored stored events. */
export type ScoredBy = { policyHash: string; policy: Policy }

/** Sessions that moved alike. Actions as bits: bit n is set when some event has action n. */
export type SessionGroup = {
  oldActions: number
  newActions: number
  platform: string
  sdkVersion: string
  /** Of the events that would raise an alert; empty where no action came or went. */
  oldFlags: string[]
  newFlags: string[]
  /** Of the stored alert of each action: 0 there is none, 1 its own score raised it, 2 more did. */
  reviewRaised: number
  blockRaised: number
  /** Empty when there is none. */
  reviewDisposition: string
  blockDisposition: string
  sessions: number
}

/** Alerts whose risk score is above the event's own. */
export type CorrelatedAlerts = { action: string; disposition: string; alerts: number }

/** A session whose highest score is another. */
export type SessionMove = {
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
  /** Events that were scored again by the policy that scored them. */
  recomputed: number
  /** Those of them whose stored verdict is another. */
  differing: number
  /** The first few of them. */
  differingIds: string[]
}

/**
 * Alerts, of which a session has one for each action at most. Before and after are what events' own
 * scores deserve; gained and lost leave out what the report has apart under `correlated`.
 */
export type AlertMoves = { before: number; after: number; gained: number; lost: number }
export type NamedMoves = AlertMoves & { name: string }

export type BacktestReport = {
  events: number
  /** Sessions that either policy holds anything against. */
  sessions: number
  /** Events by old and new action: `matrix.ALLOW.REVIEW` were allowed and would be reviewed. */
  matrix: Record<string, Record<string, number>>
  alerts: AlertMoves
  by_action: Record<string, AlertMoves>
  /** The alerts of before by what became of them; NOT_STORED are those without a stored alert. */
  by_disposition: Pick<NamedMoves, 'name' | 'before' | 'lost'>[]
  /** The names that clients give, those with most changes first; at most 100. */
  by_platform: NamedMoves[]
  by_sdk_version: NamedMoves[]
  /** Gained by flags of the new verdict, lost by those of the old; an alert counts for each. */
  by_flag: Pick<NamedMoves, 'name' | 'gained' | 'lost'>[]
  /** Alerts that velocity and the like raised above the event's own score: these may stay. */
  correlated: {
    alerts: number
    by_action: Record<string, number>
    by_disposition: Record<string, number>
    /** The session would no longer deserve it by itself; what was known beyond it may still. */
    may_be_lost: number
    /** The session would now deserve by itself what was raised anyway. */
    would_be_own: number
  }
  moved_most: { device_id: string; session_id: string; old_score: number; new_score: number }[]
  recomputed: { events: number; different: number; first: string[] }
}

/** One query's events: a second or two of work, and the step of a progress line. */
export const eventsPerSlice = 1_000_000

const movedMostMax = 20
const differingShown = 10

export type BacktestSum = {
  add: (findings: SliceFindings) => void
  addCorrelated: (alerts: readonly CorrelatedAlerts[]) => void
  report: () => BacktestReport
}

/** Adds up slices. */
export function createBacktestSum(): BacktestSum {
  const report: BacktestReport = {
    events: 0,
    sessions: 0,
    matrix: Object.fromEntries(
      actions.map((old) => [old, Object.fromEntries(actions.map((next) => [next, 0]))]),
    ),
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
  }
  const split: Split = {
    dispositions: new Map(),
    platforms: new Map(),
    versions: new Map(),
    flags: new Map(),
  }
  let moves: SessionMove[] = []
  return {
    add: ({ events, sessions, moves: more, recomputed: again, differing, differingIds }) => {
      addEvents(report, events)
      for (const group of sessions) addSessions(report, split, group)
      moves = [...moves, ...more].sort(byDistance).slice(0, movedMostMax)
      const { recomputed } = report
      recomputed.events += again
      recomputed.different += differing
      recomputed.first = [...recomputed.first, ...differingIds].slice(0, differingShown)
    },
    addCorrelated: (alerts) => {
      const { correlated } = report
      for (const one of alerts) {
        correlated.alerts += one.alerts
        for (const [counts, name] of [
          [correlated.by_action, one.action],
          [correlated.by_disposition, one.disposition],
        ] as const) {
          counts[name] = (counts[name] ?? 0) + one.alerts
        }
      }
    },
    report: () => ({
      ...report,
      by_disposition: toNamed(split.dispositions, alertsBefore).map(({ name, before, lost }) => ({
        name,
        before,
        lost,
      })),
      by_platform: toNamed(split.platforms, alertsBefore),
      by_sdk_version: toNamed(split.versions, alertsBefore),
      by_flag: toNamed(split.flags, alertsBefore).map(({ name, gained, lost }) => ({
        name,
        gained,
        lost,
      })),
      moved_most: moves.map((one) => ({
        device_id: one.deviceId,
        session_id: one.sessionId,
        old_score: one.oldScore,
        new_score: one.newScore,
      })),
    }),
  }
}

type Split = Record<'dispositions' | 'platforms' | 'versions' | 'flags', Map<string, AlertMoves>>

const movesOf = (moves: Map<string, AlertMoves>, name: string) => ofName(moves, name, noMoves)

const alertsBefore = ({ before }: AlertMoves) => before

const noMoves = (): AlertMoves => ({ before: 0, after: 0, gained: 0, lost: 0 })

function addEvents(report: BacktestReport, events: readonly number[][]): void {
  actions.forEach((from, old) => {
    actions.forEach((to, next) => {
      const count = events[old]![next]!
      report.matrix[from]![to]! += count
      report.events += count
    })
  })
}

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
    const lost = before && !after && raised !== byMore
    const gained = after && !before && raised === notRaised
    const all = [
      ...[report.alerts, report.by_action[name]!, movesOf(split.platforms, group.platform)],
      ...[movesOf(split.versions, group.sdkVersion)],
      ...(before
        ? [movesOf(split.dispositions, raised === notRaised ? notStored : disposition)]
        : []),
    ]
    for (const moves of all) {
      if (before) moves.before += sessions
      if (after) moves.after += sessions
      if (gained) moves.gained += sessions
      if (lost) moves.lost += sessions
    }
    if (before === after) continue
    if (before && !lost) report.correlated.may_be_lost += sessions
    if (after && !gained) report.correlated.would_be_own += sessions
    if (!gained && !lost) continue
    for (const flag of gained ? group.newFlags : group.oldFlags) {
      movesOf(split.flags, flag)[gained ? 'gained' : 'lost'] += sessions
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

/**
 * What a backtest finds, slice by slice, and the report that its slices add up to: which actions
 * would have been others, and which alerts would have been gained or lost. It knows signals alone:
 * what velocity and the rest add to a risk score is not computed again.
 */
import type { Policy } from './policy.ts'
import { actions } from './scoring.ts'

/** A range of device ids by their bytes: from (inclusive) to (exclusive); null is open. */
export type BacktestSlice = { from: string | null; to: string | null }

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
  sessions: number
}

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
  /** Events whose stored verdict is not what the policy that scored them gives today. */
  differing: number
  /** The first few of them. */
  differingIds: string[]
}

/** Alerts that a new policy adds and takes away. */
export type AlertMoves = { before: number; after: number; gained: number; lost: number }
export type NamedMoves = AlertMoves & { name: string }

export type BacktestReport = {
  events: number
  sessions: number
  /** Events by old and new action: `matrix.ALLOW.REVIEW` were allowed and would be reviewed. */
  matrix: Record<string, Record<string, number>>
  alerts: AlertMoves
  by_action: Record<string, AlertMoves>
  /** The names that clients give, those with most changes first; at most 100. */
  by_platform: NamedMoves[]
  by_sdk_version: NamedMoves[]
  /** Gained by flags of the new verdict, lost by those of the old; an alert counts for each. */
  by_flag: Pick<NamedMoves, 'name' | 'gained' | 'lost'>[]
  moved_most: { device_id: string; session_id: string; old_score: number; new_score: number }[]
  recomputed: { events: number; different: number; first: string[] }
}

const movedMostMax = 20
const differingShown = 10
/** Clients choose the names of platforms and versions. */
const namesMax = 100

export type BacktestSum = { add: (findings: SliceFindings) => void; report: () => BacktestReport }

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
    by_platform: [],
    by_sdk_version: [],
    by_flag: [],
    moved_most: [],
    recomputed: { events: 0, different: 0, first: [] },
  }
  const split: Split = { platforms: new Map(), versions: new Map(), flags: new Map() }
  let moves: SessionMove[] = []
  return {
    add: ({ events, sessions, moves: more, differing, differingIds }) => {
      addEvents(report, events)
      for (const group of sessions) addSessions(report, split, group)
      moves = [...moves, ...more].sort(byDistance).slice(0, movedMostMax)
      const { recomputed } = report
      recomputed.different += differing
      recomputed.first = [...recomputed.first, ...differingIds].slice(0, differingShown)
    },
    report: () => ({
      ...report,
      by_platform: toNamed(split.platforms),
      by_sdk_version: toNamed(split.versions),
      by_flag: toNamed(split.flags).map(({ name, gained, lost }) => ({ name, gained, lost })),
      moved_most: moves.map((one) => ({
        device_id: one.deviceId,
        session_id: one.sessionId,
        old_score: one.oldScore,
        new_score: one.newScore,
      })),
    }),
  }
}

type Split = Record<'platforms' | 'versions' | 'flags', Map<string, AlertMoves>>

function movesOf(moves: Map<string, AlertMoves>, name: string): AlertMoves {
  const present = moves.get(name)
  if (present !== undefined) return present
  const made = noMoves()
  moves.set(name, made)
  return made
}

function toNamed(moves: ReadonlyMap<string, AlertMoves>): NamedMoves[] {
  const changes = ({ gained, lost }: AlertMoves) => gained + lost
  return [...moves]
    .map(([name, one]) => ({ name, ...one }))
    .sort((a, b) => changes(b) - changes(a) || b.before - a.before || (a.name < b.name ? -1 : 1))
    .slice(0, namesMax)
}

const noMoves = (): AlertMoves => ({ before: 0, after: 0, gained: 0, lost: 0 })

function addEvents(report: BacktestReport, events: readonly number[][]): void {
  actions.forEach((from, old) => {
    actions.forEach((to, next) => {
      const count = events[old]![next]!
      report.matrix[from]![to]! += count
      report.events += count
      report.recomputed.events += count
    })
  })
}

function addSessions(report: BacktestReport, split: Split, group: SessionGroup): void {
  const { oldActions, newActions, sessions } = group
  report.sessions += sessions
  for (const action of [1, 2] as const) {
    const before = (oldActions & (1 << action)) !== 0
    const after = (newActions & (1 << action)) !== 0
    if (!before && !after) continue
    const platform = movesOf(split.platforms, group.platform)
    const version = movesOf(split.versions, group.sdkVersion)
    for (const moves of [report.alerts, report.by_action[actions[action]]!, platform, version]) {
      if (before) moves.before += sessions
      if (after) moves.after += sessions
      if (after && !before) moves.gained += sessions
      if (before && !after) moves.lost += sessions
    }
    if (before === after) continue
    for (const flag of after ? group.newFlags : group.oldFlags) {
      const moves = movesOf(split.flags, flag)
      moves[after ? 'gained' : 'lost'] += sessions
    }
  }
}

function byDistance(a: SessionMove, b: SessionMove): number {
  const distance = (one: SessionMove) => Math.abs(one.newScore - one.oldScore)
  return distance(b) - distance(a) || (a.sessionId < b.sessionId ? -1 : 1)
}

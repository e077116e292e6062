/**
 * What is known of a fleet's sessions and what they turned out to be, counted: sessions with equal
 * events and equal outcome are one row. What policies weigh of an event is its pattern and what was
 * known of it, so 10 million events have some thousands of rows. A session scores what its worst
 * event does.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { ScoringContext } from '#shared/core/scoring/suppressions.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import { correlate, findVelocity } from '#shared/core/velocity/correlation.ts'
import type { KnownSessions } from '../outcome-counts.ts'
import { noScores, type ScoreCounts } from '../score-distribution.ts'

/** One kind of event: its pattern, and what the scorer found beside it. */
export type OutcomeEvent = {
  signals: Signals
  server: ServerSignals
  context: ScoringContext
  /** Counts of velocity above a rule's threshold, by `countKey`. */
  counts: ReadonlyMap<string, number>
  /** Findings that no suggestion weighs, with their points: a score mismatch, a shared key. */
  others: readonly { code: Flag; weight: number }[]
}

/** The older sessions train, the newer ones test. */
export const periods = ['older', 'newer'] as const
export type Period = (typeof periods)[number]

/** Sessions with equal events. */
export type OutcomeRow = KnownSessions & {
  /** Places in the table's events, each once. */
  events: readonly number[]
  period: Period
  unlabelled: number
  /** Of the fraud, what is known only because somebody judged an alert. */
  judged: number
}

export type OutcomeTable = {
  events: readonly OutcomeEvent[]
  rows: readonly OutcomeRow[]
  /** How long each period is. */
  days: Readonly<Record<Period, number>>
}

export const inPeriod = (table: OutcomeTable, period: Period): OutcomeRow[] =>
  table.rows.filter((row) => row.period === period)

/** The risk score of each kind of event under a policy. */
export function scoreEvents(policy: Policy, events: readonly OutcomeEvent[]): Uint8Array {
  const score = compilePolicy(policy)
  return Uint8Array.from(events, ({ signals, server, context, counts, others }) => {
    const own = score(signals, context, server)
    if (counts.size === 0 && others.length === 0) return own.score
    const evidence = { metric: '', count: 0, threshold: 0, window: 'event' }
    const findings = [
      ...findVelocity(policy.velocity, counts),
      ...others.map((one) => ({ ...one, evidence })),
    ]
    return correlate(own, findings, policy).riskScore
  })
}

/** The score of a session: that of its worst event. */
export function toSessionScore(row: Pick<OutcomeRow, 'events'>, scores: Uint8Array): number {
  let highest = 0
  for (const event of row.events) highest = Math.max(highest, scores[event]!)
  return highest
}

/** How sessions score. */
export function countScores(rows: readonly OutcomeRow[], scores: Uint8Array): ScoreCounts {
  const counts = noScores()
  for (const row of rows) {
    const score = toSessionScore(row, scores)
    counts.fraud[score]! += row.fraud
    counts.legitimate[score]! += row.legitimate
    counts.unlabelled[score]! += row.unlabelled
  }
  return counts
}

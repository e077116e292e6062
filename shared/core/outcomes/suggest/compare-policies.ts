/**
 * How well a policy tells fraud from honest users, on sessions whose outcome is known: at its own
 * thresholds, at equal alerts, calibrated by decile, and with the range that chance explains.
 */
import { bootstrapRuns } from '#shared/core/base/limits/policies.ts'
import { createSeededRandom, drawPoisson } from '#shared/core/base/seeded-random.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { type OutcomeCounts, sumOutcomes, toOutcomeCounts } from '../outcome-counts.ts'
import {
  type AtAlerts,
  type AtThreshold,
  atAlerts,
  atThreshold,
  countAlerts,
  countedOutcomes,
  noScores,
  type ScoreCounts,
} from '../score-distribution.ts'
import { type Rate, toRate } from '../wilson.ts'
import { fitScore, toShare } from './fit-logistic.ts'
import {
  countScores,
  inPeriod,
  type OutcomeTable,
  scoreEvents,
  toSessionScore,
} from './outcome-table.ts'

/** The values between which 95 % of the runs are. */
export type Range = { low: number; high: number }

export type Decile = {
  /** The lowest and the highest score of its labelled sessions. */
  from: number
  to: number
  sessions: number
  /** The share of fraud that the scores of the older sessions let expect, and what it was. */
  expected: number
  observed: Rate
}

/** What a threshold means, with users and money as every other figure counts them. */
export type AtPolicyThreshold = AtThreshold & Pick<OutcomeCounts, 'harmed_users' | 'losses'>

export type PolicyFigures = {
  review: AtPolicyThreshold
  block: AtPolicyThreshold
  /** With as many alerts as the active policy raises. */
  at_equal_alerts: AtAlerts & { recall_range: Range }
  deciles: Decile[]
}

/** Distributions of the scores of one policy in both periods. */
export type ScoredPeriods = { policy: Policy; older: ScoreCounts; newer: ScoreCounts }

export function scorePeriods(policy: Policy, table: OutcomeTable): ScoredPeriods {
  const scores = scoreEvents(policy, table.events)
  return {
    policy,
    older: countScores(inPeriod(table, 'older'), scores),
    newer: countScores(inPeriod(table, 'newer'), scores),
  }
}

/** A pair is drawn again together, so that the difference has a range of its own. */
export type Compared = {
  active: PolicyFigures
  suggested: PolicyFigures
  /** The alerts of the active policy in the newer period, at which both are compared. */
  alerts: number
  recall_gained: number
  recall_gained_range: Range
}

/** Compares two policies on the newer sessions. */
export function comparePolicies(
  table: OutcomeTable,
  { active, suggested }: { active: Policy; suggested: Policy },
  seed: number,
): Compared {
  const [before, after] = [scorePeriods(active, table), scorePeriods(suggested, table)]
  const alerts = countAlerts(before.newer, active.thresholds.review)
  const runs = drawPairs(table, [active, suggested], { alerts, seed })
  const rows = inPeriod(table, 'newer')
  const figures = (one: ScoredPeriods, at: 0 | 1): PolicyFigures => {
    const scores = scoreEvents(one.policy, table.events)
    const atOwn = (threshold: number): AtPolicyThreshold => {
      const sums = sumOutcomes(rows, (row) => toSessionScore(row, scores) >= threshold)
      const { harmed_users, losses } = toOutcomeCounts(sums)
      return { ...atThreshold(one.newer, threshold, table.days.newer), harmed_users, losses }
    }
    const { review, block } = one.policy.thresholds
    return {
      review: atOwn(review),
      block: atOwn(block),
      at_equal_alerts: {
        ...atAlerts(one.newer, alerts),
        recall_range: toRange(runs.map((run) => run[at])),
      },
      deciles: toDeciles(one),
    }
  }
  const [first, second] = [figures(before, 0), figures(after, 1)]
  return {
    active: first,
    suggested: second,
    alerts,
    recall_gained: second.at_equal_alerts.recall - first.at_equal_alerts.recall,
    recall_gained_range: toRange(runs.map(([a, b]) => b - a)),
  }
}

/** The recall of both with equal alerts, of newer sessions drawn again. */
function drawPairs(
  table: OutcomeTable,
  policies: readonly [Policy, Policy],
  { alerts, seed }: { alerts: number; seed: number },
): [number, number][] {
  const rows = inPeriod(table, 'newer')
  // Rows with equal scores under both are drawn as one.
  const joint = new Map<number, number[]>()
  const scores = policies.map((policy) => scoreEvents(policy, table.events))
  for (const row of rows) {
    const [a, b] = scores.map((one) => Math.max(0, ...row.events.map((event) => one[event]!)))
    const sums = joint.get(101 * a! + b!) ?? [0, 0, 0]
    joint.set(101 * a! + b!, sums)
    countedOutcomes.forEach((outcome, at) => {
      sums[at]! += row[outcome]
    })
  }
  const random = createSeededRandom(seed)
  return Array.from({ length: bootstrapRuns }, () => {
    const [before, after] = [noScores(), noScores()]
    for (const [key, sums] of joint) {
      countedOutcomes.forEach((outcome, at) => {
        const drawn = drawPoisson(sums[at]!, random)
        before[outcome][Math.floor(key / 101)]! += drawn
        after[outcome][key % 101]! += drawn
      })
    }
    return [atAlerts(before, alerts).recall, atAlerts(after, alerts).recall]
  })
}

/** The range that 95 % of the values are in. */
function toRange(values: readonly number[]): Range {
  const sorted = [...values].sort((a, b) => a - b)
  const cut = Math.floor(0.025 * sorted.length)
  return { low: sorted[cut] ?? 0, high: sorted[sorted.length - 1 - cut] ?? 0 }
}

/** Tenths of the labelled newer sessions by score; sessions with one score stay together. */
function toDeciles({ older, newer }: ScoredPeriods): Decile[] {
  const model = fitScore(older.fraud, older.legitimate)
  const all = newer.fraud.map((fraud, score) => fraud + newer.legitimate[score]!)
  const total = all.reduce((sum, count) => sum + count, 0)
  const deciles: Decile[] = []
  let open = { from: -1, sessions: 0, fraud: 0, expected: 0 }
  let seen = 0
  for (let score = 0; score <= 100; score++) {
    const sessions = all[score]!
    if (sessions === 0) continue
    seen += sessions
    open = {
      from: open.from < 0 ? score : open.from,
      sessions: open.sessions + sessions,
      fraud: open.fraud + newer.fraud[score]!,
      expected: open.expected + sessions * toShare(model.intercept + model.slope * score),
    }
    if (seen < ((deciles.length + 1) * total) / 10 && seen < total) continue
    deciles.push({
      from: open.from,
      to: score,
      sessions: open.sessions,
      expected: open.expected / open.sessions,
      observed: toRate(open.fraud, open.sessions),
    })
    open = { from: -1, sessions: 0, fraud: 0, expected: 0 }
  }
  return deciles
}

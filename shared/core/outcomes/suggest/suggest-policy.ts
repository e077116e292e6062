/**
 * Suggests a policy from outcomes: a pure function of the active policy, what is known of the
 * sessions, and a seed. It trains on older sessions, tests on newer ones, and says of every change
 * why. The result is a draft, which nobody but an operator publishes.
 */

import { casesMin } from '#shared/core/base/limits/outcomes.ts'
import { outcomesMin } from '#shared/core/base/limits/policies.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { toGainText } from '../figure-text.ts'
import { type Compared, comparePolicies, type Range } from './compare-policies.ts'
import { type Feature, toFeatures } from './features.ts'
import { type OutcomeRow, type OutcomeTable, type Period, periods } from './outcome-table.ts'
import { type Freed, type Scorecard, toScorecard } from './scorecard.ts'
import { findSimpleRules, type SimpleRule } from './simple-rules.ts'
import {
  type FeatureOutcome,
  type Support,
  type Trained,
  toColumns,
  toCountedRows,
  toSupport,
  train,
} from './train.ts'
import { findWarnings, type PeriodTotals, type Warning } from './warnings.ts'

/** What is missing for a suggestion. */
export type Refusal = { missing: { what: string; have: number; need: number }[] }

/** A feature: what is known of it, and what becomes of its points. */
export type SuggestedWeight = {
  feature: string
  before: number
  after: number
  why: FeatureOutcome
  /** Sessions of the older period. */
  support: Support
  /**
   * In log odds, 0 where it gets no weight, with the interval of 95 %, which holds the estimate
   * too; null where no labelled session has it.
   */
  effect: { log_odds: number; low: number; high: number } | null
  /** The interval in points; null where it gets no weight. */
  points: Range | null
}

export type Suggestion = {
  policy: Policy
  /** All features, those that change first, then by points. */
  weights: SuggestedWeight[]
  /** Points of one unit of log odds. */
  factor: number
  thresholds: { before: Policy['thresholds']; after: Policy['thresholds'] }
  totals: Record<Period, PeriodTotals>
  days: Readonly<Record<Period, number>>
  compared: Compared
  rules: SimpleRule[]
  warnings: Warning[]
  seed: number
}

export type SuggestOptions = { freed: Freed; seed: number }

/** Nothing but the weights may change. */
export const onlyWeights: Freed = { caps: false, floors: false }

/** Suggests a policy, or says what is missing. */
export function suggestPolicy(
  active: Policy,
  table: OutcomeTable,
  { freed, seed }: SuggestOptions,
): { suggestion: Suggestion } | { refused: Refusal } {
  const totals = { older: toTotals(table, 'older'), newer: toTotals(table, 'newer') }
  const missing = findMissingOutcomes(totals)
  if (missing.length > 0) return { refused: { missing } }
  const featureSet = toFeatures(active)
  const { features } = featureSet
  const columns = toColumns(table.rows, table, featureSet)
  const older = pickPeriod(table.rows, columns, 'older')
  const newer = pickPeriod(table.rows, columns, 'newer')
  const counted = toCountedRows(older.rows, older.columns)
  const trained = train(
    counted,
    features.map(({ today }) => today > 0),
  )
  const scaling = { active, features, trained, freed, table, rows: older.rows }
  const scaled = toScorecard(scaling)
  const card = { ...scaled, policy: { ...scaled.policy, name: toName(active.name) } }
  const support = {
    older: toSupport(older.rows, older.columns, features.length),
    newer: toSupport(newer.rows, newer.columns, features.length),
  }
  const compared = comparePolicies(table, { active, suggested: card.policy }, seed + 1)
  return {
    suggestion: {
      policy: card.policy,
      weights: toWeights(features, { trained, card, support: support.older }),
      factor: card.factor,
      thresholds: { before: active.thresholds, after: card.policy.thresholds },
      totals,
      days: table.days,
      compared,
      rules: findSimpleRules(table.rows, columns, { features, days: table.days }),
      warnings: [
        ...judgeComparison(compared, totals.newer),
        ...findWarnings(features, { trained, support, totals }),
      ],
      seed,
    },
  }
}

const suffix = ', from outcomes'
/** The longest name of a document. */
const nameMax = 100

const toName = (name: string): string =>
  name.endsWith(suffix) ? name : name.slice(0, nameMax - suffix.length) + suffix

function toTotals(table: OutcomeTable, period: Period): PeriodTotals {
  const totals = { fraud: 0, legitimate: 0, unlabelled: 0, judged: 0 }
  for (const row of table.rows) {
    if (row.period !== period) continue
    totals.fraud += row.fraud
    totals.legitimate += row.legitimate
    totals.unlabelled += row.unlabelled
    totals.judged += row.judged
  }
  return totals
}

/** One class alone is a class of which 0 are there. */
function findMissingOutcomes(totals: Record<Period, PeriodTotals>): Refusal['missing'] {
  const kinds = ['fraud', 'legitimate'] as const
  const all = kinds.flatMap((what) => {
    const have = totals.older[what] + totals.newer[what]
    return have < outcomesMin ? [{ what: `${what} sessions`, have, need: outcomesMin }] : []
  })
  if (all.length > 0) return all
  return periods.flatMap((period) =>
    kinds.flatMap((what) => {
      const have = totals[period][what]
      return have < casesMin ? [{ what: `${period} ${what} sessions`, have, need: casesMin }] : []
    }),
  )
}

function pickPeriod(
  rows: readonly OutcomeRow[],
  columns: readonly number[][],
  period: Period,
): { rows: OutcomeRow[]; columns: number[][] } {
  return {
    rows: rows.filter((row) => row.period === period),
    columns: columns.filter((_, at) => rows[at]!.period === period),
  }
}

function toWeights(
  features: readonly Feature[],
  known: {
    trained: Trained
    card: Scorecard
    support: readonly Support[]
  },
): SuggestedWeight[] {
  const { trained, card, support } = known
  const toPoints = (logOdds: number) =>
    Math.min(100, Math.max(0, Math.round(card.factor * logOdds)))
  const weights = features.map(({ name, today }, at): SuggestedWeight => {
    const why = trained.outcomes[at]!
    const interval = trained.intervals.get(at)
    const logOdds = trained.fit.coefficients[at]!
    const effect =
      interval === undefined
        ? null
        : {
            log_odds: logOdds,
            low: Math.min(logOdds, interval.low),
            high: Math.max(logOdds, interval.high),
          }
    return {
      feature: name,
      before: today,
      after: card.points[at]!,
      why,
      support: support[at]!,
      effect,
      points:
        effect === null || why !== 'weighed'
          ? null
          : { low: toPoints(effect.low), high: toPoints(effect.high) },
    }
  })
  const isChanged = ({ before, after }: SuggestedWeight) => Number(before !== after)
  return weights.sort(
    (a, b) =>
      isChanged(b) - isChanged(a) ||
      b.after - a.after ||
      b.before - a.before ||
      (a.feature < b.feature ? -1 : 1),
  )
}

function judgeComparison(compared: Compared, newer: PeriodTotals): Warning[] {
  const { recall_gained_range: range } = compared
  const few = newer.fraud < outcomesMin / 2
  return [
    ...(range.low > 0
      ? []
      : [
          {
            kind: 'no_better' as const,
            feature: null,
            detail:
              `with equal alerts it catches ${toGainText(range)} of the newer fraud than the ` +
              'active policy',
          },
        ]),
    ...(few
      ? [
          {
            kind: 'few_newer' as const,
            feature: null,
            detail: `only ${newer.fraud} of the newer sessions are known to be fraud`,
          },
        ]
      : []),
  ]
}

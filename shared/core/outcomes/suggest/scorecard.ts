/**
 * From log odds to points: every unit of log odds brings the same number of points, so that points
 * add up as evidence does. The number is chosen so that the policy asks as often as the active one.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { countAlerts } from '../score-distribution.ts'
import { type Feature, listFloorSignals, mapCategories, withPoints } from './features.ts'
import { countScores, type OutcomeRow, type OutcomeTable, scoreEvents } from './outcome-table.ts'
import type { Trained } from './train.ts'

/** What may change beside the weights. */
export type Freed = {
  /** Caps, groups, halving and strong evidence go, so that points add up to 100. */
  caps: boolean
  /** Floors go where enough is known of each of their signals. */
  floors: boolean
}

export type Scorecard = {
  policy: Policy
  /** Of each feature. */
  points: number[]
  /** Points for one unit of log odds. */
  factor: number
}

type Scaling = {
  active: Policy
  features: readonly Feature[]
  trained: Trained
  freed: Freed
  table: OutcomeTable
  /** Those that set the scale: the older sessions. */
  rows: readonly OutcomeRow[]
}

const factorMax = 64
const searches = 16

/**
 * Makes the policy that raises as many alerts as the active one, or a few less, and blocks neither
 * more sessions nor more honest ones.
 */
export function toScorecard(scaling: Scaling): Scorecard {
  const { active, rows, table } = scaling
  const before = countScores(rows, scoreEvents(active, table.events))
  const wanted = countAlerts(before, active.thresholds.review)
  const base = freeLimits(scaling)
  const build = (factor: number): Scorecard => {
    const points = toPoints(scaling, base, factor)
    return { policy: withPoints(base, scaling.features, points), points, factor }
  }
  const alertsOf = ({ policy }: Scorecard) =>
    countAlerts(countScores(rows, scoreEvents(policy, table.events)), policy.thresholds.review)
  let low = 0
  let high = factorMax
  let best = build(0)
  for (let n = 0; n < searches; n++) {
    const middle = (low + high) / 2
    const card = build(middle)
    if (alertsOf(card) > wanted) high = middle
    else {
      low = middle
      best = card
    }
  }
  return { ...best, policy: raiseBlock(best.policy, scaling) }
}

/**
 * Points of every feature. Where too few cases are known they are those of today, or what the cases
 * allow at most: a signal that many honest users have is not worth a review, even if nobody knows
 * whether it is worth something.
 */
function toPoints({ trained, features }: Scaling, base: Policy, factor: number): number[] {
  const inFloors = listFloorSignals(base)
  return features.map(({ today, of }, at) => {
    const outcome = trained.outcomes[at]!
    const least = of.kind === 'signal' && today > 0 && inFloors.has(of.path) ? 1 : 0
    const ceiling = trained.ceilings[at]!
    const allowed = Number.isFinite(ceiling) ? Math.floor(factor * ceiling) : today
    const fitted =
      outcome === 'too_few'
        ? Math.min(today, allowed)
        : Math.round(factor * trained.fit.coefficients[at]!)
    return Math.min(100, Math.max(least, fitted))
  })
}

function freeLimits({ active, freed, features, trained }: Scaling): Policy {
  let policy = active
  if (freed.caps) {
    policy = mapCategories(policy, (_, own) => {
      if (own === undefined) return own
      const { groups: _groups, ...rest } = own
      return { ...rest, cap: 100 } as typeof own
    })
    policy = { ...policy, halving: [], strongEvidence: null }
  }
  if (!freed.floors) return policy
  const unsure = new Set(
    features.flatMap(({ of }, at) =>
      of.kind === 'signal' && trained.outcomes[at] === 'too_few' ? [of.path] : [],
    ),
  )
  // Of a floor for any signal, those stay of which too few cases are known.
  const floors = policy.floors.flatMap((floor) => {
    const kept = floor.signals.filter((path) => unsure.has(path))
    if (floor.need === 'all') return kept.length > 0 ? [floor] : []
    return kept.length > 0 ? [{ ...floor, signals: kept }] : []
  })
  return { ...policy, floors }
}

/** The lowest threshold from today's on that blocks neither more sessions nor more honest ones. */
function raiseBlock(policy: Policy, { active, rows, table }: Scaling): Policy {
  const block = active.thresholds.block
  const before = countScores(rows, scoreEvents(active, table.events))
  const honest = (counts: typeof before, from: number) =>
    counts.legitimate.slice(from).reduce((sum, count) => sum + count, 0)
  for (let raised = block; raised < 101; raised++) {
    const next = { ...policy, thresholds: { ...policy.thresholds, block: raised } }
    const after = countScores(rows, scoreEvents(next, table.events))
    const isNoMore = countAlerts(after, raised) <= countAlerts(before, block)
    if (isNoMore && honest(after, raised) <= honest(before, block)) return next
  }
  return { ...policy, thresholds: { ...policy.thresholds, block: 101 } }
}

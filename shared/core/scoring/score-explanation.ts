/**
 * Explains a score step by step: the points of every signal or why it has none, the points of each
 * category, and what raised or limited the sum. It reads the steps of the scorer itself, so both
 * always agree.
 */
import { z } from 'zod'
import { findScoredSignal } from '#shared/core/policies/declared-signals.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import {
  categories,
  noServerSignals,
  type ServerSignals,
  type SignalCategory,
  type Signals,
  seenBy,
  serverCategories,
  toSeenBy,
} from '#shared/core/signals/signal-definition.ts'
import { reasonSchema } from './reason-schema.ts'
import { actions } from './score.ts'
import { type CompiledPolicy, compileRules, toSoftLimit } from './score-rules.ts'
import { findSuppression, type Tally } from './score-tally.ts'
import { type Assessment, assess } from './scoring.ts'
import type { ScoringContext } from './suppressions.ts'
import { findTrustedInstaller } from './trusted-installers.ts'
import { isVerifiedHere, verifiedHereText } from './verified-verdicts.ts'

/** How a signal that was sent counted. */
const signalOutcomes = [
  'scored',
  /** `null`: the client did not measure it. */
  'not_measured',
  /** Measured, and not detected. */
  'clean',
  /** Known, but the policy gives it no weight. */
  'weightless',
  /** Neither in the catalog nor declared by the policy. */
  'unknown',
  /** It would have scored, but for a suppression, a trusted installer or a verified verdict. */
  'suppressed',
] as const

const pointsSchema = z.int().min(0)
const pathsSchema = z.array(z.string())

const signalStepSchema = z.object({
  signal: z.string().meta({ description: 'Category and name.' }),
  seen_by: z.enum(seenBy).meta({
    description:
      'Who observed it: `client` sent it in its body, `server` saw or verified it itself.',
  }),
  value: z.unknown().meta({ description: 'What was sent or observed.' }),
  outcome: z.enum(signalOutcomes).meta({
    description:
      'What became of it. `not_measured`: it is null. `clean`: nothing is wrong. `weightless`: ' +
      'the policy gives it no weight. `unknown`: neither the catalog nor the policy has it. ' +
      '`suppressed`: it would have scored.',
  }),
  points: pointsSchema.meta({ description: 'Its points before anything limits them.' }),
  suppressed_because: z.string().optional().meta({ description: 'Why it scores nothing.' }),
})

const categoryStepSchema = z.object({
  category: z.enum([...categories, ...serverCategories]),
  sum: pointsSchema.meta({ description: 'What its signals add up to.' }),
  groups: z
    .array(z.object({ signals: pathsSchema, cap: pointsSchema, sum: pointsSchema }))
    .meta({ description: 'Detected signals of one fact: together at most the cap.' }),
  cap: pointsSchema.meta({ description: 'The most that the category brings.' }),
  strong_evidence: pathsSchema.nullable().meta({
    description: 'The critical signals that filled the category to its cap; null if they did not.',
  }),
  capped: pointsSchema.meta({ description: 'After groups, strong evidence and cap.' }),
  halved_by: pathsSchema.meta({ description: 'The signals that confirm its halving.' }),
  halved: pointsSchema.meta({
    description:
      'After halving, of which so much is given back that no confirmation lowers a score.',
  }),
  soft_limit: pointsSchema.nullable().meta({
    description: 'The most that all soft categories bring; null for one that can lead to BLOCK.',
  }),
  points: pointsSchema.meta({ description: 'What the category brings.' }),
})

export const scoreExplanationSchema = z
  .object({
    signals: z.array(signalStepSchema),
    categories: z.array(categoryStepSchema),
    sum: pointsSchema.meta({ description: 'What the categories add up to.' }),
    missing: z
      .object({ signals: pathsSchema, points: pointsSchema.max(100) })
      .nullable()
      .meta({ description: 'Required signals that were not measured, and the points of that.' }),
    total: pointsSchema.max(100).meta({ description: 'Both together, limited to 100.' }),
    floor: z
      .object({
        signal: z.string(),
        with: pathsSchema.optional().meta({ description: 'The signals that it needed beside it.' }),
        score: pointsSchema.max(100),
      })
      .nullable()
      .meta({ description: 'The signal that lifted the score, and to what; null if none did.' }),
    score: pointsSchema.max(100),
    thresholds: z.object({ review: pointsSchema, block: pointsSchema }),
    action: z.enum(actions),
    reasons: z.array(reasonSchema),
  })
  .meta({ description: 'Every step from signals to a score.' })

type ScoreExplanation = z.infer<typeof scoreExplanationSchema>
type SignalStep = z.infer<typeof signalStepSchema>
type CategoryStep = z.infer<typeof categoryStepSchema>

/**
 * Explains the score of an event under a policy.
 * @returns every step; `score`, `action` and `reasons` equal those of `compilePolicy`
 */
export function explainScore(
  policy: Policy,
  signals: Signals,
  context: ScoringContext,
  server: ServerSignals = noServerSignals,
): ScoreExplanation {
  const compiled = compileRules(policy)
  const { score, tallied } = assess(compiled, { signals, server, context })
  const explaining: Explaining = {
    policy,
    compiled,
    tallied,
    context,
    server,
    installer: findTrustedInstaller(compiled.trust, signals),
  }
  const sum = tallied?.sum ?? 0
  return {
    signals: [
      ...categories.map((category) => [category, signals[category]] as const),
      ...serverCategories.map((category) => [category, server[category] ?? {}] as const),
    ].flatMap(([category, own]) =>
      Object.entries(own).map(([name, value]) =>
        explainSignal(explaining, { category, name, value }),
      ),
    ),
    categories: compiled.categories.map((rules) => {
      const tally = tallied?.tallies.find((one) => one.category === rules)
      const soft_limit = rules.soft ? toSoftLimit(compiled.thresholds) : null
      return { ...explainCategory(rules, tally), soft_limit }
    }),
    sum,
    missing: tallied?.missing ?? null,
    total: tallied?.total ?? 0,
    floor: tallied?.floor ?? null,
    score: score.score,
    thresholds: { review: policy.thresholds.review, block: policy.thresholds.block },
    action: score.action,
    reasons: score.reasons,
  }
}

type Explaining = {
  policy: Policy
  compiled: CompiledPolicy
  tallied: Assessment['tallied']
  context: ScoringContext
  server: ServerSignals
  /** The trusted installer, or null. */
  installer: string | null
}

function explainSignal(
  { policy, compiled, tallied, context, server, installer }: Explaining,
  sent: { category: SignalCategory; name: string; value: unknown },
): SignalStep {
  const { category, name, value } = sent
  const signal = `${category}.${name}`
  const step = (outcome: SignalStep['outcome'], points = 0) => ({
    signal,
    seen_by: toSeenBy(category),
    value,
    outcome,
    points,
  })
  const tally = tallied?.tallies.find((one) => one.category.category === category)
  const hit = tally?.hits.find((one) => one.rule.path === signal)
  if (hit !== undefined) return step('scored', hit.points)
  if (findScoredSignal(policy, category, name) === undefined) return step('unknown')
  if (value === null) return step('not_measured')
  const rules = compiled.categories.find((one) => one.category === category)
  const rule = rules?.rules.get(name)
  if (rule === undefined) return step('weightless')
  if (rule.points(value) === 0) return step('clean')
  const reason =
    installer !== null && rule.silenced
      ? `The policy trusts the installer ${installer}.`
      : rule.wordOf !== null && isVerifiedHere(rule.wordOf, server)
        ? verifiedHereText
        : findSuppression(rule, context)
  if (reason === null) return step('clean')
  return { ...step('suppressed'), suppressed_because: reason }
}

function explainCategory(
  { category, cap, groupCaps }: CompiledPolicy['categories'][number],
  tally: Tally | undefined,
): Omit<CategoryStep, 'soft_limit'> {
  if (tally === undefined) {
    const nothing = { sum: 0, capped: 0, halved: 0, points: 0 }
    return { category, ...nothing, groups: [], cap, strong_evidence: null, halved_by: [] }
  }
  const { sum, groupSums, grouped, capped, halved, halvedBy, points, hits } = tally
  const pathsOf = (matches: (hit: Tally['hits'][number]) => boolean) =>
    hits
      .filter(matches)
      .map((hit) => hit.rule.path)
      .sort()
  return {
    category,
    sum,
    groups: groupCaps.flatMap((groupCap, group) => {
      const paths = pathsOf((hit) => hit.rule.group === group)
      return paths.length < 2 ? [] : [{ signals: paths, cap: groupCap, sum: groupSums[group]! }]
    }),
    cap,
    strong_evidence: capped > grouped ? pathsOf((hit) => hit.rule.critical) : null,
    capped,
    halved_by: halvedBy,
    halved,
    points,
  }
}

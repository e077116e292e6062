/**
 * Policies are data: what each signal weighs, category caps, floors, halving, thresholds and
 * velocity rules. A policy document is content-addressed, so ten thousand tenants on the default
 * share one.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { balancedPolicy } from './policies/balanced.ts'

const weight = z.number().int().min(0).max(100)

/**
 * What a signal weighs: a number for a boolean that is true, or a rule by value. `(empty)` matches
 * an empty list of strings.
 */
export const signalWeightSchema = z.union([
  weight,
  z.strictObject({ whenFalse: weight }),
  z.strictObject({ atLeast: z.number(), weight }),
  z.strictObject({
    values: z.record(z.string(), weight),
    /** In a list of strings, any of these means that the rule does not act. */
    unless: z.array(z.string()).optional(),
  }),
])

const categoryPolicySchema = z.strictObject({
  cap: weight,
  signals: z.record(z.string(), signalWeightSchema),
})

export const velocityMetrics = ['sessions_per_device', 'users_per_device'] as const

export const velocityRuleSchema = z.strictObject({
  metric: z.enum(velocityMetrics),
  /** At most 30 days: what the scorer looks back. */
  windowSeconds: z.number().int().min(60).max(2_592_000),
  /** The rule acts when the count is above this. */
  threshold: z.number().int().min(0),
  weight,
})

const categoryName = z.enum(['root', 'emulator', 'debugger', 'tamper', 'ecosystem', 'network'])
/** `category.signal` */
const signalPath = z.string().regex(/^[a-z]+\.[a-z0-9_]+$/)

export const policySchema = z
  .strictObject({
    schema: z.literal(1),
    name: z.string().min(1).max(100),
    thresholds: z.strictObject({ review: weight.min(1), block: weight.min(1) }),
    categories: z.strictObject({
      root: categoryPolicySchema,
      emulator: categoryPolicySchema,
      debugger: categoryPolicySchema,
      tamper: categoryPolicySchema,
      ecosystem: categoryPolicySchema,
      network: categoryPolicySchema,
    }),
    halving: z
      .strictObject({ category: categoryName, confirmedBy: z.array(signalPath) })
      .nullable(),
    strongEvidence: z.strictObject({ signals: z.number().int().min(2) }).nullable(),
    floors: z.array(z.strictObject({ score: weight, signals: z.array(signalPath) })),
    softCategories: z.array(categoryName),
    /** Each rule is a count per event and a column of the scorer's query. */
    velocity: z.array(velocityRuleSchema).max(32),
  })
  .refine((policy) => policy.thresholds.review <= policy.thresholds.block, {
    path: ['thresholds'],
    message: 'review must not be above block',
  })

export type Policy = z.infer<typeof policySchema>
export type SignalWeight = z.infer<typeof signalWeightSchema>
export type VelocityRule = z.infer<typeof velocityRuleSchema>

/** The policy of a tenant that never set one. */
export const defaultPolicy: Policy = balancedPolicy

/** The content address of a policy document: 32 hex characters of SHA-256 over its JSON text. */
export function toPolicyHash(policy: Policy): string {
  return hash('sha256', JSON.stringify(policy), 'hex').slice(0, 32)
}

/**
 * The policy document: weights of signals, category caps, floors, halving, thresholds, rules on
 * risk features, and suppressions. Documents are content-addressed, so ten thousand tenants on the
 * default share one. Every stored document must stay readable: a new field needs a default with
 * which old documents score as before.
 */

import { hash } from 'node:crypto'
import { z } from 'zod'
import { decisions } from '#shared/core/alerts/dispositions.ts'
import {
  declaredNameMax,
  declaredSignalsMax,
  requiredSignalsMax,
  silencedSignalsMax,
  trustedInstallersMax,
  velocityStepsMax,
} from '#shared/core/base/limits/policies.ts'
import {
  categories,
  isServerCategory,
  type SignalCategory,
  serverCategories,
  signalTypes,
} from '#shared/core/signals/signal-definition.ts'
import { velocityMetrics } from './velocity-metrics.ts'

const points = z.number().int().min(0).max(100)

/** The forms of a weight that depends on the value; each fits some types of signal only. */
export const weightForms = {
  whenFalse: z
    .strictObject({ whenFalse: points })
    .describe('The points of a boolean that is false, such as a check that did not pass.'),
  atLeast: z
    .strictObject({ atLeast: z.number(), weight: points })
    .describe('The points of a number from `atLeast` on.'),
  values: z
    .strictObject({
      values: z
        .record(z.string(), points)
        .describe('Points by value; of a list the highest counts. `(empty)` is an empty list.'),
      unless: z
        .array(z.string())
        .optional()
        .describe('A list that holds one of these brings no points.'),
    })
    .describe('The points of a text or a list of texts, by its value.'),
} as const

/** The weight of a signal: points for a boolean that is true, or a form by value. */
const signalWeightSchema = z
  .union(
    [
      points.describe('The points of a boolean that is true; 0 is context that never scores.'),
      weightForms.whenFalse,
      weightForms.atLeast,
      weightForms.values,
    ],
    {
      error:
        'must be a whole number from 0 to 100, {"whenFalse"}, {"atLeast","weight"} or {"values"}',
    },
  )
  .describe('What the signal weighs. Absence and null are "not measured" and never weigh anything.')

const signalGroupSchema = z
  .strictObject({
    cap: points.describe('The most points that the signals of the group bring together.'),
    signals: z.array(z.string()).min(2).max(64).describe('Names of signals of this category.'),
  })
  .describe('Signals of one fact, which should not count several times.')

const categoryPolicySchema = z
  .strictObject({
    cap: points.describe('The most points that the category brings.'),
    signals: z
      .record(z.string(), signalWeightSchema)
      .describe('Weights by signal; one that is not named weighs 0.'),
    groups: z
      .array(signalGroupSchema)
      .max(16)
      .optional()
      .describe('Groups with caps of their own, below the cap of the category.'),
  })
  .describe('A category scores the sum of its signals, limited by its groups and its cap.')

const serverCategoriesSchema = z
  .strictObject({
    attestation: categoryPolicySchema.optional(),
    connection: categoryPolicySchema.optional(),
  })
  .describe(
    'The categories that the service itself observes or verifies, weighed as those of the client. ' +
      'A category that is left out scores nothing. With `attestation`, what the client says of a ' +
      'verdict that the service verified scores nothing.',
  )

/** Metrics of a phone, which are counted over its installs up to the event's own. */
export const phoneMetrics: readonly VelocityMetric[] = ['installs_per_phone', 'users_per_phone']

const velocityStepSchema = z.strictObject({
  above: z.number().int().min(1).describe('The step holds when the count is above this.'),
  weight: points.describe('Points in place of the weight of the rule or of a lower step.'),
})

const velocityRuleSchema = z.strictObject({
  metric: z
    .enum(velocityMetrics)
    .describe(
      'What is counted: different sessions, users, ... ; for `signal_flips`, changes; for ' +
        '`new_device_of_user`, devices of the user from before it came to this one, within a day; ' +
        'for `impossible_travel`, 1 where the user was elsewhere sooner than anybody travels. ' +
        '`installs_per_phone` counts installs up to the event’s own, at most 21. ' +
        'Countries and networks are those of the address, which a VPN changes; carriers, companies ' +
        'and schools have many devices and users behind one network.',
    ),
  windowSeconds: z
    .number()
    .int()
    .min(60)
    .max(2_592_000)
    .describe('The window before the event; at most 30 days.'),
  threshold: z.number().int().min(0).describe('The rule acts when the count is above this.'),
  weight: points.describe('Points added to the risk score; 0 switches the rule off.'),
  steps: z
    .array(velocityStepSchema)
    .min(1)
    .max(velocityStepsMax)
    .optional()
    .describe('Points that grow with the count: rising counts above the threshold, each heavier.'),
})

const categoryName = z.enum(categories)
const anyCategoryName = z.enum([...categories, ...serverCategories])
const signalPath = z
  .string()
  .regex(/^[a-z]+\.[A-Za-z0-9_]+$/, 'must be a signal as `category.signal`')
  .describe('A signal as `category.signal`.')

const signalOrCategory = z
  .string()
  .regex(/^[a-z]+\.([A-Za-z0-9_]+|\*)$/, 'must be `category.signal` or `category.*`')

const halvingRuleSchema = z.strictObject({
  category: categoryName.describe('The category that counts half.'),
  confirmedBy: z.array(signalPath).describe('Any of these signals, when it scores, halves it.'),
})
export const halvingSchema = z.array(halvingRuleSchema).max(6)

/** Older documents have one rule or null. */
function toHalvingRules(value: unknown): unknown {
  if (value === null) return []
  const old = typeof value === 'object' && !Array.isArray(value)
  return old ? [value] : value
}

/** Signals that do not score for some SDK versions or platforms, for a faulty release. */
const suppressionSchema = z.strictObject({
  signals: z
    .array(signalOrCategory)
    .min(1)
    .max(100)
    .describe('What scores nothing: `category.signal`, or `category.*` for all of a category.'),
  sdkVersions: z
    .array(z.string().min(1).max(64))
    .min(1)
    .max(100)
    .optional()
    .describe('SDK versions; `4.2.*` is all that begin with `4.2.`. Left out, all.'),
  platforms: z
    .array(z.string().min(1).max(64))
    .min(1)
    .max(20)
    .optional()
    .describe('Platforms, whatever their case. Left out, all.'),
  expiresAt: z.iso
    .datetime({ offset: true })
    .nullable()
    .describe('Events received from then on score as if it were not there; null is never.'),
  reason: z.string().min(1).max(500).describe('Why; explanations of scores show it.'),
})

const thresholdsSchema = z
  .strictObject({
    review: points.min(1).describe('REVIEW from this score.'),
    block: z
      .number()
      .int()
      .min(1)
      .max(101)
      .describe('BLOCK from this score; 101 is never, since no score is above 100.'),
  })
  .refine(({ review, block }) => review <= block, 'review must not be above block')

const floorSchema = z.strictObject({
  score: points,
  signals: z
    .array(signalPath)
    .describe('Any of these, when it scores, lifts the score to `score`.'),
  need: z
    .enum(['any', 'all'])
    .optional()
    .describe('`all`: only when every one of the signals scores. Left out, any of them.'),
  values: z
    .array(z.string())
    .min(1)
    .optional()
    .describe(
      'Values that score, as in a weight by value: only these of each signal lift the score, and others ' +
        'that weigh the same.',
    ),
  pastSoftLimit: z
    .boolean()
    .optional()
    .describe('Lifts to BLOCK although all of its signals are of soft categories.'),
})

const declaredSignalSchema = z.strictObject({
  type: z.enum(signalTypes).describe('A value of another type scores nothing.'),
  description: z.string().min(1).max(200).optional(),
})

/** Names that a tenant gives: with letters of both cases, as SDKs write them. */
const declaredSignalPath = z
  .string()
  .max('ecosystem.'.length + declaredNameMax)
  .regex(
    /^[a-z]+\.[A-Za-z][A-Za-z0-9_]*$/,
    'must be `category.signal` with a name of letters, digits and _',
  )
  .refine(
    (path) => path.length - path.indexOf('.') - 1 <= declaredNameMax,
    `must have a name of at most ${declaredNameMax} characters`,
  )

const declaredSignalsSchema = z
  .record(declaredSignalPath, declaredSignalSchema)
  .refine(
    (signals) => Object.keys(signals).length <= declaredSignalsMax,
    `must have at most ${declaredSignalsMax} signals`,
  )
  .describe(
    'Signals of the tenant itself, by `category.signal`, that the catalog does not have. They can ' +
      'be weighed as those of the catalog and count towards the flag TENANT_SIGNAL.',
  )

const trustedInstallersSchema = z
  .strictObject({
    packages: z
      .array(z.string().min(1).max(255))
      .min(1)
      .max(trustedInstallersMax)
      .describe('Values of `tamper.installer_package`, such as `com.sec.android.app.samsungapps`.'),
    silences: z
      .array(signalPath)
      .min(1)
      .max(silencedSignalsMax)
      .optional()
      .describe('What then scores nothing. Left out, `tamper.untrusted_install_source`.'),
  })
  .describe(
    'Installers that are as good as the app store. The app itself names its installer, so silence ' +
      'only what says where the app came from.',
  )

const requiredSignalsSchema = z
  .strictObject({
    signals: z
      .array(signalOrCategory)
      .min(1)
      .max(requiredSignalsMax)
      .describe('Each must be measured: not left out and not null; of `category.*` any signal.'),
    weight: points.describe('Points added to the score when one is missing; 0 switches it off.'),
  })
  .describe('What every event must measure. An event without it has the flag SIGNALS_MISSING.')

const scoreMismatchSchema = z
  .strictObject({
    threshold: z.number().int().min(1).max(100).describe('Points between the two scores.'),
    weight: points.describe('Points added to the risk score; 0 switches it off.'),
  })
  .describe('Acts when the score that the client sent differs from ours by more.')

const signalsMissingSchema = z
  .strictObject({
    threshold: z.number().int().min(0).max(5).describe('Acts when more categories are empty.'),
    usualShare: z.number().min(0.5).max(1).describe('The share of devices that fill a category.'),
    devicesMin: z.number().int().min(10).describe('Acts from this many devices to compare with.'),
    weight: points.describe('Points added to the risk score; 0 switches it off.'),
  })
  .describe(
    'Acts when more categories than the threshold are empty that the SDK version and platform of ' +
      'the event usually fill: on that share of at least so many devices, in 24 hours.',
  )

export const policySchema = z
  .strictObject({
    schema: z.literal(1).describe('The version of this format.'),
    name: z.string().min(1).max(100),
    thresholds: thresholdsSchema,
    categories: z.strictObject({
      root: categoryPolicySchema,
      emulator: categoryPolicySchema,
      debugger: categoryPolicySchema,
      tamper: categoryPolicySchema,
      ecosystem: categoryPolicySchema,
      network: categoryPolicySchema,
    }),
    serverCategories: serverCategoriesSchema.optional(),
    halving: z
      .preprocess(toHalvingRules, halvingSchema)
      .describe(
        'Categories that count half once a signal confirms why they would look bad anyway: ' +
          'emulators are normally rooted. It never makes one more detected signal lower a score.',
      ),
    strongEvidence: z
      .strictObject({ signals: z.number().int().min(2) })
      .nullable()
      .describe('So many signals of critical grade in one category fill it to its cap.'),
    floors: z.array(floorSchema).max(32).describe('Signals that are proof by themselves.'),
    softCategories: z
      .array(anyCategoryName)
      .describe(
        'Categories that, however bad, together stay one point below `thresholds.block`. Only a ' +
          'floor with `pastSoftLimit` lifts them further.',
      ),
    signals: declaredSignalsSchema.optional(),
    trustedInstallers: trustedInstallersSchema.optional(),
    requiredSignals: requiredSignalsSchema.optional(),
    suppressions: z
      .array(suppressionSchema)
      .max(100)
      .default([])
      .describe('Signals that score nothing for some SDK versions or platforms for a while.'),
    velocity: z
      .array(velocityRuleSchema)
      .max(32)
      .describe('Counts over time; each rule is a column of a query, hence the limit.'),
    correlationAloneMax: z
      .enum(decisions)
      .default('REVIEW')
      .describe(
        'The highest action for an event whose own signals are below `thresholds.review`: how far ' +
          'velocity, a score mismatch and missing signals alone may raise it.',
      ),
    scoreMismatch: scoreMismatchSchema.nullable().default(null),
    signalsMissing: signalsMissingSchema.nullable().default(null),
  })
  .describe('How a tenant scores signals and risk features, and which score leads to which action.')

export type Policy = z.output<typeof policySchema>
export type CategoryPolicy = z.output<typeof categoryPolicySchema>
export type SignalWeight = z.infer<typeof signalWeightSchema>
export type VelocityRule = z.infer<typeof velocityRuleSchema>
export type VelocityMetric = VelocityRule['metric']
export type TrustedInstallers = z.infer<typeof trustedInstallersSchema>
export type RequiredSignals = z.infer<typeof requiredSignalsSchema>
export type Suppression = z.infer<typeof suppressionSchema>

/** The categories of the client, then those of the service. */
const allCategories: readonly SignalCategory[] = [...categories, ...serverCategories]

/** What a policy weighs, by category in the order of the catalog. */
export function listCategoryPolicies(
  policy: Pick<Policy, 'categories' | 'serverCategories'>,
): (CategoryPolicy & { category: SignalCategory })[] {
  return allCategories.flatMap((category) => {
    const own = findCategoryPolicy(policy, category)
    return own === undefined ? [] : [{ category, ...own }]
  })
}

/** What a policy weighs of a category; undefined where it has no such server category. */
export const findCategoryPolicy = (
  policy: Pick<Policy, 'categories' | 'serverCategories'>,
  category: SignalCategory,
): CategoryPolicy | undefined =>
  isServerCategory(category) ? policy.serverCategories?.[category] : policy.categories[category]

/** 128 bits of SHA-256: no second document with the same address can be found. */
export const policyHashCharacters = 32

/** The content address of a policy document: 32 hex characters of SHA-256 over its JSON text. */
export function toPolicyHash(policy: Policy): string {
  return hash('sha256', JSON.stringify(policy), 'hex').slice(0, policyHashCharacters)
}

/**
 * The signal catalog as a tenant sees it: which signals it can send, which the service observes or
 * verifies itself, what they mean, and their weights in its policy. It lists every signal of the
 * catalog once, and in each category of the client then those that the policy declares; one that it
 * does not weigh has 0. The schemas describe the answers of the REST and the
 * admin API.
 */
import { z } from 'zod'
import { flagSchema, instantSchema } from '#shared/core/http/field-schemas.ts'
import {
  type DeclaredSignal,
  findScoredSignal,
  listDeclared,
} from '#shared/core/policies/declared-signals.ts'
import {
  type CategoryPolicy,
  findCategoryPolicy,
  type Policy,
  type SignalWeight,
} from '#shared/core/policies/policy.ts'
import { flags } from './flags.ts'
import {
  categories,
  grades,
  platforms,
  type SignalCategory,
  type SignalDefinition,
  seenBy,
  serverCategories,
  signalTypes,
  toSeenBy,
  type Vocabulary,
} from './signal-definition.ts'
import { fullCatalog } from './signals.ts'

/** The query of `GET /v1/di/signals`: there are no parameters. */
export const signalsQuerySchema = z.strictObject({})

const pointsSchema = z.int().min(0).max(100)

const weightSchema = z
  .union([
    pointsSchema.meta({ description: 'The points of a signal that is `true`.' }),
    z
      .object({ when_false: pointsSchema })
      .meta({ description: 'The points of a signal that is `false`.' }),
    z
      .object({ at_least: z.number(), weight: pointsSchema })
      .meta({ description: 'The points of a number from `at_least` on.' }),
    z
      .object({
        values: z.record(z.string(), pointsSchema).meta({
          description:
            'Points by value; of a list, the highest counts. `(empty)` is an empty list.',
        }),
        unless: z.array(z.string()).optional().meta({
          description: 'A list that holds one of these brings no points.',
        }),
      })
      .meta({ description: 'The points of a text or a list by its value.' }),
  ])
  .meta({
    description:
      'What the signal weighs for this tenant. Absence and `null` weigh nothing, 0 is context only.',
    examples: [40, { when_false: 30 }, { at_least: 5, weight: 12 }, { values: { FAILED: 30 } }],
  })
  .meta({ id: 'SignalWeight' })

const suppressedSchema = z
  .object({
    sdk_versions: z.array(z.string()).optional().meta({
      description: 'Only for these SDK versions; `4.2.*` is all that begin with `4.2.`.',
    }),
    platforms: z.array(z.string()).optional().meta({ description: 'Only for these platforms.' }),
    expires_at: instantSchema.nullable().meta({ description: 'Until then; null is for good.' }),
    reason: z.string(),
  })
  .meta({ id: 'SignalSuppression' })

const seenBySchema = z.enum(seenBy).meta({
  description:
    'Who observes it. `client`: it is what the body says. `server`: the service saw or verified it ' +
    'itself, and a body that carries it moves nothing.',
})

const signalSchema = z
  .object({
    signal: z.string().meta({
      description: 'Category and name: of a client, the path below `signals`.',
      examples: ['root.su_binary'],
    }),
    name: z.string(),
    seen_by: seenBySchema,
    type: z.enum(signalTypes).meta({
      description: 'What its value is; of a client any may be `null`, which is "not measured".',
    }),
    values: z
      .record(z.string(), z.array(z.string()))
      .nullable()
      .meta({
        description:
          'Every value of a text or a list, each with other words that score as it; upper, lower ' +
          'and camel case are the same. Other values score nothing. Of any text: null.',
        examples: [{ UNVERIFIED: ['orange'], FAILED: ['red'] }],
      }),
    platforms: z.array(z.enum(platforms)),
    grade: z.enum(grades).meta({
      description: 'How severe the sources consider it.',
    }),
    flag: flagSchema.meta({ description: 'The reason that it counts towards.' }),
    description: z.string(),
    sources: z.array(z.string()).meta({
      description: 'The public SDKs and documents that have it; none for a declared one.',
    }),
    weight: weightSchema,
    suppressed: z.array(suppressedSchema).meta({
      description: 'Where it currently brings no points, for example for a faulty SDK release.',
    }),
  })
  .meta({ id: 'Signal' })

export const signalListSchema = z
  .object({
    policy: z
      .object({
        name: z.string(),
        version: z.int().min(1),
        policy_hash: z.string(),
        thresholds: z.object({
          review: pointsSchema.meta({ description: 'REVIEW from this score.' }),
          block: z.int().min(1).max(101).meta({
            description: 'BLOCK from this score; 101 is never.',
          }),
        }),
      })
      .meta({ description: 'The policy that scores the tenant’s telemetry now.' }),
    categories: z.array(
      z.object({
        category: z.enum([...categories, ...serverCategories]),
        seen_by: seenBySchema,
        cap: pointsSchema.meta({ description: 'The most that its signals bring together.' }),
        soft: z.boolean().meta({
          description: 'Whether it cannot lead to BLOCK without another category.',
        }),
        groups: z
          .array(z.object({ cap: pointsSchema, signals: z.array(z.string()) }))
          .meta({ description: 'Signals of one fact, by name, and the most they bring together.' }),
        signals: z.array(signalSchema),
      }),
    ),
    flags: z.record(z.string(), z.string()).meta({ description: 'What each reason flag means.' }),
  })
  .meta({
    description:
      'Every signal of the catalog and of the policy, and what it weighs for the tenant.',
  })
  .meta({ id: 'SignalList' })

export type SignalList = z.infer<typeof signalListSchema>
export type ListedSignal = z.infer<typeof signalSchema>

/** A tenant's policy and which version of its own it is. */
export type TenantPolicy = { policy: Policy; version: number; policyHash: string }

/**
 * Lists the catalog with what each signal weighs under a policy.
 * @param nowMs suppressions that have expired by then are left out
 */
export function toSignalList(tenantPolicy: TenantPolicy, nowMs: number): SignalList {
  const { policy, version, policyHash } = tenantPolicy
  const suppressions = toSuppressions(policy, nowMs)
  const declared = listDeclared(policy)
  return {
    policy: {
      name: policy.name,
      version,
      policy_hash: policyHash,
      thresholds: { review: policy.thresholds.review, block: policy.thresholds.block },
    },
    categories: [...categories, ...serverCategories].map((category) => {
      const { cap, groups, signals: weights } = findCategoryPolicy(policy, category) ?? unweighed
      const own = declared.filter((one) => one.category === category)
      const definitions: [string, SignalDefinition][] = [
        ...Object.entries(fullCatalog[category]),
        ...own.map((one): [string, SignalDefinition] => [one.name, toDefinition(policy, one)]),
      ]
      return {
        category,
        seen_by: toSeenBy(category),
        cap,
        soft: policy.softCategories.includes(category),
        groups: (groups ?? []).map((group) => ({ cap: group.cap, signals: group.signals })),
        signals: definitions.map(([name, definition]) => ({
          ...toDescription(category, name, definition),
          weight: toWeight(weights[name] ?? 0),
          suppressed: suppressions
            .filter(({ covers }) => covers(category, name))
            .map(({ shown }) => shown),
        })),
      }
    }),
    flags: Object.fromEntries(Object.entries(flags).map(([code, { about }]) => [code, about])),
  }
}

/** A category of the service in a policy that does not have it. */
const unweighed: CategoryPolicy = { cap: 0, signals: {} }

function toDefinition(policy: Policy, one: DeclaredSignal): SignalDefinition {
  const { type, grade, flag } = findScoredSignal(policy, one.category, one.name)!
  return { type, grade, flag, platforms: [...platforms], description: one.description, sources: [] }
}

function toDescription(category: SignalCategory, name: string, definition: SignalDefinition) {
  const { type, platforms, grade, flag, description, sources } = definition
  const signal = `${category}.${name}`
  const values = definition.values === undefined ? null : toLists(definition.values)
  const seen_by = toSeenBy(category)
  return { signal, name, seen_by, type, values, platforms, grade, flag, description, sources }
}

const toLists = (values: Vocabulary): Record<string, string[]> =>
  Object.fromEntries(Object.entries(values).map(([value, aliases]) => [value, [...aliases]]))

function toWeight(weight: SignalWeight): ListedSignal['weight'] {
  if (typeof weight === 'number') return weight
  if ('whenFalse' in weight) return { when_false: weight.whenFalse }
  if ('atLeast' in weight) return { at_least: weight.atLeast, weight: weight.weight }
  const { values, unless } = weight
  return { values, ...(unless === undefined ? {} : { unless }) }
}

type ShownSuppression = {
  covers: (category: SignalCategory, name: string) => boolean
  shown: ListedSignal['suppressed'][number]
}

function toSuppressions(policy: Policy, nowMs: number): ShownSuppression[] {
  return policy.suppressions
    .map((one) => ({
      ...one,
      expiresMs: one.expiresAt === null ? null : Date.parse(one.expiresAt),
    }))
    .filter(({ expiresMs }) => expiresMs === null || nowMs < expiresMs)
    .map(({ signals, sdkVersions, platforms, expiresMs, reason }) => ({
      covers: (category, name) =>
        signals.includes(`${category}.${name}`) || signals.includes(`${category}.*`),
      shown: {
        ...(sdkVersions === undefined ? {} : { sdk_versions: sdkVersions }),
        ...(platforms === undefined ? {} : { platforms }),
        expires_at: expiresMs === null ? null : new Date(expiresMs).toISOString(),
        reason,
      },
    }))
}

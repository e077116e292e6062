/**
 * The points that a policy gives to server signals which only the ordered scorer can know. A policy
 * without `serverCategories`, as every older one, gives none.
 */
import type { Policy } from './policy.ts'

type ServerCategoryWeights = { cap?: unknown; signals?: Record<string, unknown> }

const findCategory = (policy: object, category: string): ServerCategoryWeights | undefined =>
  (policy as { serverCategories?: Record<string, ServerCategoryWeights> }).serverCategories?.[
    category
  ]

/**
 * The points of a boolean server signal that is true.
 * @param path `category.signal`, such as `attestation.replayed`
 * @returns 0 to 100; 0 where the policy does not weigh it
 */
export function readServerWeight(policy: Pick<Policy, 'thresholds'>, path: string): number {
  const [category = '', name = ''] = path.split('.')
  const weight = findCategory(policy, category)?.signals?.[name]
  return typeof weight === 'number' ? weight : 0
}

/** The most points of a server category; 0 where the policy does not have it. */
export function readServerCap(policy: Pick<Policy, 'thresholds'>, category: string): number {
  const cap = findCategory(policy, category)?.cap
  return typeof cap === 'number' ? cap : 0
}

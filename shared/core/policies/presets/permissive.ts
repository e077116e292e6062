/**
 * "permissive": report only. It scores as "balanced" does, so a tenant can evaluate "balanced" on
 * its devices. It reviews what "balanced" blocks, and blocks nothing. One point differs: full
 * ecosystem and network reach 75, since there is no BLOCK that they must stay below.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from './balanced.ts'

export const permissivePolicy: Policy = {
  ...balancedPolicy,
  name: 'permissive',
  // No score reaches 101.
  thresholds: { review: balancedPolicy.thresholds.block, block: 101 },
}

/**
 * "permissive": report only. It scores as "balanced" does, so that what a tenant sees while it gets
 * to know its devices is what "balanced" would make of them; it reviews what "balanced" would
 * block, and blocks nothing, not even proof: a preset that is there to look must not lock anybody
 * out. Use "balanced" to block proof. One point is different: full ecosystem
 * and network come to 75 here, since there is no BLOCK that they must stay below.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from './balanced.ts'

export const permissivePolicy: Policy = {
  ...balancedPolicy,
  name: 'permissive',
  // 101 is never.
  thresholds: { review: balancedPolicy.thresholds.block, block: 101 },
}

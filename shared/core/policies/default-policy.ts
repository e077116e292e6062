/** The policy of a tenant that has not set one: "balanced". */
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { Policy } from './policy.ts'

export const defaultPolicy: Policy = balancedPolicy

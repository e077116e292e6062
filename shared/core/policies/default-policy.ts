/** The policy of a tenant that has not set one: "balanced". */
import type { Policy } from './policy.ts'
import { balancedPolicy } from './presets/balanced.ts'

export const defaultPolicy: Policy = balancedPolicy

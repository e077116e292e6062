/** The shipped policies by name. All but "balanced" are written as changes of it. */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from './balanced.ts'
import { mobilityPolicy } from './mobility.ts'
import { permissivePolicy } from './permissive.ts'
import { regulatedBankingPolicy } from './regulated-banking.ts'
import { strictPolicy } from './strict.ts'

export const presets = {
  permissive: permissivePolicy,
  balanced: balancedPolicy,
  strict: strictPolicy,
  'regulated-banking': regulatedBankingPolicy,
  mobility: mobilityPolicy,
} satisfies Record<string, Policy>

export type PresetName = keyof typeof presets

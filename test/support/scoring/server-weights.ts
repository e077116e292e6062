/** A policy that weighs server signals of attestation. */
import type { Policy } from '#shared/core/policies/policy.ts'

export const withServerWeights = (
  policy: Policy,
  attestation: { cap: number; signals: Record<string, unknown> },
): Policy => ({ ...policy, serverCategories: { attestation } }) as Policy

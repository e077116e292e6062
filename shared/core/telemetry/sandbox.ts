/**
 * Test devices of sandbox tenants: three device ids force an action whatever their signals are, so
 * that an integrator can test the whole path. In a live tenant they have no effect.
 */

import type { Policy } from '#shared/core/policies/policy.ts'
import type { Action, Reason, Score } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'

/** The flag of a forced score. Risk features do not change its action. */
export const sandboxForced: Flag = 'SANDBOX_FORCED'

const forcedActions = new Map<string, Action>([
  ['test-allow', 'ALLOW'],
  ['test-review', 'REVIEW'],
  ['test-block', 'BLOCK'],
])

/**
 * The score that a sandbox device id forces: the lowest of its action under the tenant's
 * thresholds.
 * @returns null when the device is not a test device
 */
export function findForcedScore(deviceId: string, thresholds: Policy['thresholds']): Score | null {
  const action = forcedActions.get(deviceId)
  if (action === undefined) return null
  const score = toForcedScore(action, thresholds)
  const reason: Reason = {
    code: sandboxForced,
    weight: score,
    evidence: { device_id: deviceId },
  }
  return { score, action, reasons: [reason] }
}

function toForcedScore(action: Action, thresholds: Policy['thresholds']): number {
  if (action === 'ALLOW') return 0
  // A policy that never blocks has a threshold of 101.
  return action === 'REVIEW' ? thresholds.review : Math.min(100, thresholds.block)
}

/** Velocity rules for tests. */
import type { VelocityRule } from '#shared/core/policies/policy.ts'

/** More than 20 sessions of a device within 5 minutes, unless changed. */
export const velocityRule = (some: Partial<VelocityRule> = {}): VelocityRule => ({
  metric: 'sessions_per_device',
  windowSeconds: 300,
  threshold: 20,
  weight: 30,
  ...some,
})

/**
 * A cheap test for the activity of a whole batch: only keys that exceed one of its limits are
 * counted in detail.
 */
import type { VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'

/** More than `threshold` within `windowSeconds`: a rule without its weight. */
type ScreenLimit = Pick<VelocityRule, 'threshold' | 'windowSeconds'> & {
  /** For new devices: the narrowest window, in which a device can be new that a wider one knows. */
  narrowestSeconds?: number
}

/** Limits by metric: whatever exceeds a rule of the policies exceeds one of them. */
export type VelocityScreen = ReadonlyMap<VelocityMetric, readonly ScreenLimit[]>

/** Limits of one metric: each is a count over every key, and a batch may have many policies. */
const limitsMax = 4

/**
 * The limits for screening the activity of many keys at once: a key that exceeds none of them
 * triggers no rule of any of the policies. Each window keeps a limit of its own while there are
 * few: one for all windows would match every device that does in an hour what a rule allows in five
 * minutes.
 */
export function toVelocityScreen(policies: Iterable<readonly VelocityRule[]>): VelocityScreen {
  const screen = new Map<VelocityMetric, readonly ScreenLimit[]>()
  for (const policy of policies) {
    for (const { metric, windowSeconds, threshold, weight } of policy) {
      if (weight === 0) continue
      const present = screen.get(metric) ?? []
      const limit = { threshold, windowSeconds }
      const limits =
        metric === 'new_device_of_user' ? [widen(present[0], limit)] : withLimit(present, limit)
      screen.set(metric, limits)
    }
  }
  return new Map([...screen].map(([metric, limits]) => [metric, toFew(limits)]))
}

/** Whether everything that exceeds the other limit exceeds this one too. */
const covers = (limit: ScreenLimit, other: ScreenLimit): boolean =>
  limit.threshold <= other.threshold && limit.windowSeconds >= other.windowSeconds

function widen(present: ScreenLimit | undefined, added: ScreenLimit): ScreenLimit {
  const limits = present === undefined ? [added] : [present, added]
  const narrowest = limits.map((one) => one.narrowestSeconds ?? one.windowSeconds)
  return {
    threshold: Math.min(...limits.map((one) => one.threshold)),
    windowSeconds: Math.max(...limits.map((one) => one.windowSeconds)),
    narrowestSeconds: Math.min(...narrowest),
  }
}

function withLimit(limits: readonly ScreenLimit[], added: ScreenLimit): readonly ScreenLimit[] {
  if (limits.some((limit) => covers(limit, added))) return limits
  return [...limits.filter((limit) => !covers(added, limit)), added]
}

function toFew(limits: readonly ScreenLimit[]): readonly ScreenLimit[] {
  if (limits.length <= limitsMax) return limits
  const threshold = Math.min(...limits.map((limit) => limit.threshold))
  const windowSeconds = Math.max(...limits.map((limit) => limit.windowSeconds))
  return [{ threshold, windowSeconds }]
}

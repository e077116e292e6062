/**
 * Suppressions: signals that do not score for some SDK versions or platforms until a date, so that
 * a faulty SDK release does not lock out customers. Whether one acts depends on the event's
 * `sdk_meta` and its time of receipt alone.
 */
import type { Suppression } from '#shared/core/policies/policy.ts'

/** The inputs of suppressions: the event's `sdk_meta` and its `received_at`, in ms since 1970. */
export type ScoringContext = { sdkVersion: string; platform: string; receivedAtMs: number }

/** Suppressions that may act on one signal. */
export type CompiledSuppression = { acts: (context: ScoringContext) => boolean; reason: string }

/**
 * Compiles a policy's suppressions.
 * @param paths every `category.signal` that can score: what `category.*` expands to
 * @returns the suppressions of each signal
 */
export function compileSuppressions(
  suppressions: readonly Suppression[],
  paths: readonly string[],
): ReadonlyMap<string, readonly CompiledSuppression[]> {
  const bySignal = new Map<string, CompiledSuppression[]>()
  for (const suppression of suppressions) {
    const compiled = compileSuppression(suppression)
    for (const path of expand(suppression.signals, paths)) {
      const present = bySignal.get(path)
      if (present === undefined) bySignal.set(path, [compiled])
      else present.push(compiled)
    }
  }
  return bySignal
}

function expand(signals: readonly string[], paths: readonly string[]): Set<string> {
  return new Set(
    signals.flatMap((signal) =>
      signal.endsWith('.*') ? paths.filter((path) => path.startsWith(signal.slice(0, -1))) : signal,
    ),
  )
}

function compileSuppression(suppression: Suppression): CompiledSuppression {
  const { reason, expiresAt, platforms } = suppression
  const expiresAtMs = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
  const isVersion = compileVersions(suppression.sdkVersions)
  const named = platforms === undefined ? null : new Set(platforms.map((one) => one.toLowerCase()))
  return {
    reason,
    acts: ({ sdkVersion, platform, receivedAtMs }) =>
      receivedAtMs < expiresAtMs &&
      isVersion(sdkVersion) &&
      (named === null || named.has(platform.toLowerCase())),
  }
}

/** `4.2.*` is every version that begins with `4.2.`; anything else is that version alone. */
function compileVersions(versions: readonly string[] | undefined): (version: string) => boolean {
  if (versions === undefined) return () => true
  const prefixes = versions.filter((one) => one.endsWith('.*')).map((one) => one.slice(0, -1))
  const exact = new Set(versions)
  return (version) => exact.has(version) || prefixes.some((prefix) => version.startsWith(prefix))
}

/** Which alerts a prevalence spike explains. Pure. */

type Raised = {
  platform?: string | null
  sdk_version?: string | null
  reasons: readonly { evidence: Record<string, unknown> }[]
}

/** Whether a signal that spikes, in its platform and SDK version, is a reason of an alert. */
export function isOfSpike(
  { platform, sdk_version: version, reasons }: Raised,
  spike: { signal: string; platform: string; sdk_version: string },
): boolean {
  if (version !== spike.sdk_version || platform !== spike.platform.toLowerCase()) return false
  return reasons.some(
    ({ evidence: { signals } }) => Array.isArray(signals) && signals.includes(spike.signal),
  )
}

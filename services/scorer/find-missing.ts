/**
 * What the SDK versions of a batch's events usually send and these events do not: asked only for
 * events that left a category empty, and only where the policy has a rule for it.
 */
import type { Finding } from '#shared/core/correlation.ts'
import type { AcceptedEvent } from '#shared/core/messages.ts'
import type { Policy } from '#shared/core/policy.ts'
import { findSignalsMissing, needsNorm, toFilledCategories } from '#shared/core/signals-missing.ts'
import type { Signals } from '#shared/core/telemetry.ts'
import type { SdkNormStore } from '#shared/io/sdk-norm-store.ts'

/** @returns the finding of each event that has one */
export async function findMissing(
  norms: SdkNormStore,
  events: readonly AcceptedEvent[],
  policyOf: (event: AcceptedEvent) => Policy,
): Promise<Map<AcceptedEvent, Finding>> {
  const open = events
    .map((event) => ({ event, filled: toFilledCategories(event.body.signals as Signals) }))
    .filter(({ event, filled }) => needsNorm(filled, policyOf(event)))
  const findings = new Map<AcceptedEvent, Finding>()
  if (open.length === 0) return findings
  const found = await norms.findNorms(
    open.map(({ event }) => ({
      tenantId: event.tenant_id,
      sdkVersion: event.body.sdk_meta.sdk_version,
      platform: event.body.sdk_meta.platform,
      atMs: event.received_at,
    })),
  )
  open.forEach(({ event, filled }, index) => {
    const sdkVersion = event.body.sdk_meta.sdk_version
    const about = { filled, norm: found[index]!, sdkVersion }
    const finding = findSignalsMissing(about, policyOf(event))
    if (finding !== null) findings.set(event, finding)
  })
  return findings
}

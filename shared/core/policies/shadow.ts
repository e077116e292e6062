/**
 * A shadow policy beside the active one: which of its versions decides an event, and what it
 * decides. It uses the same functions and inputs as the active policy. The version depends on the
 * event alone, so a redelivered event gets the same one. A shadow decision raises no alert.
 */
import { applyListReasons, findListReasons } from '#shared/core/lists/lists.ts'
import type { Score } from '#shared/core/scoring/score.ts'
import type { Scorer } from '#shared/core/scoring/scoring.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findForcedScore, sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import { weighsNoMore } from '#shared/core/velocity/attestation-findings.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { decideRisk, type RiskEvent, type RiskFeatures } from '#shared/core/velocity/risk.ts'
import type { Policy } from './policy.ts'

/**
 * Delay after which a new shadow version takes effect, in ms. Every scorer has loaded it by then,
 * so no event near the boundary is decided by the wrong version.
 */
export const shadowLeadMs = 3_000

/** A version of a tenant's shadow policy. */
export type ShadowVersion = {
  version: number
  /** The content address of its document; null switches the shadow off. */
  policyHash: string | null
  /** It decides events received from this time on, in ms since 1970. */
  effectiveAtMs: number
}

/**
 * The version that decides an event.
 * @param versions of its tenant, ascending; each takes effect later than the one before
 * @returns null when there was no shadow yet, or it was off
 */
export function findShadowVersion(
  versions: readonly ShadowVersion[],
  receivedAtMs: number,
): (ShadowVersion & { policyHash: string }) | null {
  for (let at = versions.length - 1; at >= 0; at--) {
    const { version, policyHash, effectiveAtMs } = versions[at]!
    if (effectiveAtMs > receivedAtMs) continue
    return policyHash === null ? null : { version, policyHash, effectiveAtMs }
  }
  return null
}

export type CompiledShadow = { policy: Policy; score: Scorer }

/** Compiles a shadow policy once for many events. */
export const compileShadow = (policy: Policy): CompiledShadow => ({
  policy,
  score: compilePolicy(policy),
})

/** A shadow decision: its score of the signals, and the risk with risk features. */
export type ShadowVerdict = { raspScore: number; risk: Risk }

type ShadowEvent = RiskEvent & Pick<AcceptedEvent, 'server_signals'>

/**
 * Decides an event by a shadow policy.
 * @param features of the event, for the shadow's own rules unless `sharesRiskFeatures`
 */
export function decideShadow(
  event: ShadowEvent,
  { policy, score }: CompiledShadow,
  features: RiskFeatures,
): ShadowVerdict {
  const computed =
    findForced(event, policy) ??
    score(event.body.signals as Signals, toContext(event), event.server_signals)
  // The list decision of that time holds under every policy.
  const scored = applyListReasons(computed, findListReasons(event.reasons))
  const verdict = { rasp_score: scored.score, rasp_action: scored.action, reasons: scored.reasons }
  const missing = isMissingOff(policy) ? null : features.missing
  const { body, received_at } = event
  const scoredEvent = { ...verdict, body, received_at }
  const risk = decideRisk(scoredEvent, policy, { ...features, missing })
  return { raspScore: scored.score, risk }
}

/** Forces the action of a sandbox test device wherever the edge forced it. */
function findForced({ reasons, body }: ShadowEvent, { thresholds }: Policy): Score | null {
  if (!reasons.some((reason) => reason.code === sandboxForced)) return null
  return findForcedScore(body.device_id, thresholds)
}

const toContext = ({ body, received_at: receivedAtMs }: ShadowEvent) => ({
  sdkVersion: body.sdk_meta.sdk_version,
  platform: body.sdk_meta.platform,
  receivedAtMs,
})

type Rules = Pick<Policy, 'velocity' | 'signalsMissing' | 'serverCategories' | 'suppressions'>

/**
 * Whether the active policy's risk features suffice for the shadow, so that no second query is
 * needed: each count of the shadow is one of the active policy's, with a threshold at least as
 * high, the rule on missing signals is the same or off, and it weighs no more of what the order of
 * the stream tells.
 */
export function sharesRiskFeatures(active: Rules, shadow: Rules): boolean {
  const counted = shadow.velocity.every(
    (rule) =>
      rule.weight === 0 ||
      active.velocity.some(
        (one) =>
          one.weight > 0 &&
          one.metric === rule.metric &&
          one.windowSeconds === rule.windowSeconds &&
          one.threshold <= rule.threshold,
      ),
  )
  const missing = isMissingOff(shadow) || isSameMissing(active, shadow)
  return counted && missing && weighsNoMore(shadow, active)
}

const isMissingOff = ({ signalsMissing }: Pick<Policy, 'signalsMissing'>): boolean =>
  signalsMissing === null || signalsMissing.weight === 0

function isSameMissing({ signalsMissing: a }: Rules, { signalsMissing: b }: Rules): boolean {
  return (
    a !== null &&
    b !== null &&
    a.threshold === b.threshold &&
    a.usualShare === b.usualShare &&
    a.devicesMin === b.devicesMin &&
    a.weight === b.weight
  )
}

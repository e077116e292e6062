/**
 * A shadow policy beside the active one: which of its versions decides an event, and what it would
 * have decided, by the functions that decide and on the same inputs. Which version it is depends on
 * the event alone, so an event that is delivered again is decided by the same one. Nothing here
 * leads to an alert.
 */

import type { Score, Scorer } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findForcedScore, sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { decideRisk, type RiskEvent, type RiskFeatures } from '#shared/core/velocity/risk.ts'
import type { Policy } from './policy.ts'

/**
 * How long after it is set a shadow begins to decide, so that every scorer knows of it by then and
 * no event near the boundary is decided by the wrong one.
 */
export const shadowLeadMs = 3_000

/** A version of a tenant's shadow policy. */
export type ShadowVersion = {
  version: number
  /** The content address of its document; null switches the shadow off. */
  policyHash: string | null
  /** It decides events that are received from then on, in ms since 1970. */
  effectiveAtMs: number
}

/**
 * The version that decides an event.
 * @param versions of its tenant, ascending; each takes effect later than the one before
 * @returns null when none does: there was no shadow yet, or it was off
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

export const compileShadow = (policy: Policy): CompiledShadow => ({
  policy,
  score: compilePolicy(policy),
})

/** What the shadow would have given: its own score, and the risk that alerts are raised by. */
export type ShadowVerdict = { raspScore: number; risk: Risk }

export type ShadowEvent = RiskEvent & Pick<AcceptedEvent, 'received_at'>

/**
 * Decides an event by a shadow policy.
 * @param features of the event, found for the shadow's own rules or shared by `sharesRiskFeatures`
 */
export function decideShadow(
  event: ShadowEvent,
  { policy, score }: CompiledShadow,
  features: RiskFeatures,
): ShadowVerdict {
  const scored = findForced(event, policy) ?? score(event.body.signals as Signals, toContext(event))
  const verdict = { rasp_score: scored.score, rasp_action: scored.action, reasons: scored.reasons }
  const missing = isMissingOff(policy) ? null : features.missing
  const risk = decideRisk({ ...verdict, body: event.body }, policy, { ...features, missing })
  return { raspScore: scored.score, risk }
}

/** Only the edge knows which are test devices; where it forced an action, so does the shadow. */
function findForced({ reasons, body }: ShadowEvent, { thresholds }: Policy): Score | null {
  if (!reasons.some((reason) => reason.code === sandboxForced)) return null
  return findForcedScore(body.device_id, thresholds)
}

const toContext = ({ body, received_at: receivedAtMs }: ShadowEvent) => ({
  sdkVersion: body.sdk_meta.sdk_version,
  platform: body.sdk_meta.platform,
  receivedAtMs,
})

type Rules = Pick<Policy, 'velocity' | 'signalsMissing'>

/**
 * Whether what was found out for the active policy's rules says all that the shadow's rules ask, so
 * that nothing need be asked again: each of its counts is one of theirs, from a threshold at least
 * as low, and the rule on missing signals is the same or off.
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
  return counted && (isMissingOff(shadow) || isSameMissing(active, shadow))
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

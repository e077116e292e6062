/** Decides the risk of an event, which alerts are raised by, from its policy and risk features. */

import { findPhoneReasons, type PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import type { FirstCopy } from '#shared/core/installs/replays.ts'
import { applyListToRisk, findListReason } from '#shared/core/lists/lists.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { actions, type Reason, toAction } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findPlaceholderIds } from '#shared/core/telemetry/placeholder-ids.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import { findAttestation, noOrderFacts, type OrderFacts } from './attestation-findings.ts'
import {
  byWeight,
  type Counts,
  correlate,
  type Finding,
  findVelocity,
  type Risk,
} from './correlation.ts'
import { findScoreMismatch, hasServerEvidence } from './score-mismatch.ts'

/** What earlier events add to the evidence about one event, as of its stream offset. */
export type RiskFeatures = {
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Categories that its SDK version usually fills and this event leaves empty. */
  missing: Finding | null
  /** Where the same bytes were accepted before: then this is a client's retry, or a replay. */
  firstCopy: FirstCopy | null
  /** What the order of the stream tells of its install and its device. */
  order: OrderFacts
  /** The phone that its install is on; null where that is not known. */
  phone: PhoneFacts | null
}

/** Those of an event about which nothing more is known. */
export const noRiskFeatures: RiskFeatures = {
  counts: new Map(),
  details: new Map(),
  missing: null,
  firstCopy: null,
  order: noOrderFacts,
  phone: null,
}

/** The flag of an event with a placeholder id, which no count includes. */
const placeholderId: Flag = 'PLACEHOLDER_ID'

export type RiskEvent = Pick<
  AcceptedEvent,
  'rasp_score' | 'rasp_action' | 'reasons' | 'body' | 'received_at'
>

const toContext = ({ body, received_at: receivedAtMs }: RiskEvent) => ({
  sdkVersion: body.sdk_meta.sdk_version,
  platform: body.sdk_meta.platform,
  receivedAtMs,
})

/**
 * Raises the edge's decision by risk features; never lowers it. A list decision of the edge stands:
 * then the risk score is 0 or 100, and what the features found is listed beside it.
 * @param policy the policy that scored the event
 * @returns the risk score on 0..100, the action and the reasons
 */
export function decideRisk(event: RiskEvent, policy: Policy, features: RiskFeatures): Risk {
  const { rasp_score: score, rasp_action: action, reasons } = event
  // A sandbox test device forces its action: nothing else may raise it.
  if (reasons.some((reason) => reason.code === sandboxForced)) {
    return { riskScore: score, action, reasons }
  }
  const findings = findVelocity(policy.velocity, features.counts, features.details)
  const mismatch = hasServerEvidence(reasons)
    ? null
    : findScoreMismatch(event.body.scorer, score, policy)
  if (mismatch !== null) findings.push(mismatch)
  // The edge has named what the policy requires and the event lacks.
  const named = reasons.some((reason) => reason.code === features.missing?.code)
  if (features.missing !== null && !named) findings.push(features.missing)
  findings.push(...findAttestation(features.order, policy, { reasons, context: toContext(event) }))
  const risk = correlate({ score, reasons }, findings, policy)
  const fields = findPlaceholderIds(event.body)
  if (fields.length > 0) risk.reasons.push({ code: placeholderId, weight: 0, evidence: { fields } })
  if (features.phone !== null) {
    addPhoneReasons(risk, findPhoneReasons(features.phone, event, risk.riskScore, policy), policy)
  }
  const listed = findListReason(reasons)
  if (listed !== undefined) return applyListToRisk(risk, listed)
  // Under another policy than the one that scored it, the edge's action can be the higher one.
  return actions.indexOf(action) > actions.indexOf(risk.action) ? { ...risk, action } : risk
}

/** Adds reasons of the phone, heaviest first. */
function addPhoneReasons(risk: Risk, added: readonly Reason[], { thresholds }: Policy): void {
  if (added.length === 0) return
  risk.reasons.push(...added)
  const points = added.reduce((sum, { weight }) => sum + weight, 0)
  if (points === 0) return
  risk.reasons.sort(byWeight)
  risk.riskScore += points
  risk.action = toAction(risk.riskScore, thresholds)
}

/**
 * Explains the risk features of a stored event: counts them again as of the event's stream offset,
 * and compares the result with the alert that the event raised.
 */
import { isDeepStrictEqual } from 'node:util'
import { dayMs } from '#shared/core/base/instants.ts'
import { isListFlag } from '#shared/core/lists/lists.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { decideRisk } from '#shared/core/velocity/risk.ts'
import type { SessionAlert } from '#shared/io/alerts/list-session-alerts.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { StoredEvent } from '#shared/io/telemetry/event-store.ts'
import type { RiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import type { EventExplanation } from './explanation-schemas.ts'

export type CorrelationDeps = {
  loadRiskFeatures: RiskFeatureStore['loadRiskFeatures']
  wallMs: () => number
}

/** Rows are kept for 35 days, and the longest window covers 30 of them. */
const recountableMs = 5 * dayMs

/** Whether the rows behind an event's risk features are still there. */
export const isRecountable = (event: StoredEvent, nowMs: number): boolean =>
  event.streamOffset !== 0 && nowMs - event.receivedAtMs <= recountableMs

/**
 * Recomputes the risk of an event.
 * @returns null when the rows behind its features were removed or never stored
 * @throws Problem unavailable
 */
export async function explainCorrelation(
  { loadRiskFeatures, wallMs }: CorrelationDeps,
  event: StoredEvent,
  context: { policy: Policy; body: Telemetry; alerts: readonly SessionAlert[] },
): Promise<EventExplanation['correlation']> {
  const { policy, body, alerts } = context
  if (!isRecountable(event, wallMs())) return null
  const loaded = {
    tenant_id: event.tenantId,
    event_id: event.eventId,
    streamOffset: event.streamOffset,
    received_at: event.receivedAtMs,
    body,
    install: event.install,
    connection: event.connection,
  }
  const [features] = await loadRiskFeatures([loaded], () => policy).catch(
    rejectUnavailable('The risk features of the device cannot be read at the moment.'),
  )
  const verdict = { rasp_score: event.raspScore, rasp_action: event.raspAction }
  const { receivedAtMs: received_at } = event
  const scored = { ...verdict, reasons: event.reasons ?? [], body, received_at }
  const risk = decideRisk(scored, policy, features!)
  const raised = alerts.find(
    ({ alert, eventId }) => eventId === event.eventId && alert.decision.action === risk.action,
  )
  // A list's reason has its weight only in the risk.
  const own = new Set(
    (event.reasons ?? []).map((reason) => reason.code).filter((code) => !isListFlag(code)),
  )
  return {
    risk_score: risk.riskScore,
    action: risk.action,
    reasons: risk.reasons.filter(({ code }) => !own.has(code)),
    retry: features!.firstCopy !== null,
    matches_alert: raised === undefined ? null : isSame(risk, raised),
  }
}

function isSame(risk: { riskScore: number; reasons: Reason[] }, { alert }: SessionAlert): boolean {
  const plain = JSON.parse(JSON.stringify(risk.reasons))
  return alert.decision.risk_score === risk.riskScore && isDeepStrictEqual(plain, alert.reasons)
}

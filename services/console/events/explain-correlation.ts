/**
 * Explains the risk features of a stored event: counts them again, as of the event's place in the
 * stream, and compares with the alert that it raised.
 */
import { isDeepStrictEqual } from 'node:util'
import { dayMs } from '#shared/core/base/instants.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { decideRisk } from '#shared/core/velocity/risk.ts'
import type { SessionAlert } from '#shared/io/alerts/list-session-alerts.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { StoredEvent } from '#shared/io/telemetry/event-store.ts'
import type { RiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import type { EventExplanation } from './explanation-schemas.ts'

export type CorrelationDeps = {
  loadRiskFeatures: RiskFeatureStore['loadRiskFeatures']
  wallMs: () => number
}

/** Rows are kept for 35 days, and the longest window covers 30 of them. */
const recountableMs = 5 * dayMs

/** @returns null when the rows behind the features are gone or were never stored */
export async function explainCorrelation(
  { loadRiskFeatures, wallMs }: CorrelationDeps,
  event: StoredEvent,
  about: { policy: Policy; body: Telemetry; alerts: readonly SessionAlert[] },
): Promise<EventExplanation['correlation']> {
  const { policy, body, alerts } = about
  if (event.streamOffset === 0 || wallMs() - event.receivedAtMs > recountableMs) return null
  const asked = {
    tenant_id: event.tenantId,
    event_id: event.eventId,
    streamOffset: event.streamOffset,
    received_at: event.receivedAtMs,
    body,
  }
  const [features] = await loadRiskFeatures([asked], () => policy).catch((error: unknown) => {
    throw unavailable(
      'The risk features of the device cannot be read at the moment.',
      toLoggable(error),
    )
  })
  const verdict = { rasp_score: event.raspScore, rasp_action: event.raspAction }
  const scored = { ...verdict, reasons: event.reasons ?? [], body }
  const risk = decideRisk(scored, policy, features!)
  const raised = alerts.find(
    ({ alert, eventId }) => eventId === event.eventId && alert.decision.action === risk.action,
  )
  const own = new Set((event.reasons ?? []).map((reason) => reason.code))
  return {
    risk_score: risk.riskScore,
    action: risk.action,
    reasons: risk.reasons.filter(({ code }) => !own.has(code)),
    retry: features!.retry,
    matches_alert: raised === undefined ? null : isSame(risk, raised),
  }
}

function isSame(risk: { riskScore: number; reasons: Reason[] }, { alert }: SessionAlert): boolean {
  const plain = JSON.parse(JSON.stringify(risk.reasons))
  return alert.decision.risk_score === risk.riskScore && isDeepStrictEqual(plain, alert.reasons)
}

/** What a policy says of a stored event at present: its score, and the risk with its features. */
import type { Policy } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { decideRisk } from '#shared/core/velocity/risk.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { StoredEvent } from '#shared/io/telemetry/event-store.ts'
import { type CorrelationDeps, isRecountable } from '../events/explain-correlation.ts'
import type { AlertDetail } from './alert-schemas.ts'

type Verdict = NonNullable<AlertDetail['now']['active']>

/** @param event with its body as telemetry @throws Problem unavailable when ClickHouse cannot be read */
export async function scoreWithCurrentPolicy(
  deps: CorrelationDeps,
  { event, body }: { event: StoredEvent; body: Telemetry },
  { policy, version, policyHash }: { policy: Policy; version: number; policyHash: string },
): Promise<Verdict> {
  const context = {
    sdkVersion: body.sdk_meta.sdk_version,
    platform: body.sdk_meta.platform,
    receivedAtMs: deps.wallMs(),
  }
  const scored = compilePolicy(policy)(body.signals, context, event.serverSignals)
  const known = {
    version,
    policy_hash: policyHash,
    name: policy.name,
    rasp_score: scored.score,
  }
  if (!isRecountable(event, deps.wallMs())) {
    const { score, action, reasons } = scored
    return { ...known, action, risk_score: score, reasons, risk_features: false }
  }
  const loaded = {
    tenant_id: event.tenantId,
    event_id: event.eventId,
    streamOffset: event.streamOffset,
    received_at: event.receivedAtMs,
    body,
    install: event.install,
  }
  const [features] = await deps
    .loadRiskFeatures([loaded], () => policy)
    .catch(rejectUnavailable('The risk features of the device cannot be read at the moment.'))
  const verdict = { rasp_score: scored.score, rasp_action: scored.action }
  const { receivedAtMs: received_at } = event
  const rescored = { ...verdict, reasons: scored.reasons, body, received_at }
  const risk = decideRisk(rescored, policy, features!)
  const { action, riskScore: risk_score, reasons } = risk
  return { ...known, action, risk_score, reasons, risk_features: true }
}

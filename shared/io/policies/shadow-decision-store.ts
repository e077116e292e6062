/**
 * What shadow policies would have decided, in ClickHouse: one row for each event, written by
 * scorers. Writing it again changes nothing. It is read through the views of fraud teams and by the
 * comparison.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { ShadowVerdict } from '#shared/core/policies/shadow.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { actionValues, type Clickhouse, insertRowBinary } from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'

/** A shadow policy's decision on an event, beside the active policy's. */
export type ShadowDecision = {
  event: AcceptedEvent
  risk: Risk
  shadow: { version: number; policyHash: string; verdict: ShadowVerdict }
}

export type ShadowDecisionWriter = {
  /** One call at a time. @throws when ClickHouse cannot be reached or refuses */
  insertDecisions: (decisions: readonly ShadowDecision[]) => Promise<void>
}

const into = `shadow_decisions (tenant_id, received_at, event_id, stream_offset, device_id, session_id,
  user_id, account_id, platform, sdk_version, shadow_version, shadow_policy_hash,
  shadow_rasp_score, shadow_risk_score, shadow_action, shadow_flags, active_policy_version,
  active_policy_hash, active_rasp_score, active_risk_score, active_action, active_flags)`

// An abandoned insert must not arrive later: an erasure may have run in between.
const settings: ClickHouseSettings = { max_execution_time: 1 }

export function createShadowDecisionWriter(clickhouse: Clickhouse): ShadowDecisionWriter {
  const writer = createRowWriter()
  return {
    insertDecisions: async (decisions) => {
      if (decisions.length === 0) return
      writer.reset()
      for (const decision of decisions) writeDecision(writer, decision)
      await insertRowBinary(clickhouse, into, writer.written(), settings)
    },
  }
}

function writeDecision(writer: RowWriter, { event, risk, shadow }: ShadowDecision): void {
  const { body } = event
  const { verdict } = shadow
  writer.string(event.tenant_id)
  writer.int64(event.received_at)
  writer.string(event.event_id)
  writer.int64(event.streamOffset)
  writer.string(body.device_id)
  writer.string(body.session_id)
  writer.string(body.user_id ?? '')
  writer.string(body.account_id ?? '')
  writer.string(body.sdk_meta.platform)
  writer.string(body.sdk_meta.sdk_version)
  writer.uint32(shadow.version)
  writer.string(shadow.policyHash)
  writer.uint8(verdict.raspScore)
  writeRisk(writer, verdict.risk)
  writer.uint32(event.policy_version)
  writer.string(event.policy_hash)
  writer.uint8(event.rasp_score)
  writeRisk(writer, risk)
}

function writeRisk(writer: RowWriter, { riskScore, action, reasons }: Risk): void {
  writer.uint8(riskScore)
  writer.uint8(actionValues[action])
  writer.strings(reasons.map((reason) => reason.code))
}

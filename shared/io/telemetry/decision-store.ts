/**
 * The decisions that differ from the edge's, in ClickHouse: one row for each such event, written by
 * scorers before they acknowledge it. Writing one again changes nothing. An event without a row has
 * the edge's own decision.
 */
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { toEdgeRisk } from '#shared/core/velocity/edge-risk.ts'
import {
  actionValues,
  type ClickhouseNode,
  insertRowBinary,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { readReasons } from './stored-reasons.ts'

/** A decided event. */
export type Decision = { event: AcceptedEvent; risk: Risk }

export type DecisionWriter = {
  /** One call at a time. Without decisions it sends nothing. @throws when ClickHouse fails */
  insertDecisions: (decisions: readonly Decision[]) => Promise<void>
}

const columnWriters = {
  tenant_id: (writer, { event }) => writer.string(event.tenant_id),
  device_id: (writer, { event }) => writer.string(event.body.device_id),
  session_id: (writer, { event }) => writer.string(event.body.session_id),
  event_id: (writer, { event }) => writer.string(event.event_id),
  stream_offset: (writer, { event }) => writer.int64(event.streamOffset),
  received_at: (writer, { event }) => writer.int64(event.received_at),
  user_id: (writer, { event }) => writer.string(event.body.user_id ?? ''),
  account_id: (writer, { event }) => writer.string(event.body.account_id ?? ''),
  rasp_score: (writer, { event }) => writer.uint8(event.rasp_score),
  risk_score: (writer, { risk }) => writer.uint8(risk.riskScore),
  action: (writer, { risk }) => writer.uint8(actionValues[risk.action]),
  flags: (writer, { risk }) => writer.strings(risk.reasons.map(({ code }) => code)),
  reasons: (writer, { risk }) => writer.string(JSON.stringify(risk.reasons)),
} satisfies Record<string, (writer: RowWriter, decision: Decision) => void>

const into = `decisions (${Object.keys(columnWriters).join(', ')})`
const writersInOrder = Object.values(columnWriters)

/** What a scorer writes. */
export function createDecisionWriter(clickhouse: ClickhouseNode): DecisionWriter {
  const writer = createRowWriter()
  return {
    insertDecisions: async (decisions) => {
      if (decisions.length === 0) return
      writer.reset()
      for (const decision of decisions) for (const write of writersInOrder) write(writer, decision)
      await insertRowBinary(clickhouse, into, writer.written())
    },
  }
}

/** A decision as it is stored. */
export type DecisionRow = {
  eventId: string
  riskScore: number
  action: Action
  /** JSON text. */
  reasons: string
}

/** SQL: the columns of a `DecisionRow`. */
export const decisionColumns = `event_id as eventId, risk_score as riskScore,
  toString(action) as action, reasons`

/**
 * The decision of an event: its row, or without one what the edge made of it.
 * @param edge.reasons null when the stored reasons are not valid
 */
export function toDecidedRisk(
  edge: { raspScore: number; raspAction: Action; reasons: Reason[] | null },
  row: DecisionRow | undefined,
): Risk {
  if (row !== undefined) {
    const { riskScore, action } = row
    return { riskScore, action, reasons: readReasons(row.reasons) ?? [] }
  }
  const { raspScore, raspAction, reasons } = edge
  return toEdgeRisk({ rasp_score: raspScore, rasp_action: raspAction, reasons: reasons ?? [] })
}

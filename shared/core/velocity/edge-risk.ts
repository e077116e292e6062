/**
 * What the edge's own decision is on the scale of risk: the decision of every event about which
 * nothing more is known. Only decisions that differ from it are stored.
 */
import { applyListToRisk, findListReason, listOutcomes } from '#shared/core/lists/lists.ts'
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import { byWeight, type Risk } from './correlation.ts'

/** An event as the edge scored it. */
export type EdgeVerdict = { rasp_score: number; rasp_action: Action; reasons: readonly Reason[] }

/**
 * Returns the risk of an event without risk features. A list decision of the edge makes it 0 or
 * 100; the score of a sandbox test device stands.
 */
export function toEdgeRisk({ rasp_score: riskScore, rasp_action: action, reasons }: EdgeVerdict) {
  const risk: Risk = { riskScore, action, reasons: [...reasons] }
  if (reasons.some(({ code }) => code === sandboxForced)) return risk
  risk.reasons.sort(byWeight)
  const listed = findListReason(reasons)
  return listed === undefined ? risk : applyListToRisk(risk, listed)
}

/**
 * Whether a decision is not the edge's own. A decision keeps the reasons of the edge and adds some,
 * so their number shows whether it has others.
 * @param risk from `decideRisk`
 */
export function differsFromEdge(verdict: EdgeVerdict, risk: Risk): boolean {
  const own = toEdgeRisk(verdict)
  return (
    risk.riskScore !== own.riskScore ||
    risk.action !== own.action ||
    risk.reasons.length !== own.reasons.length
  )
}

/**
 * SQL of `toEdgeRisk(...).riskScore`, from a score and the codes of the reasons.
 * @param columns of an event; of a session those of its highest score
 */
export function toEdgeRiskSql(columns = { score: 'rasp_score', flags: 'flags' }): string {
  const { score, flags } = columns
  const outcomes = Object.entries(listOutcomes).map(
    ([code, { riskScore }]) => `has(${flags}, '${code}'), ${riskScore}`,
  )
  return `toUInt8(multiIf(has(${flags}, '${sandboxForced}'), ${score}, ${outcomes.join(', ')}, ${score}))`
}

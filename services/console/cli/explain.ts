/** `di explain`: the steps of a stored event's score, compared with the score that was returned. */
import type { EventExplanation, ExplainedAlert } from '../events/explanation-schemas.ts'
import { read } from './commands.ts'
import { toConnectionText, toFields, toTable, toTime } from './tables.ts'

type Steps = EventExplanation['steps']

export const explain = read(
  'explain <event-id>',
  'score a stored event again, step by step, and compare it with the response',
  '/events/{event_id}/explanation',
  { text: (answer) => toExplanationText(answer as EventExplanation) },
)

function toExplanationText(explanation: EventExplanation): string {
  const { forced, steps } = explanation
  const replaced =
    forced === null
      ? ''
      : `\nThe sandbox device ${forced.device_id} forces ${toVerdict(forced)}; without it:`
  return [
    toHead(explanation),
    toProof(explanation),
    `SIGNALS${replaced}\n${toSignals(steps)}`,
    `CATEGORIES\n${toCategories(steps)}`,
    `SCORE\n${toScore(steps)}`,
    `REASONS\n${toReasons(explanation.recomputed.reasons ?? [])}`,
    `BEYOND THE EVENT\n${toCorrelation(explanation.correlation)}`,
    `ALERTS OF THE SESSION\n${toAlerts(explanation.alerts)}`,
  ].join('\n\n')
}

function toHead({ event, policy }: EventExplanation): string {
  const set =
    policy.created_at === null
      ? ''
      : `, set ${toTime(policy.created_at)} by ${policy.created_by ?? '-'}`
  return toFields({
    event_id: event.event_id,
    received: toTime(event.received_at),
    tenant_id: event.tenant_id,
    device_id: event.device_id,
    session_id: event.session_id,
    user_id: event.user_id ?? undefined,
    account_id: event.account_id ?? undefined,
    connection: toConnectionText(event.connection),
    sdk: `${event.sdk_version} on ${event.platform}`,
    policy: `${policy.name}, version ${policy.version} (${policy.policy_hash.slice(0, 8)})${set}`,
  })
}

const toVerdict = ({ rasp_score, rasp_action }: { rasp_score: number; rasp_action: string }) =>
  `${rasp_score} ${rasp_action}`

/** The reasons that the decision adds to those of the score. */
function toAdded(
  { flags }: EventExplanation['decided'],
  { flags: scored }: EventExplanation['answered'],
): string {
  const added = flags.filter((flag) => !scored.includes(flag))
  return added.length === 0 ? '' : `, also for ${added.join(', ')}`
}

const bodyTexts = {
  true: 'as it was signed, byte for byte',
  false: 'NOT the bytes that were signed',
  null: 'as it was signed, with hashes in the place of identifiers',
} as const

function toProof(explanation: EventExplanation): string {
  const { answered, decided, recomputed, matches, differences } = explanation
  const evidence = explanation.evidence_differs
    ? ' (evidence is written differently than it was then)'
    : ''
  const lines = [
    toFields({
      decided: `${decided.risk_score} ${decided.action}${toAdded(decided, answered)}`,
      answered: toVerdict(answered),
      recomputed: toVerdict(recomputed),
      matches: matches ? `yes${evidence}` : 'NO',
      body: bodyTexts[`${explanation.body_intact}`],
      document: explanation.policy.document_intact
        ? 'as it was hashed'
        : 'NOT the bytes that were hashed',
    }),
    ...differences.map(
      ({ field, answered: then, recomputed: now }) =>
        `  ${field}: answered ${JSON.stringify(then)}, recomputed ${JSON.stringify(now)}`,
    ),
  ]
  return lines.join('\n')
}

function toSignals({ signals }: Steps): string {
  const rows = signals.map((step) => [
    step.signal,
    JSON.stringify(step.value ?? null),
    step.outcome === 'scored' ? `+${step.points}` : step.outcome.replace('_', ' '),
    [step.seen_by === 'server' ? 'seen by the server' : '', step.suppressed_because ?? '']
      .filter((text) => text !== '')
      .join('; '),
  ])
  return rows.length === 0 ? 'none were sent' : toTable(['SIGNAL', 'VALUE', 'POINTS', ''], rows)
}

function toCategories({ categories }: Steps): string {
  const rows = categories
    .filter(({ sum }) => sum > 0)
    .map((step) => [
      step.category,
      String(step.sum),
      String(step.cap),
      String(step.points),
      toLimits(step).join('; '),
    ])
  return rows.length === 0
    ? 'none scored'
    : toTable(['CATEGORY', 'SUM', 'CAP', 'POINTS', 'WHAT ACTED'], rows)
}

function toLimits(step: Steps['categories'][number]): string[] {
  const grouped = step.groups
    .filter(({ sum, cap }) => sum > cap)
    .map(({ signals, cap }) => `${signals.join(' + ')} count ${cap} together`)
  return [
    ...grouped,
    ...(step.strong_evidence === null ? [] : [`filled by ${step.strong_evidence.join(' + ')}`]),
    ...(step.capped === step.cap && step.sum > step.cap ? ['capped'] : []),
    ...(step.halved < step.capped ? [`halved by ${step.halved_by.join(', ')}`] : []),
    ...(step.points < step.halved ? [`soft: at most ${step.soft_limit}`] : []),
  ]
}

function toScore({ sum, total, floor, score, thresholds, action }: Steps): string {
  return toFields({
    sum: total < sum ? `${sum}, limited to ${total}` : sum,
    floor: floor === null ? undefined : `${floor.score}, proven by ${floor.signal}`,
    score,
    action: `${action} (review from ${thresholds.review}, block from ${thresholds.block})`,
  })
}

function toReasons(reasons: ExplainedAlert['reasons']): string {
  if (reasons.length === 0) return 'none'
  return toTable(
    ['POINTS', 'FLAG', 'EVIDENCE'],
    reasons.map(({ code, weight, evidence }) => [String(weight), code, JSON.stringify(evidence)]),
  )
}

function toCorrelation(correlation: EventExplanation['correlation']): string {
  if (correlation === null) return 'the rows behind the risk features were removed'
  if (correlation.retry) return 'the same bytes arrived before: this event was not decided again'
  const { risk_score: risk, action, reasons, matches_alert: matches } = correlation
  const alert = matches === null ? 'none by this event' : matches ? 'says the same' : 'DIFFERS'
  return `${toFields({ risk: `${risk} ${action}`, alert })}\n${toReasons(reasons)}`
}

function toAlerts(alerts: ExplainedAlert[]): string {
  if (alerts.length === 0) return 'none'
  return alerts
    .map((alert) => {
      const by = alert.raised_by_this_event ? 'this event' : alert.event_id
      const head =
        `${alert.alert_id}  ${alert.action} ${alert.severity}, risk ${alert.risk_score} of which ` +
        `${alert.rasp_score} by signals, ${alert.disposition}, raised by ${by}`
      const { correlation_reasons: reasons } = alert
      return reasons.length === 0 ? head : `${head}\n${toReasons(reasons)}`
    })
    .join('\n')
}

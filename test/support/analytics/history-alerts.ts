/**
 * The alerts of the planned history, their dispositions and their deliveries: rows as the
 * replication writes them, a pure function of the seed.
 */
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import { hourMs } from '#shared/core/base/instants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { correlate, type Finding } from '#shared/core/velocity/correlation.ts'
import type { AlertReplicaRow, DeliveryReplicaRow } from '#shared/io/analytics/replication-store.ts'
import { drawDelivery, judgeAlert } from '../../../deploy/fleet/history/history-outcomes.ts'
import type { Stories } from '../../../deploy/fleet/history/history-plan.ts'
import type { Phone } from '../../../deploy/fleet/phones/population.ts'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'

export type HistoryEvent = { event: AcceptedEvent; phone: Phone; detected: string[] }

const assignees = ['', 'opr_ann', 'opr_bob', 'opr_chloe']

export type HistoryAlert = {
  alertId: string
  deviceId: string
  sessionId: string
  userId: string
  eventId: string
  action: string
  riskScore: number
  codes: string[]
  /** The signals that its reasons name. */
  signals: string[]
  disposition: string
  /** The id of an operator; empty while nobody has it. */
  assignee: string
  /** Null without a review. */
  judgedAtMs: number | null
  createdAtMs: number
}

export type HistoryDelivery = {
  alertId: string
  state: string
  createdAtMs: number
  endedAtMs: number | null
}

export type RaisedHistory = {
  alerts: HistoryAlert[]
  alertRows: AlertReplicaRow[]
  deliveries: HistoryDelivery[]
  deliveryRows: DeliveryReplicaRow[]
}

export const toInstant = (ms: number): string =>
  new Date(ms).toISOString().replace('T', ' ').replace('Z', '')

/** @param events in the order in which they were received */
export function raiseAlerts(
  seed: number,
  events: readonly HistoryEvent[],
  stories: Stories,
): RaisedHistory {
  const raised: RaisedHistory = { alerts: [], alertRows: [], deliveries: [], deliveryRows: [] }
  const known = createKnown()
  const seen = new Set<string>()
  for (const one of events) {
    const { event } = one
    const score = { score: event.rasp_score, reasons: event.reasons }
    const risk = correlate(score, known.find(event), defaultPolicy)
    const candidate = decideAlert(event, risk)
    if (candidate === null || seen.has(candidate.alertId)) continue
    seen.add(candidate.alertId)
    const random = createRandom(seed, candidate.alertId)
    const createdAtMs = event.received_at + random.int(20, 900)
    const verdict = judgeAlert(one, createdAtMs, stories, random)
    const judgedAt = verdict.atMs === null ? [] : [toInstant(verdict.atMs)]
    const alert: HistoryAlert = {
      alertId: candidate.alertId,
      deviceId: candidate.deviceId,
      sessionId: candidate.sessionId,
      userId: candidate.userId ?? '',
      eventId: candidate.eventId,
      action: candidate.action,
      riskScore: candidate.riskScore,
      codes: candidate.reasons.map(({ code }) => code),
      signals: candidate.reasons.flatMap(({ evidence }) => (evidence.signals as string[]) ?? []),
      disposition: verdict.to,
      assignee: createRandom(seed, `${candidate.alertId} assignee`).pick(assignees),
      judgedAtMs: verdict.atMs,
      createdAtMs,
    }
    raised.alerts.push(alert)
    raised.alertRows.push({
      tenant_id: candidate.tenantId,
      alert_id: candidate.alertId,
      seq: raised.alerts.length,
      created_at: toInstant(createdAtMs),
      device_id: candidate.deviceId,
      session_id: candidate.sessionId,
      user_id: alert.userId,
      event_id: candidate.eventId,
      action: candidate.action,
      risk_score: candidate.riskScore,
      rasp_score: candidate.raspScore,
      reason_codes: alert.codes,
      reason_weights: candidate.reasons.map(({ weight }) => weight),
      reason_evidence: candidate.reasons.map(({ evidence }) => JSON.stringify(evidence)),
      policy_version: candidate.policyVersion,
      connection_network: candidate.connection.connection_network ?? '',
      connection_country: candidate.connection.connection_country ?? '',
      connection_asn: candidate.connection.connection_asn ?? 0,
      connection_organization: candidate.connection.connection_organization ?? '',
      connection_kinds: candidate.connection.connection_kinds ?? [],
      disposition: verdict.to,
      assignee: alert.assignee,
      changed_at: judgedAt[0] ?? null,
      disposition_at: judgedAt,
      disposition_from: judgedAt.map(() => 'OPEN'),
      disposition_to: judgedAt.map(() => verdict.to),
      disposition_actor: judgedAt.map(() => random.pick(['ann', 'bob', 'chloe'])),
      disposition_note: judgedAt.map(() => ''),
    })
    deliver(raised, candidate.tenantId, alert, random)
  }
  return raised
}

/** What a device's history adds: the two rules of the default policy that the fleet triggers. */
function createKnown(): { find: (event: AcceptedEvent) => Finding[] } {
  const users = new Map<string, Set<string>>()
  const sessions = new Map<string, Map<string, number>>()
  return {
    find: ({ body, received_at: atMs }) => {
      const own = users.get(body.device_id) ?? new Set()
      users.set(body.device_id, own)
      for (const id of [body.user_id, body.account_id]) if (id !== undefined) own.add(id)
      const started = sessions.get(body.device_id) ?? new Map<string, number>()
      sessions.set(body.device_id, started)
      if (!started.has(body.session_id)) started.set(body.session_id, atMs)
      const lastHour = [...started.values()].filter((ms) => ms > atMs - hourMs).length
      const findings: Finding[] = []
      const rule = (
        code: Finding['code'],
        metric: string,
        limit: [number, number, string],
        weight: number,
      ) => {
        const [count, threshold, window] = limit
        if (count <= threshold) return
        findings.push({ code, weight, evidence: { metric, count, threshold, window } })
      }
      rule('MANY_USERS_PER_DEVICE', 'users_per_device', [own.size, 5, '30d'], 20)
      rule('HIGH_VELOCITY', 'sessions_per_device', [lastHour, 20, '1h'], 15)
      return findings
    },
  }
}

function deliver(
  raised: RaisedHistory,
  tenantId: string,
  alert: HistoryAlert,
  random: Random,
): void {
  const { createdAtMs } = alert
  const { delaysMs, failed } = drawDelivery(random)
  const endedAtMs = createdAtMs + delaysMs.at(-1)!
  const state = failed ? 'failed' : 'delivered'
  const last = delaysMs.length - 1
  raised.deliveries.push({ alertId: alert.alertId, state, createdAtMs, endedAtMs })
  raised.deliveryRows.push({
    tenant_id: tenantId,
    delivery_id: `dlv_${random.hex(24)}`,
    alert_id: alert.alertId,
    created_at: toInstant(createdAtMs),
    device_id: alert.deviceId,
    user_id: alert.userId,
    event_id: alert.eventId,
    event: 'risk.alert',
    state,
    reason: failed ? 'exhausted' : '',
    ended_at: toInstant(endedAtMs),
    attempt_at: delaysMs.map((delayMs) => toInstant(createdAtMs + delayMs)),
    attempt_duration_ms: delaysMs.map(() => random.int(8, 300)),
    attempt_status: delaysMs.map((_, n) => (n === last && !failed ? 200 : 503)),
    attempt_error_kind: delaysMs.map((_, n) => (n === last && !failed ? '' : 'status')),
  })
}

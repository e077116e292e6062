/** Makes the summary of a run. */

import type { Run } from '../fleet-run.ts'
import { createLatencies } from '../send/latencies.ts'
import { measureWebhooks, summarizeWebhooks } from './check-webhooks.ts'
import type { Judgement } from './judge.ts'
import type { Summary } from './summary.ts'

/** Results of sending. */
export type Sent = {
  /** When the last request of the plan left, in ms from the start of the run. */
  lastDepartureMs: number
  interrupted: boolean
}

export type Outcome = {
  /** Probes whose session never became visible; null when none ran. */
  unseen: number | null
  /** Null when nothing was read back. */
  judgement: Judgement | null
}

/** Makes the summary. */
export function summarize(run: Run, sent: Sent, { unseen, judgement }: Outcome): Summary {
  const { sentEvents, options, plan, tenant, receiver } = run
  const { counters, mismatches } = sentEvents
  const alerts = judgement?.alerts ?? []
  const webhookLatencies = createLatencies()
  if (judgement !== null && receiver !== null) {
    measureWebhooks(alerts, receiver.received, judgement.model, webhookLatencies)
  }
  const plannedMs = (counters.sent * 1000) / options.ratePerSecond
  const lastedMs = Math.max(sent.lastDepartureMs, plannedMs)
  const achieved = (counters.sent * 1000) / lastedMs
  const checked = ['answers']
  if (judgement !== null) checked.push('devices', 'alerts')
  if (judgement !== null && receiver !== null) checked.push('webhooks')
  return {
    tenant_id: tenant.tenantId,
    seed: options.seed,
    public_api_key: tenant.own ? tenant.apiKey : null,
    interrupted: sent.interrupted,
    rate: { asked: options.ratePerSecond, achieved: Math.round((achieved || 0) * 10) / 10 },
    duration_s: Math.round(lastedMs / 100) / 10,
    sent: counters.sent,
    accepted: counters.accepted,
    refused: counters.refused,
    unknown: counters.unknown,
    retries: counters.retries,
    duplicates_sent: counters.repeats,
    answers: counters.answers,
    devices: judgement?.devices ?? 0,
    sessions: judgement?.sessions ?? 0,
    latency_ms: run.latencies.summary(),
    visible_ms: unseen === null ? null : { ...run.visible.summary(), unseen },
    webhook_ms: receiver === null || judgement === null ? null : webhookLatencies.summary(),
    actions: counters.actions,
    alerts: judgement === null ? null : summarizeAlerts(judgement),
    webhooks: receiver === null ? null : summarizeWebhooks(alerts, receiver.received),
    fleet: countBy(plan.phones.map((phone) => phone.kind.name)),
    checked,
    mismatches_total: mismatches.total,
    mismatches_by_kind: mismatches.byWhat,
    mismatches: mismatches.kept,
    ok: mismatches.total === 0,
  }
}

function summarizeAlerts({ alerts, requiredAlerts }: Judgement) {
  const by_action = countBy(alerts.map((alert) => alert.decision.action))
  return { total: alerts.length, required: requiredAlerts, by_action }
}

function countBy(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

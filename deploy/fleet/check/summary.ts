/** The summary of a run, as a JSON document and as text. */

import type { LatencySummary } from '../send/latencies.ts'
import type { Mismatch } from '../send/sent-events.ts'
import type { WebhookSummary } from './check-webhooks.ts'

export type Summary = {
  tenant_id: string
  /** The key of a tenant that was created for the run, to read its data; else null. */
  public_api_key: string | null
  seed: number
  interrupted: boolean
  rate: { asked: number; achieved: number }
  duration_s: number
  /** Planned requests; `retries` counts further attempts. */
  sent: number
  accepted: number
  refused: number
  unknown: number
  retries: number
  duplicates_sent: number
  /** Responses by status, and failed connections by kind. */
  answers: Record<string, number>
  devices: number
  sessions: number
  /** From the planned moment of a request to its 200. */
  latency_ms: LatencySummary
  /** From the 200 until the device's history shows the session; null when it was not read. */
  visible_ms: (LatencySummary & { unseen: number }) | null
  /** From the 200 of an alert's event until its webhook arrived. */
  webhook_ms: LatencySummary | null
  actions: Record<string, number>
  alerts: { total: number; required: number; by_action: Record<string, number> } | null
  webhooks: WebhookSummary | null
  /** Phones by kind. */
  fleet: Record<string, number>
  /** Numbers of checked `answers`, `devices`, `alerts`, `webhooks`. */
  checked: string[]
  mismatches_total: number
  mismatches_by_kind: Record<string, number>
  mismatches: Mismatch[]
  ok: boolean
}

/**
 * The summary as text.
 * @param apiUrl the API for the example command
 */
export function toSummaryText(summary: Summary, apiUrl: string | null = null): string {
  const rows: [string, string][] = [
    ['tenant', summary.tenant_id],
    ['seed', String(summary.seed)],
    ['rate', `${summary.rate.achieved}/s of ${summary.rate.asked}/s for ${summary.duration_s} s`],
    ['sent', `${n(summary.sent)} requests, ${n(summary.duplicates_sent)} of them repeats`],
    ['accepted', `${n(summary.accepted)}${toFailures(summary)}`],
    ['fleet', `${n(summary.devices)} devices, ${n(summary.sessions)} sessions`],
    ['actions', toCounts(summary.actions)],
    ['latency', toLatencyText(summary.latency_ms)],
  ]
  if (summary.visible_ms) {
    const { unseen } = summary.visible_ms
    const late = unseen > 0 ? `, ${n(unseen)} not seen while waited for` : ''
    rows.push(['visible', `${toLatencyText(summary.visible_ms)}${late}`])
  }
  if (summary.alerts) {
    const { total, required, by_action } = summary.alerts
    rows.push(['alerts', `${n(total)} (at least ${n(required)} expected): ${toCounts(by_action)}`])
  }
  if (summary.webhooks) {
    const { verified, unverified, duplicates, missing, faults } = summary.webhooks
    const failed = faults > 0 ? `, ${n(faults)} failed on purpose` : ''
    const counts = `${n(verified)} verified, ${n(unverified)} not, ${n(missing)} missing`
    rows.push(['webhooks', `${counts}, ${n(duplicates)} duplicates${failed}`])
  }
  if (summary.webhook_ms) rows.push(['delivered', toLatencyText(summary.webhook_ms)])
  rows.push(['checked', summary.checked.join(', ')])
  const table = rows.map(([name, value]) => `  ${name.padEnd(10)}${value}`)
  return [...table, '', ...toVerdict(summary), ...toInvitation(summary, apiUrl)].join('\n')
}

/** A command that reads alerts of the run. */
function toInvitation({ public_api_key }: Summary, apiUrl: string | null): string[] {
  if (public_api_key === null || apiUrl === null) return []
  const curl = `curl -H 'Authorization: Bearer ${public_api_key}' '${apiUrl}/v1/di/alerts?limit=3'`
  return ['', 'Look around:', `  ${curl}`]
}

function toFailures({ refused, unknown, retries }: Summary): string {
  const parts = [
    refused > 0 ? `${n(refused)} refused` : '',
    unknown > 0 ? `${n(unknown)} without an answer` : '',
    retries > 0 ? `${n(retries)} retries` : '',
  ].filter(Boolean)
  return parts.length > 0 ? `, ${parts.join(', ')}` : ''
}

function toVerdict(summary: Summary): string[] {
  if (summary.ok) {
    const early = summary.interrupted ? ' The run was ended early.' : ''
    return [`Everything that was sent is where it should be.${early}`]
  }
  const kinds = Object.entries(summary.mismatches_by_kind).map(
    ([what, count]) => `${count} ${what}`,
  )
  return [
    `${n(summary.mismatches_total)} mismatches: ${kinds.join(', ')}`,
    ...summary.mismatches.map((mismatch) => `  ${toMismatchText(mismatch)}`),
  ]
}

const mismatchCharactersMax = 600

function toMismatchText({ what, expected, got, ...place }: Mismatch): string {
  const where = Object.entries(place).map(([name, value]) => `${name}=${value}`)
  const text = `${what} ${where.join(' ')} expected ${toJson(expected)} got ${toJson(got)}`
  return text.length > mismatchCharactersMax ? `${text.slice(0, mismatchCharactersMax)}...` : text
}

function toJson(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing'
}

function toLatencyText({ p50, p95, p99, max, count }: LatencySummary): string {
  if (count === 0) return 'nothing measured'
  return `p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, max ${max} ms (${n(count)} measured)`
}

function toCounts(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${n(count)}`)
    .join(', ')
}

function n(value: number): string {
  return value.toLocaleString('en-US')
}

/**
 * A case: the alerts of one phone, device or user that are settled together. A case is open exactly
 * as long as one of its alerts is OPEN; one that is snoozed is open, and waits until an instant.
 */
import type { Decision } from '#shared/core/alerts/dispositions.ts'
import { type Reason, type Severity, toSeverity } from '#shared/core/scoring/score.ts'

/** Whom a case is about. */
export const caseSubjectKinds = ['phone', 'device', 'user'] as const
export type CaseSubjectKind = (typeof caseSubjectKinds)[number]
export type CaseSubject = { kind: CaseSubjectKind; id: string }

export const caseStates = ['OPEN', 'CLOSED'] as const
export type CaseState = (typeof caseStates)[number]

/** States of the queue: what is snoozed is not shown among what is open. */
export const queueStates = ['OPEN', 'SNOOZED', 'CLOSED'] as const

/** What happened to a case; `reopened` is by a new alert, `regrouped` by a correction of a phone. */
export const caseEventKinds = [
  'reopened',
  'judged',
  'snoozed',
  'woken',
  'assigned',
  'merged',
  'split',
  'regrouped',
] as const
export type CaseEventKind = (typeof caseEventKinds)[number]

/** How many alerts of a case have each flag. */
export type FlagCounts = Readonly<Record<string, number>>

/** A row of the table `cases`, as far as a case is made of it. */
export type CaseRow = {
  tenant_id: string
  case_id: string
  subject_kind: CaseSubjectKind
  subject_id: string
  state: CaseState
  alert_count: number
  open_count: number
  risk_score: number
  action: Decision
  flags: FlagCounts
  first_alert_at: Date
  latest_alert_at: Date
  due_at: Date | null
  snoozed_until: Date | null
  assignee: string | null
  judged_by: string | null
  judged_at: Date | null
  leased_by: string | null
  leased_until: Date | null
  merged_into: string | null
  version: number
}

/** A case as operators see it, without what is read beside it. */
export type ShownCase = ReturnType<typeof toCase>

/** @param nowMs the clock of Postgres, with which due times and leases are compared */
export const toCase = (row: CaseRow, nowMs: number) => ({
  case_id: row.case_id,
  tenant_id: row.tenant_id,
  subject: { kind: row.subject_kind, id: row.subject_id },
  state: row.state,
  snoozed_until: toFuture(row.snoozed_until, nowMs),
  alerts: row.alert_count,
  open_alerts: row.open_count,
  risk_score: row.risk_score,
  severity: toSeverity(row.risk_score) as Severity,
  action: row.action,
  flags: toTopFlags(row.flags),
  first_alert_at: row.first_alert_at.toISOString(),
  latest_alert_at: row.latest_alert_at.toISOString(),
  due_at: row.due_at?.toISOString() ?? null,
  breached: row.due_at !== null && row.due_at.getTime() <= nowMs,
  assignee: row.assignee,
  judged_by: row.judged_by,
  judged_at: row.judged_at?.toISOString() ?? null,
  leased_by: toFuture(row.leased_until, nowMs) === null ? null : row.leased_by,
  leased_until: toFuture(row.leased_until, nowMs),
  merged_into: row.merged_into,
  version: row.version,
})

const toFuture = (at: Date | null, nowMs: number): string | null =>
  at !== null && at.getTime() > nowMs ? at.toISOString() : null

/** The flags of a case, those of most alerts first; of equally many in the order of their codes. */
const toTopFlags = (counts: FlagCounts): { code: string; alerts: number }[] =>
  Object.entries(counts)
    .map(([code, alerts]) => ({ code, alerts }))
    .sort((a, b) => b.alerts - a.alerts || (a.code < b.code ? -1 : 1))

/** Each flag counts once an alert, however many reasons have it. */
export function countFlags(reasons: readonly (readonly Pick<Reason, 'code'>[])[]): FlagCounts {
  const counts = new Map<string, number>()
  for (const ofAlert of reasons) {
    for (const code of new Set(ofAlert.map((reason) => reason.code))) {
      counts.set(code, (counts.get(code) ?? 0) + 1)
    }
  }
  return Object.fromEntries(counts)
}

/** The flags of alerts that are counted apart. */
export function addFlags(some: FlagCounts, more: FlagCounts): FlagCounts {
  const sums = new Map(Object.entries(some))
  for (const [code, alerts] of Object.entries(more)) sums.set(code, (sums.get(code) ?? 0) + alerts)
  return Object.fromEntries(sums)
}

/**
 * Reads what Postgres has for a timeline: alerts, how people worked on them, their deliveries,
 * labels, entries of lists and corrections of phones. Each kind is one query, newest first.
 */

import { toIso } from '#shared/core/base/instants.ts'
import { timelineAlertsMax } from '#shared/core/base/limits/entities.ts'
import type { TimelineBound, TimelineKind } from '#shared/core/devices/timeline.ts'
import type { TimelineEntry } from '#shared/core/devices/timeline-schema.ts'
import { toSeverity } from '#shared/core/scoring/score.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Whose timeline it is: of one user, or of the installs of a phone, one of which is a device. */
export type TimelineSubject =
  | { kind: 'user'; userId: string }
  | { kind: 'installs'; deviceIds: readonly string[]; phoneId: string | null }

export type WorkKind = Exclude<TimelineKind, 'event' | 'signal'>

export type WorkQuery = {
  tenantId: string
  subject: TimelineSubject
  fromMs: number
  bound: TimelineBound
  limit: number
}

type Bind = (value: unknown) => string
type WorkRow = { id: string; at: Date } & Record<string, unknown>

/** SQL: the condition of the subject's alerts. */
const ofSubject = (subject: TimelineSubject, bind: Bind): string =>
  subject.kind === 'user'
    ? `user_id = ${bind(subject.userId)}`
    : `device_id = any(${bind(subject.deviceIds)})`

/** SQL: the ids of the subject's alerts, the newest of them. */
const alertIdsSql = (subject: TimelineSubject, bind: Bind): string =>
  `select alert_id from alerts where tenant_id = $1 and ${ofSubject(subject, bind)}
   order by created_at desc, alert_id desc limit ${timelineAlertsMax}`

/** SQL: the condition of a row about the subject itself, by a kind and an id. */
function isAbout(subject: TimelineSubject, bind: Bind, column: string): string {
  const kind = subject.kind === 'user' ? 'user' : 'device'
  const ids = subject.kind === 'user' ? [subject.userId] : subject.deviceIds
  return `${column}_kind = '${kind}' and ${column}_id = any(${bind(ids)})`
}

/** Of each kind its rows, with `id` and `at` in milliseconds. */
const selects: Record<WorkKind, (subject: TimelineSubject, bind: Bind) => string> = {
  alert: (subject, bind) => `
    select alert_id as id, created_at as at, device_id, user_id, action, risk_score, flags,
      disposition
    from alerts where tenant_id = $1 and ${ofSubject(subject, bind)}`,
  delivery: (subject, bind) => `
    select delivery_id as id, date_trunc('milliseconds', created_at) as at, alert_id, event,
      case when claimed_by is null then state else 'sending' end as state, reason
    from deliveries where tenant_id = $1 and alert_id in (${alertIdsSql(subject, bind)})`,
  assignment: (subject, bind) => `
    select assignment_id::text as id, at, alert_id, actor as by, from_assignee as "from",
      to_assignee as "to"
    from alert_assignments where tenant_id = $1 and alert_id in (${alertIdsSql(subject, bind)})`,
  note: (subject, bind) => `
    select note_id::text as id, at, alert_id, author as by, note
    from alert_notes where tenant_id = $1 and alert_id in (${alertIdsSql(subject, bind)})`,
  case_note: (subject, bind) => `
    select note_id::text as id, at, case_id, author as by, note
    from case_notes where case_id in (
      select case_id from alerts
      where tenant_id = $1 and alert_id in (${alertIdsSql(subject, bind)}))`,
  disposition: (subject, bind) => `
    select disposition_id::text as id, date_trunc('milliseconds', at) as at, alert_id, actor as by,
      from_disposition as "from", to_disposition as "to", note
    from alert_dispositions where tenant_id = $1 and alert_id in (${alertIdsSql(subject, bind)})`,
  label: (subject, bind) => `
    select label_id as id, created_at as at, actor as by, subject_kind, subject_id, label,
      occurred_at, note
    from labels where tenant_id = $1 and ${isAbout(subject, bind, 'subject')}`,
  list_entry: (subject, bind) => `
    select * from (
      select entry_id as id, date_trunc('milliseconds', created_at) as at, created_by as by, list,
        kind as listed_kind, id as listed_id, reason, expires_at
      from list_entries where tenant_id = $1
    ) as entries where ${isAbout(subject, bind, 'listed')}`,
  correction: (subject, bind) => `
    select correction_id || case when undoes then ' undone' else '' end as id,
      case when undoes then undone_at else at end as at,
      case when undoes then undone_by else actor end as by, device_id, phone_id, reason,
      undoes as undone
    from phone_corrections cross join (values (false), (true)) as halves (undoes)
    where tenant_id = $1 and (not undoes or undone_at is not null)
      and ${ofInstalls(subject, bind)}`,
}

/** SQL: a correction of these installs, or to or from the phone. A user has none. */
function ofInstalls(subject: TimelineSubject, bind: Bind): string {
  if (subject.kind === 'user') return 'false'
  const { deviceIds, phoneId } = subject
  const ofDevices = `device_id = any(${bind(deviceIds)})`
  if (phoneId === null) return ofDevices
  const phone = bind(phoneId)
  return `(${ofDevices} or phone_id = ${phone} or from_phone_id = ${phone})`
}

/** @returns the newest entries of a kind before the bound, at most `limit` */
export async function listWork(
  db: Queryable,
  kind: WorkKind,
  { tenantId, subject, fromMs, bound, limit }: WorkQuery,
): Promise<TimelineEntry[]> {
  const values: unknown[] = [tenantId]
  const bind: Bind = (value) => `$${values.push(value)}`
  const select = selects[kind](subject, bind)
  const [before, beforeId] = [bind(new Date(bound.atMs)), bind(bound.id)]
  const { rows } = await db.query<WorkRow>(
    `select * from (${select}) as entries
     where at >= ${bind(new Date(fromMs))}
       and (at < ${before} or at = ${before} and id < ${beforeId} collate "C")
     order by at desc, id collate "C" desc limit ${bind(limit)}`,
    values,
  )
  return rows.map((row) => toEntry(kind, row))
}

function toEntry(kind: WorkKind, { at, ...row }: WorkRow): TimelineEntry {
  const instants = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof Date ? toIso(value.getTime()) : value,
  ])
  return {
    kind,
    at: toIso(at.getTime()),
    ...Object.fromEntries(instants),
    ...(kind === 'alert' ? { severity: toSeverity(row.risk_score as number) } : {}),
  } as TimelineEntry
}

/** Whether the subject has more alerts than those whose work a timeline has. */
export async function hasOlderAlerts(
  db: Queryable,
  { tenantId, subject }: Pick<WorkQuery, 'tenantId' | 'subject'>,
): Promise<boolean> {
  const values: unknown[] = [tenantId]
  const condition = ofSubject(subject, (value) => `$${values.push(value)}`)
  const { rows } = await db.query(
    `select 1 from alerts where tenant_id = $1 and ${condition}
     limit 1 offset ${timelineAlertsMax}`,
    values,
  )
  return rows.length > 0
}

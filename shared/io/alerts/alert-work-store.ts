/** How people work on alerts in Postgres: assignees, notes, and the history of dispositions. */
import type {
  AlertNote,
  Assignment,
  DispositionChange,
  OtherVerdicts,
} from '#shared/core/alerts/alert-work-schemas.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { verdictsCountedMax } from '#shared/core/base/limits/alerts.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { canBeStored } from './find-alert.ts'
import { setAssignees } from './set-assignees.ts'
import { lockAlert } from './set-disposition.ts'
import { nextChange } from './set-dispositions.ts'
import { toVerdictCounts } from './verdict-counts.ts'

/** What the list shows beside an alert. */
export type AlertWork = { assignee: string | null; notes: number; case_id: string | null }

/** An alert that an operator may change. */
type AlertOfScope = { alertId: string; scope: TenantScope; actor: string }

/** Assignees, numbers of notes and cases of some alerts of a tenant, by alert id. */
export async function readAlertWork(
  db: Queryable,
  tenantId: string,
  alertIds: readonly string[],
): Promise<Map<string, AlertWork>> {
  const { rows } = await db.query<AlertWork & { alert_id: string }>(
    `select alert_id, assignee, case_id, (
       select count(*) from alert_notes as n
       where n.tenant_id = a.tenant_id and n.alert_id = a.alert_id) as notes
     from alerts as a where tenant_id = $1 and alert_id = any($2)`,
    [tenantId, alertIds],
  )
  return new Map(rows.map(({ alert_id, ...work }) => [alert_id, work]))
}

/** All notes of an alert, oldest first. */
export async function listNotes(
  db: Queryable,
  tenantId: string,
  alertId: string,
): Promise<AlertNote[]> {
  const { rows } = await db.query<Omit<AlertNote, 'at'> & { at: Date }>(
    `select note_id, author, note, at from alert_notes
     where tenant_id = $1 and alert_id = $2 order by note_id`,
    [tenantId, alertId],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

/** All changes of an alert's disposition, oldest first. */
export async function listDispositions(
  db: Queryable,
  tenantId: string,
  alertId: string,
): Promise<DispositionChange[]> {
  const { rows } = await db.query<Omit<DispositionChange, 'at'> & { at: Date }>(
    `select at, actor, from_disposition as "from", to_disposition as "to", note,
       job_id, undoes is not null as undo
     from alert_dispositions where tenant_id = $1 and alert_id = $2 order by disposition_id`,
    [tenantId, alertId],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

/** All changes of an alert's assignee, oldest first. */
export async function listAssignments(
  db: Queryable,
  tenantId: string,
  alertId: string,
): Promise<Assignment[]> {
  const { rows } = await db.query<Omit<Assignment, 'at'> & { at: Date }>(
    `select at, actor, from_assignee as "from", to_assignee as "to", job_id,
       undoes is not null as undo
     from alert_assignments where tenant_id = $1 and alert_id = $2 order by assignment_id`,
    [tenantId, alertId],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

type VerdictRow = { subject: 'device' | 'user'; disposition: Disposition; alerts: number }

// An index has the newest alerts of a device, and of a user.
const verdictsSql = `
  with own as (
    select device_id, user_id from alerts where tenant_id = $1 and alert_id = $2
  ), found as (
    (select 'device' as subject, a.alert_id, a.disposition
     from alerts as a where a.tenant_id = $1 and a.device_id = (select device_id from own)
     order by a.created_at desc, a.alert_id desc limit ${verdictsCountedMax})
    union all
    (select 'user', a.alert_id, a.disposition
     from alerts as a where a.tenant_id = $1 and a.user_id = (select user_id from own)
     order by a.created_at desc, a.alert_id desc limit ${verdictsCountedMax})
  )
  select subject, disposition, count(*) as alerts from found
  where alert_id <> $2 group by subject, disposition`

/** What people said of the other alerts of the device and the user of an alert. */
export async function countOtherVerdicts(
  db: Queryable,
  { tenantId, alertId, hasUser }: { tenantId: string; alertId: string; hasUser: boolean },
): Promise<OtherVerdicts> {
  const { rows } = await db.query<VerdictRow>(verdictsSql, [tenantId, alertId])
  const countsOf = (subject: VerdictRow['subject']) =>
    toVerdictCounts(rows.filter((row) => row.subject === subject))
  return { device: countsOf('device'), user: hasUser ? countsOf('user') : null }
}

/** The version of the policy that scored the event of an alert; 0 when the alert is gone. */
export async function findAlertPolicyVersion(
  db: Queryable,
  tenantId: string,
  alertId: string,
): Promise<number> {
  const { rows } = await db.query<{ policy_version: number }>(
    'select policy_version from alerts where tenant_id = $1 and alert_id = $2',
    [tenantId, alertId],
  )
  return rows[0]?.policy_version ?? 0
}

/** The tenant of an alert in the operator's scope, with a lock on the alert for its notes. */
async function lockForNote(tx: Queryable, { alertId, scope }: AlertOfScope) {
  if (!canBeStored(alertId)) return null
  const { rows } = await tx.query<{ tenant_id: string }>(
    `select tenant_id from alerts
     where alert_id = $1 and ($2::text[] is null or tenant_id = any($2)) for no key update`,
    [alertId, toSlugs(scope)],
  )
  return rows[0] ?? null
}

/**
 * Assigns an alert, or takes its assignee away with null. Assigning the present one changes
 * nothing.
 * @param change.expected the assignee that the author last saw; left out, any
 * @returns the tenant, or null when there is no such alert
 * @throws Problem alert_changed when the assignee is neither the expected nor the new one
 */
export function setAssignee(
  postgres: Postgres,
  change: AlertOfScope & { assignee: string | null; expected?: string | null | undefined },
): Promise<string | null> {
  const { alertId, assignee, actor } = change
  return postgres.transaction(async (tx) => {
    const row = await lockAlert(tx, change)
    if (row === null) return null
    const { tenant_id: tenantId, disposition } = row
    const found = await readAlertWork(tx, tenantId, [alertId])
    const present = found.get(alertId)?.assignee ?? null
    const { expected = present } = change
    if (present !== expected && present !== assignee) {
      const detail = present === null ? 'It was unassigned meanwhile.' : `${present} has it now.`
      throw new Problem('alert_changed', detail, { present: { disposition, assignee: present } })
    }
    const alerts = [{ alertId, assignee }]
    await setAssignees(tx, { tenantId, alerts, actor, jobId: null, undoOf: null })
    return tenantId
  })
}

/**
 * Adds a note.
 * @param most notes that an alert has at most
 * @returns null when there is no such alert, `full` when it has as many notes as it may
 */
export function addNote(
  postgres: Postgres,
  wanted: AlertOfScope & { note: string; most: number },
): Promise<AlertNote | 'full' | null> {
  const { alertId, note, actor, most } = wanted
  return postgres.transaction(async (tx) => {
    const row = await lockForNote(tx, wanted)
    if (row === null) return null
    const { rows } = await tx.query<{ note_id: number; at: Date }>(
      `with changed as (
         update alerts as a set changed_at = ${nextChange('a')}
         where tenant_id = $1 and alert_id = $2
           and (select count(*) from alert_notes where tenant_id = $1 and alert_id = $2) < $5
         returning changed_at
       )
       insert into alert_notes (tenant_id, alert_id, author, note, at)
       select $1, $2, $3, $4, changed_at from changed
       returning note_id, at`,
      [row.tenant_id, alertId, actor, note, most],
    )
    if (rows[0] === undefined) return 'full'
    const { note_id, at } = rows[0]
    const after = { alert_id: alertId, note_id }
    await insertAudit(tx, { actor, tenantId: row.tenant_id, action: 'alert.noted', after })
    return { note_id, author: actor, note, at: at.toISOString() }
  })
}

/** The `seq` of the newest alert of some tenants, and the `case_seq` of their last changed case. */
export async function readLastSeqs(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<Map<string, { last: number; cases: number }>> {
  const { rows } = await db.query<{ tenant_id: string; last: number; cases: number }>(
    `select tenant_id, last_seq as last, case_seq as cases
     from alert_sequences where tenant_id = any($1)`,
    [tenantIds],
  )
  return new Map(rows.map(({ tenant_id: tenantId, ...seqs }) => [tenantId, seqs]))
}

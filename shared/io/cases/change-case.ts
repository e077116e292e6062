/**
 * Changes of a case by operators: snooze, assignee, notes. Each takes the lock of the tenant's
 * alerts first (alert-lock.ts), as every change of a case but leases does, and each is audited in
 * its transaction.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import {
  caseHistoryMax,
  caseSnoozeDaysMax,
  notesPerCaseMax,
} from '#shared/core/base/limits/alerts.ts'
import { type CaseEventKind, type ShownCase, toCase } from '#shared/core/cases/case.ts'
import type { CaseDetail } from '#shared/core/cases/case-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type Queryable, type Session, toTime } from '#shared/io/postgres/postgres.ts'
import { tellCases } from './case-changes.ts'
import { type FoundCase, foundCaseColumns } from './case-columns.ts'
import { caseNotFound, findCase, readCase } from './list-cases.ts'

/** A case that an operator may change. */
export type CaseOfScope = { caseId: string; scope: TenantScope; actor: string }

/**
 * Locks the tenant's alerts, then the case.
 * @throws Problem case_not_found, conflict when it was merged into another one
 */
export async function lockCase(tx: Queryable, wanted: CaseOfScope): Promise<FoundCase> {
  const found = await findCase(tx, wanted)
  if (found === null) throw caseNotFound(wanted.caseId)
  await lockSequences(tx, [found.tenant_id])
  const { rows } = await tx.query<FoundCase>(
    `select ${foundCaseColumns} from cases as c where c.case_id = $1 for update`,
    [wanted.caseId],
  )
  if (rows[0] === undefined) throw caseNotFound(wanted.caseId)
  const { merged_into: into } = rows[0]
  if (into !== null) throw new Problem('conflict', `The case was merged into ${into}.`)
  return rows[0]
}

/** Writes one entry of a case's history, and removes those that are too old to be shown. */
export async function recordCaseEvent(
  tx: Queryable,
  entry: { caseId: string; kind: CaseEventKind; actor: string; details: object },
): Promise<void> {
  await tx.query(
    'insert into case_events (case_id, kind, actor, details) values ($1, $2, $3, $4::jsonb)',
    [entry.caseId, entry.kind, entry.actor, JSON.stringify(entry.details)],
  )
  await tx.query(
    `delete from case_events where case_id = $1 and event_id <= (
       select event_id from case_events where case_id = $1
       order by event_id desc offset $2 limit 1)`,
    [entry.caseId, caseHistoryMax],
  )
}

/** Sets columns of a locked case, and tells the streams. @param set SQL with parameters from $3 on */
async function updateCase(
  tx: Queryable,
  { tenant_id: tenantId, case_id: caseId }: FoundCase,
  set: string,
  values: readonly unknown[],
): Promise<void> {
  await tellCases(tx, tenantId, [caseId])
  await tx.query(`update cases set ${set} where tenant_id = $1 and case_id = $2`, [
    tenantId,
    caseId,
    ...values,
  ])
}

/**
 * Snoozes an open case, which ends its lease; null wakes it now.
 * @param change.nowMs the wall clock
 * @throws Problem case_not_found, invalid_body for a time that is past or too far, conflict for a
 *   closed case
 */
export function snoozeCase(
  db: Session,
  change: CaseOfScope & { untilMs: number | null; nowMs: number },
): Promise<ShownCase> {
  const { caseId, untilMs, nowMs, actor } = change
  const most = nowMs + caseSnoozeDaysMax * dayMs
  if (untilMs !== null && (untilMs <= nowMs || untilMs > most)) {
    const message = `must be in the future, at most ${caseSnoozeDaysMax} days`
    const errors = [{ path: '$.until', message }]
    throw new Problem('invalid_body', 'The case cannot be snoozed until then.', { errors })
  }
  return db.transaction(async (tx) => {
    const row = await lockCase(tx, change)
    if (row.state === 'CLOSED') throw new Problem('conflict', 'The case is closed.')
    const until = untilMs === null ? null : toTime(untilMs)
    await updateCase(
      tx,
      row,
      'snoozed_until = $3::timestamptz, leased_by = null, leased_until = null',
      [until],
    )
    const kind = until === null ? 'woken' : 'snoozed'
    await recordCaseEvent(tx, { caseId, kind, actor, details: until === null ? {} : { until } })
    const after = { case_id: caseId, until }
    await insertAudit(tx, { actor, tenantId: row.tenant_id, action: 'case.snoozed', after })
    return readCase(tx, caseId)
  })
}

/**
 * Assigns a case, or takes its assignee away with null; its alerts keep theirs.
 * @throws Problem case_not_found
 */
export function assignCase(
  db: Session,
  change: CaseOfScope & { assignee: string | null },
): Promise<ShownCase> {
  const { caseId, assignee, actor } = change
  return db.transaction(async (tx) => {
    const row = await lockCase(tx, change)
    if (row.assignee === assignee) return toCase(row, row.now_ms)
    await updateCase(tx, row, 'assignee = $3::text', [assignee])
    const details = { from: row.assignee, to: assignee }
    await recordCaseEvent(tx, { caseId, kind: 'assigned', actor, details })
    await insertAudit(tx, {
      actor,
      tenantId: row.tenant_id,
      action: 'case.assigned',
      before: { case_id: caseId, assignee: row.assignee },
      after: { case_id: caseId, assignee },
    })
    return readCase(tx, caseId)
  })
}

/**
 * Adds a note.
 * @throws Problem case_not_found, conflict when the case has as many notes as it may
 */
export function addCaseNote(
  db: Session,
  change: CaseOfScope & { note: string },
): Promise<CaseDetail['notes'][number]> {
  const { caseId, note, actor } = change
  return db.transaction(async (tx) => {
    const { tenant_id: tenantId } = await lockCase(tx, change)
    const { rows } = await tx.query<{ note_id: number; at: Date }>(
      `insert into case_notes (case_id, author, note)
       select $1, $2, $3 where (select count(*) from case_notes where case_id = $1) < $4
       returning note_id, at`,
      [caseId, actor, note, notesPerCaseMax],
    )
    if (rows[0] === undefined) throw tooManyNotes('$.note')
    const { note_id, at } = rows[0]
    const after = { case_id: caseId, note_id }
    await insertAudit(tx, { actor, tenantId, action: 'case.noted', after })
    return { note_id, author: actor, note, at: at.toISOString() }
  })
}

const tooManyNotes = (path: string) => {
  const message = `a case has at most ${notesPerCaseMax} notes`
  return new Problem('conflict', `A case has at most ${notesPerCaseMax} notes.`, {
    errors: [{ path, message }],
  })
}

/**
 * Moves the notes of a case to another one.
 * @param path the field that names the other case
 * @throws Problem conflict when that would have more notes than it may
 */
export async function moveNotes(
  tx: Queryable,
  { from, into, path }: { from: string; into: string; path: string },
): Promise<void> {
  const { rowCount } = await tx.query('update case_notes set case_id = $2 where case_id = $1', [
    from,
    into,
  ])
  if (rowCount === 0) return
  const { rows } = await tx.query<{ n: number }>(
    'select count(*) as n from case_notes where case_id = $1',
    [into],
  )
  if (rows[0]!.n > notesPerCaseMax) throw tooManyNotes(path)
}

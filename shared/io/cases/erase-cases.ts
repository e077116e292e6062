/**
 * What an erasure leaves of cases. A case whose alerts are erased goes with the last of them; one
 * that is about the subject and has alerts of others by a merge becomes a case of these.
 */
import { toJsonText } from '#shared/core/base/word-pattern.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Who is erased. */
type Subject = { tenantId: string; kind: 'device' | 'user'; id: string }

/** SQL: a saved view that has an id in its name, or in its query as a filter or in SQL. */
const namesId = `tenant_id = $1 and (strpos(query::text, $2) > 0 or strpos(name, $3) > 0)`
const toNamed = ({ tenantId, id }: Subject) => [tenantId, toJsonText(id), id]

/** Counts what `eraseCasesOf` would erase or rebuild. */
export async function countCasesOf(
  db: Queryable,
  subject: Subject,
): Promise<{ cases: number; saved_views: number }> {
  const { tenantId, kind, id } = subject
  const { rows: cases } = await db.query<{ n: number }>(
    `select count(*) as n from cases
     where tenant_id = $1 and subject_kind = $2 and subject_id = $3`,
    [tenantId, kind, id],
  )
  const { rows: views } = await db.query<{ n: number }>(
    `select count(*) as n from saved_views where ${namesId}`,
    toNamed(subject),
  )
  return { cases: cases[0]!.n, saved_views: views[0]!.n }
}

/** Call it in a transaction, after the subject's alerts are erased. */
export async function eraseCasesOf(tx: Queryable, subject: Subject): Promise<void> {
  const { tenantId, kind, id } = subject
  await lockSequences(tx, [tenantId])
  const values = [tenantId, kind, id]
  const isOfSubject = 'c.tenant_id = $1 and c.subject_kind = $2 and c.subject_id = $3'
  await tx.query(`delete from cases as c where ${isOfSubject} and c.alert_count = 0`, values)
  // Words about the subject are not about the devices that are left.
  for (const table of ['case_notes', 'case_events']) {
    await tx.query(
      `delete from ${table} as w using cases as c where w.case_id = c.case_id and ${isOfSubject}`,
      values,
    )
  }
  await tx.query(
    `update cases as c set subject_kind = 'device', subject_id = (
       select a.device_id from alerts as a
       where a.tenant_id = c.tenant_id and a.case_id = c.case_id
       order by a.created_at desc, a.alert_id desc limit 1)
     where ${isOfSubject}`,
    values,
  )
  await tx.query(
    `delete from case_notes as n using cases as c
     where c.case_id = n.case_id and c.tenant_id = $1 and strpos(n.note, $2) > 0`,
    [tenantId, id],
  )
  await tx.query(`delete from saved_views where ${namesId}`, toNamed(subject))
}

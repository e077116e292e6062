/**
 * Erases the alerts of a device or a user with their history and notes, their deliveries and
 * attempts, whose bodies name it too, bulk changes whose filter is its id, its entries on the allow
 * and deny lists, labels of it, its sessions and its events, corrections of its phone, its cases,
 * and saved views, proposals and kept answers that hold its id, and takes it out of the evidence of
 * other devices' alerts. The counters move in the same
 * transaction, so a total stays exact; `seq` of the other alerts stays what it is, so an erasure
 * leaves gaps in it.
 */
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { countProposalsOf, removeProposalsOf } from '#shared/io/approvals/proposal-store.ts'
import { countCasesOf, eraseCasesOf } from '#shared/io/cases/erase-cases.ts'
import { preferKeyLookups } from '#shared/io/deliveries/key-lookups.ts'
import { eraseAnswers } from '#shared/io/http/idempotent-answers.ts'
import { countCorrectionsOf, removeCorrectionsOf } from '#shared/io/identity/correct-phone.ts'
import { countListEntriesOf, removeListEntriesOf } from '#shared/io/lists/list-store.ts'
import { countErasableLabels, eraseLabels } from '#shared/io/outcomes/label-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { type ErasureSubject, toSubjectSha256 } from './erasure-subject.ts'
import { forgetInEvidence } from './forget-in-evidence.ts'

type ErasableAlerts = {
  subject: ErasureSubject
  /** Events of the subject: an alert may name another user of its event. */
  eventIds: readonly string[]
  sessionIds: readonly string[]
}

export type AlertCounts = {
  alerts: number
  alert_dispositions: number
  alert_assignments: number
  alert_notes: number
  deliveries: number
  delivery_attempts: number
  bulk_jobs: number
  /** Entries of the subject on the allow and deny lists. */
  list_entries: number
  /** Corrections of the phone that a device is on. */
  phone_corrections: number
  /** Proposals that name the subject. */
  proposals: number
  /** Labels of the subject, of its sessions and of its events. */
  labels: number
  /** Cases that are about the subject. */
  cases: number
  /** Saved views that name it. */
  saved_views: number
}

/** Counted by queries of their own. */
type CountedApart =
  | 'list_entries'
  | 'labels'
  | 'phone_corrections'
  | 'proposals'
  | 'cases'
  | 'saved_views'

/** Alerts of one transaction: its lock keeps new alerts of the tenant waiting. */
const batchMax = 2_000

function toCondition({ subject, eventIds }: ErasableAlerts): { text: string; values: unknown[] } {
  const values = [subject.tenantId, subject.id]
  if (subject.kind === 'device') return { text: 'tenant_id = $1 and device_id = $2', values }
  return {
    text: 'tenant_id = $1 and (user_id = $2 or event_id = any($3))',
    values: [...values, eventIds],
  }
}

/** Bulk changes of the subject's own alerts: once these are erased there is nothing to undo. */
const jobsCondition = ({ kind }: ErasureSubject): string =>
  `tenant_id = $1 and filter->>'${kind}_id' = $2`

/** A subject with the hash that proposals to erase it have. */
const toNamed = (subject: ErasureSubject) => ({ ...subject, sha256: toSubjectSha256(subject) })

/** Counts what `eraseAlerts` would erase. */
export async function countErasableAlerts(
  db: Session,
  erasable: ErasableAlerts,
): Promise<AlertCounts> {
  return db.transaction((tx) => countErasable(tx, erasable))
}

async function countErasable(tx: Queryable, erasable: ErasableAlerts): Promise<AlertCounts> {
  const { text, values } = toCondition(erasable)
  await preferKeyLookups(tx)
  const { rows } = await tx.query<Omit<AlertCounts, CountedApart>>(
    `with erasable as (select tenant_id, alert_id from alerts where ${text}),
     sent as (
       select d.delivery_id, d.created_at
       from deliveries as d join erasable using (tenant_id, alert_id)
     )
     select
       (select count(*) from erasable) as alerts,
       (select count(*) from alert_dispositions join erasable using (tenant_id, alert_id))
         as alert_dispositions,
       (select count(*) from alert_assignments join erasable using (tenant_id, alert_id))
         as alert_assignments,
       (select count(*) from alert_notes join erasable using (tenant_id, alert_id)) as alert_notes,
       (select count(*) from sent) as deliveries,
       (select count(*) from delivery_attempts as a join sent
          on a.delivery_id = sent.delivery_id and a.delivery_created_at = sent.created_at)
         as delivery_attempts,
       (select count(*) from bulk_jobs where ${jobsCondition(erasable.subject)}) as bulk_jobs`,
    values,
  )
  const { tenantId, kind, id } = erasable.subject
  return {
    ...rows[0]!,
    list_entries: await countListEntriesOf(tx, erasable.subject),
    labels: await countErasableLabels(tx, erasable),
    proposals: await countProposalsOf(tx, toNamed(erasable.subject)),
    phone_corrections:
      kind === 'device' ? await countCorrectionsOf(tx, { tenantId, deviceId: id }) : 0,
    ...(await countCasesOf(tx, erasable.subject)),
  }
}

/** The ids of what `eraseAlerts` would erase. */
export async function listErasableAlerts(
  db: Queryable,
  erasable: ErasableAlerts,
): Promise<string[]> {
  const { text, values } = toCondition(erasable)
  const { rows } = await db.query<{ alert_id: string }>(
    `select alert_id from alerts where ${text} order by alert_id`,
    values,
  )
  return rows.map((row) => row.alert_id)
}

/**
 * Erases them, some thousands in a transaction, with the subject's entries on the allow and deny
 * lists, corrections of its phone, proposals that name it and the kept answers. Repeating it erases
 * what is left.
 * @throws PostgresUnavailableError; call again
 */
export async function eraseAlerts(db: Session, erasable: ErasableAlerts): Promise<void> {
  const { subject } = erasable
  await db.transaction(async (tx) => {
    await removeListEntriesOf(tx, subject)
    await removeProposalsOf(tx, toNamed(subject))
    const { tenantId, kind, id } = subject
    if (kind !== 'device') return
    await removeCorrectionsOf(tx, { tenantId, deviceId: id })
    await forgetInEvidence(tx, { tenantId, deviceId: id })
  })
  await db.transaction(async (tx) => {
    await preferKeyLookups(tx)
    await eraseLabels(tx, erasable)
  })
  for (let erased = batchMax; erased === batchMax; ) {
    erased = await db.transaction((tx) => eraseSome(tx, erasable))
  }
  await db.transaction((tx) => eraseCasesOf(tx, subject))
  await db.transaction((tx) =>
    tx.query(`delete from bulk_jobs where ${jobsCondition(subject)}`, [
      subject.tenantId,
      subject.id,
    ]),
  )
  // Last, and without a lock: an answer is written in a transaction that locks what it changes, so
  // none about what is erased comes later.
  await eraseAnswers(db, subject.tenantId, subject.id)
}

/** Takes the lock of the tenant's alerts first, and its deliveries in the order of their ids. */
async function eraseSome(tx: Queryable, erasable: ErasableAlerts): Promise<number> {
  const { tenantId } = erasable.subject
  await lockSequences(tx, [tenantId])
  await preferKeyLookups(tx)
  const { text, values } = toCondition(erasable)
  const { rows } = await tx.query<{ alert_id: string }>(
    `select alert_id from alerts where ${text} order by alert_id limit ${batchMax} for update`,
    values,
  )
  if (rows.length > 0) {
    const erased = [tenantId, rows.map((row) => row.alert_id)]
    await tx.query(
      `select 1 from deliveries where tenant_id = $1 and alert_id = any($2)
       order by delivery_id for update`,
      erased,
    )
    await tx.query(eraseSql, erased)
  }
  return rows.length
}

// Dispositions, assignments, notes and attempts go with what they belong to. The rows are locked,
// so what is counted is what is erased.
const eraseSql = `
with erased as (
  select action, disposition, created_at from alerts where tenant_id = $1 and alert_id = any($2)
), gone as (
  delete from alerts where tenant_id = $1 and alert_id = any($2)
), undelivered as (
  delete from deliveries where tenant_id = $1 and alert_id = any($2)
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select $1, (created_at at time zone 'UTC')::date, disposition, action, -count(*)
  from erased group by 2, 3, 4
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
)
insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
select $1, date_bin('1 hour', created_at, 'epoch'), disposition, action, -count(*)
from erased group by 2, 3, 4
on conflict (tenant_id, hour, disposition, decision)
do update set alert_count = counts.alert_count + excluded.alert_count`

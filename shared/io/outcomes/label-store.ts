/**
 * Labels in Postgres, the source of truth. Rows are only added; the calls of a tenant add one after
 * another, so `seq` rises in the order of commits, and the latest is the same for everybody.
 */
import { coveredDaysDefault, labelsMax } from '#shared/core/base/limits/outcomes.ts'
import {
  type LabelSubject,
  type Outcome,
  type SubjectKind,
  toOutcome,
} from '#shared/core/outcomes/labels.ts'
import { formatAmount } from '#shared/core/outcomes/money.ts'
import { operatorIdOf } from '#shared/io/alerts/alert-columns.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type RowColumn, toArrays, toUnnest } from '#shared/io/postgres/unnest.ts'

/** A label to add. */
export type NewLabel = {
  labelId: string
  subject: LabelSubject
  label: string
  /** What a declared code means; null of the labels that every tenant has. */
  codeMeans: Outcome | null
  occurredAtMs: number
  /** Null is the usual number. */
  coveredDays: number | null
  /** A decimal text; null without a currency. */
  amount: string | null
  currency: string | null
  externalId: string | null
  note: string | null
}

/** A label as it is shown. Times are ISO-8601. */
export type LabelView = {
  label_id: string
  subject: Partial<Record<`${SubjectKind}_id`, string>>
  label: string
  outcome: Outcome | null
  is_latest: boolean
  occurred_at: string
  /** Null of an event or a session. */
  covered_days: number | null
  amount: string | null
  currency: string | null
  external_id: string | null
  note: string | null
  created_at: string
  actor: string
}

const columns: readonly RowColumn<NewLabel>[] = [
  { column: 'label_id', type: 'text', of: (label) => label.labelId },
  { column: 'subject_kind', type: 'text', of: ({ subject }) => subject.kind },
  { column: 'subject_id', type: 'text', of: ({ subject }) => subject.id },
  { column: 'label', type: 'text', of: ({ label }) => label },
  { column: 'code_means', type: 'text', of: ({ codeMeans }) => codeMeans },
  { column: 'occurred_at', type: 'timestamptz', of: (label) => new Date(label.occurredAtMs) },
  {
    column: 'covered_days',
    type: 'smallint',
    of: ({ coveredDays }) => coveredDays ?? coveredDaysDefault,
  },
  { column: 'amount', type: 'numeric', of: ({ amount }) => amount },
  { column: 'currency', type: 'text', of: ({ currency }) => currency },
  { column: 'external_id', type: 'text', of: ({ externalId }) => externalId ?? '' },
  { column: 'note', type: 'text', of: ({ note }) => note },
]

/** The order of the call, in which `seq` rises. */
const place: RowColumn<NewLabel> = { column: 'place', type: 'integer', of: () => null }

/**
 * Adds labels, in their order. Call it in a transaction: it lets no two calls of a tenant pass the
 * limit together.
 * @returns false when the tenant has as many labels as it may; then the transaction must end
 */
export async function insertLabels(
  tx: Queryable,
  { tenantId, actor, labels }: { tenantId: string; actor: string; labels: readonly NewLabel[] },
): Promise<boolean> {
  const { rows } = await tx.query<{ labels: number }>(
    `insert into label_totals as present (tenant_id, labels) values ($1, $2)
     on conflict (tenant_id) do update set labels = present.labels + excluded.labels
     returning labels`,
    [tenantId, labels.length],
  )
  if (rows[0]!.labels > labelsMax) return false
  const names = columns.map(({ column }) => column).join(', ')
  await tx.query(
    `insert into labels (tenant_id, actor, created_at, ${names})
     select $1, $2, statement_timestamp(), ${names}
     from ${toUnnest([...columns, place], 3)} order by place`,
    [tenantId, actor, ...toArrays(columns, labels), labels.map((_, at) => at)],
  )
  return true
}

export type LabelFilters = {
  tenantId: string
  subject?: LabelSubject | undefined
  label?: string | undefined
  externalId?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

type LabelRow = Omit<LabelView, 'subject' | 'outcome' | 'occurred_at' | 'created_at'> & {
  subject_kind: SubjectKind
  subject_id: string
  occurred_at: Date
  created_at: Date
  actor_id: string | null
  code_means: Outcome | null
}

/** A label with the id of the operator who made it, null where none did. */
export type FoundLabel = { label: LabelView; actorId: string | null }

/** A page of labels, newest first. @param page.after the last label of the previous page */
export async function listLabels(
  db: Queryable,
  filters: LabelFilters,
  page: { limit: number; after: { createdAtMs: number; labelId: string } | null },
): Promise<FoundLabel[]> {
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const { tenantId, subject, label, externalId, fromMs, toMs } = filters
  const conditions = [
    `l.tenant_id = ${bind(tenantId)}`,
    ...(subject === undefined
      ? []
      : [`l.subject_kind = ${bind(subject.kind)}`, `l.subject_id = ${bind(subject.id)}`]),
    ...(label === undefined ? [] : [`l.label = ${bind(label)}`]),
    ...(externalId === undefined ? [] : [`l.external_id = ${bind(externalId)}`]),
    ...(fromMs === undefined ? [] : [`l.created_at >= ${bind(new Date(fromMs))}`]),
    ...(toMs === undefined ? [] : [`l.created_at < ${bind(new Date(toMs))}`]),
    ...(page.after === null
      ? []
      : [
          `(l.created_at, l.label_id) < (${bind(new Date(page.after.createdAtMs))}, ${bind(page.after.labelId)})`,
        ]),
  ]
  const { rows } = await db.query<LabelRow>(
    `select l.label_id, l.subject_kind, l.subject_id, l.label, l.code_means, l.occurred_at, l.covered_days,
       l.amount::text as amount, l.currency, nullif(l.external_id, '') as external_id, l.note,
       l.created_at, l.actor, ${operatorIdOf('l.actor')} as actor_id,
       not exists (
         select from labels as later where later.tenant_id = l.tenant_id
           and later.subject_kind = l.subject_kind and later.subject_id = l.subject_id
           and later.external_id = l.external_id and later.seq > l.seq) as is_latest
     from labels as l where ${conditions.join(' and ')}
     order by l.created_at desc, l.label_id desc limit ${bind(page.limit)}`,
    values,
  )
  return rows.map((row) => ({ label: toView(row), actorId: row.actor_id }))
}

function toView({
  subject_kind: kind,
  subject_id: id,
  actor_id: _,
  code_means: codeMeans,
  ...row
}: LabelRow): LabelView {
  const isWide = kind === 'device' || kind === 'user'
  return {
    ...row,
    subject: { [`${kind}_id`]: id },
    outcome: toOutcome(row.label, codeMeans),
    occurred_at: row.occurred_at.toISOString(),
    covered_days: isWide ? row.covered_days : null,
    amount: row.amount === null ? null : formatAmount(row.amount, row.currency!),
    created_at: row.created_at.toISOString(),
  }
}

/** What an erasure removes: labels of the device or user, of its sessions and of its events. */
export type ErasableLabels = {
  subject: { tenantId: string; kind: 'device' | 'user'; id: string }
  eventIds: readonly string[]
  sessionIds: readonly string[]
}

const isErasable = `tenant_id = $1 and (
  (subject_kind = $2 and subject_id = $3)
  or (subject_kind = 'event' and subject_id = any($4::text[]))
  or (subject_kind = 'session' and subject_id = any($5::text[])))`

const toErasable = ({ subject: { tenantId, kind, id }, ...named }: ErasableLabels) => [
  ...[tenantId, kind, id],
  ...[named.eventIds, named.sessionIds],
]

/** Counts what `eraseLabels` would erase. */
export async function countErasableLabels(
  db: Queryable,
  erasable: ErasableLabels,
): Promise<number> {
  const { rows } = await db.query<{ labels: number }>(
    `select count(*) as labels from labels where ${isErasable}`,
    toErasable(erasable),
  )
  return rows[0]!.labels
}

/** Erases them. Repeating it erases what is left. */
export async function eraseLabels(db: Queryable, erasable: ErasableLabels): Promise<void> {
  await db.query(`delete from labels where ${isErasable}`, toErasable(erasable))
}

/**
 * Removes labels that were received before an instant.
 * @returns how many; fewer than `most` means that none is left
 */
export async function removeOldLabels(
  db: Queryable,
  { tenantId, cutoffMs }: { tenantId: string; cutoffMs: number },
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from labels where label_id in (
       select label_id from labels where tenant_id = $1 and created_at < $2
       order by created_at limit $3)`,
    [tenantId, new Date(cutoffMs), most],
  )
  return rowCount
}

/**
 * The audit log: who did what, with the state before and after. A row of a change is written in the
 * transaction of the change, so neither exists without the other. It contains no secrets, and the
 * database refuses to change or remove a row.
 */
import type { AuditedAction } from '#shared/core/audit/audited-actions.ts'
import type { Queryable } from './postgres.ts'

type AuditEntry = {
  /** Who: an operator's email, `admin` for the admin token, `system` for our own repairs. */
  actor: string
  tenantId: string | null
  action: AuditedAction
  before?: unknown
  after?: unknown
}

/** A row as the admin API shows it. */
type AuditRow = {
  audit_id: number
  at: string
  actor: string
  tenant_id: string | null
  action: string
  before: unknown
  after: unknown
  /** The database user that wrote it, which no process can choose; null in older rows. */
  written_by: string | null
}

/** Which rows; a filter that is left out does not narrow the list. */
export type AuditFilters = {
  /** A tenant's rows; null: those that concern no single tenant. */
  tenantId?: string | null | undefined
  actor?: string | undefined
  /** Rows with any of these actions. */
  actions?: readonly string[] | undefined
  /** Rows written at this instant or later, in ms since 1970. */
  fromMs?: number | undefined
  /** Rows written before this instant. */
  toMs?: number | undefined
}

/** Writes one row. Call it inside the change's transaction. */
export async function insertAudit(tx: Queryable, entry: AuditEntry): Promise<void> {
  await tx.query(
    `insert into audit_log (actor, tenant_id, action, before, after)
     values ($1, $2, $3, $4::jsonb, $5::jsonb)`,
    [entry.actor, entry.tenantId, entry.action, toJson(entry.before), toJson(entry.after)],
  )
}

/**
 * The rows of some filters, newest first.
 * @param page.limit at most this many
 * @param page.before continues after the row with this id
 */
export async function listAudit(
  db: Queryable,
  page: AuditFilters & { limit: number; before?: number | undefined },
): Promise<AuditRow[]> {
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  // One text for each set of filters, so that each is planned for the index that serves it.
  const conditions = [
    ...(page.tenantId === null ? ['tenant_id is null'] : []),
    ...(typeof page.tenantId === 'string' ? [`tenant_id = ${bind(page.tenantId)}`] : []),
    ...(page.actor === undefined ? [] : [`actor = ${bind(page.actor)}`]),
    ...(page.actions === undefined ? [] : [`action = any(${bind(page.actions)}::text[])`]),
    ...(page.fromMs === undefined ? [] : [`at >= ${bind(new Date(page.fromMs))}`]),
    ...(page.toMs === undefined ? [] : [`at < ${bind(new Date(page.toMs))}`]),
    ...(page.before === undefined ? [] : [`audit_id < ${bind(page.before)}`]),
  ]
  const { rows } = await db.query<Omit<AuditRow, 'at'> & { at: Date }>(
    `select audit_id, at, actor, tenant_id, action, before, after, written_by from audit_log
     ${conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`}
     order by audit_id desc limit ${bind(page.limit)}`,
    values,
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

const toJson = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value)

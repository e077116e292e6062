/**
 * The audit log: who changed what, with the state before and after. A row is written in the
 * transaction of its change, so neither exists without the other. It contains no secrets, and the
 * database refuses to change or remove a row.
 */
import type { Queryable } from './postgres.ts'

type AuditEntry = {
  /** Who: an operator's email, `admin` for the admin token, `system` for our own repairs. */
  actor: string
  tenantId: string | null
  /** `noun.verb` in the past tense: `tenant.created`. */
  action: string
  before?: unknown
  after?: unknown
}

/** A row as the admin API shows it. */
export type AuditRow = {
  audit_id: number
  at: string
  actor: string
  tenant_id: string | null
  action: string
  before: unknown
  after: unknown
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
 * A tenant's rows, newest first; with null those that concern no single tenant.
 * @param page.before continues after the row with this id
 */
export async function listAudit(
  db: Queryable,
  page: { tenantId: string | null; limit: number; before?: number | undefined },
): Promise<AuditRow[]> {
  const { rows } = await db.query<Omit<AuditRow, 'at'> & { at: Date }>({
    name: 'list-audit',
    text: `select audit_id, at, actor, tenant_id, action, before, after from audit_log
           where tenant_id is not distinct from $1 and ($2::bigint is null or audit_id < $2)
           order by audit_id desc limit $3`,
    values: [page.tenantId, page.before ?? null, page.limit],
  })
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

const toJson = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value)

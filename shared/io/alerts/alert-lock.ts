/**
 * The lock of a tenant's alerts: the row of its sequence. Every transaction that changes alerts or
 * their counters locks it first, tenants in ascending order, so such transactions never deadlock.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type Sequences = Map<string, number>

/**
 * Locks tenants in ascending order.
 * @returns the last `seq` of every existing tenant; null when one has no sequence row yet
 */
export async function lockSequences(
  tx: Queryable,
  tenantIds: readonly string[],
): Promise<Sequences | null> {
  const tenants = await tx.query({
    name: 'find-tenants-of-alerts',
    text: 'select tenant_id from tenants where tenant_id = any($1)',
    values: [tenantIds],
  })
  const sequences = await tx.query<{ tenant_id: string; last_seq: number }>({
    name: 'lock-alert-sequences',
    text: `select tenant_id, last_seq from alert_sequences where tenant_id = any($1)
           order by tenant_id for update`,
    values: [tenantIds],
  })
  if (sequences.rows.length < tenants.rows.length) return null
  return new Map(sequences.rows.map((row) => [row.tenant_id, row.last_seq]))
}

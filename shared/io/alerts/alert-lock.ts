/**
 * The one lock of a tenant's alerts: the row of its sequence. Whatever inserts, changes or removes
 * alerts or moves their counters takes it first, tenants ascending, so such transactions wait for
 * one another before they hold anything else, in whatever order Postgres runs their statements.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type Sequences = Map<string, number>

/**
 * Takes the locks, in the order of the tenants.
 * @returns the last `seq` of every tenant that exists, or null when one has no sequence row yet
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

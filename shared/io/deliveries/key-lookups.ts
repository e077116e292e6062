/**
 * Joins with deliveries and their attempts. Postgres gathers statistics of partitions, but not of
 * the partitioned table. Without them it takes a key for common, and would read whole months to
 * find a few deliveries.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Makes the rest of a transaction look up joined rows by their keys, one by one. */
export async function preferKeyLookups(tx: Queryable): Promise<void> {
  await tx.query(
    // jit: a plan that needs one of the others looks so expensive that it would be compiled.
    `select set_config(name, 'off', true)
     from unnest('{enable_hashjoin,enable_mergejoin,enable_seqscan,jit}'::text[]) as name`,
  )
}

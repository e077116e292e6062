/**
 * Finds the corrections of phones in Postgres that the replica in ClickHouse does not have yet: of
 * each install the one that counts. They have a snapshot of their own, since an older release
 * beside this one copies alerts alone. Replicating a row again changes nothing.
 */
import { type Clickhouse, insertRows } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { toInstant, unseen } from './replication-store.ts'

export type CorrectionReplicaRow = {
  tenant_id: string
  device_id: string
  /** Empty when none counts any more. */
  phone_id: string
  from_phone_id: string
  at: string
}

/**
 * @param copied the snapshot of the last copy; null finds all
 * @returns a row for each install with a correction that is new or undone since
 */
export async function findChangedCorrections(
  tx: Queryable,
  copied: string | null,
): Promise<CorrectionReplicaRow[]> {
  const { rows } = await tx.query<CorrectionReplicaRow>(
    `with changed as (
       select distinct tenant_id, device_id from phone_corrections
       ${copied === null ? '' : `where ${unseen('written_by_xid')}`}
     )
     select tenant_id, device_id, coalesce(counts.phone_id, '') as phone_id,
       coalesce(counts.from_phone_id, '') as from_phone_id,
       coalesce(${toInstant('counts.at')}, '1970-01-01 00:00:00.000') as at
     from changed
     left join lateral (
       select phone_id, from_phone_id, at from phone_corrections as c
       where c.tenant_id = changed.tenant_id and c.device_id = changed.device_id
         and undone_at is null
       order by at desc limit 1
     ) as counts on true`,
    copied === null ? [] : [copied],
  )
  return rows
}

/** Copies corrections; repeating it changes nothing. */
export async function insertCorrectionRows(
  clickhouse: Clickhouse,
  round: number,
  rows: readonly CorrectionReplicaRow[],
): Promise<void> {
  await insertRows(
    clickhouse,
    'phone_corrections_replica',
    rows.map((row) => ({ ...row, round })),
  )
}

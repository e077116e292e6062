/**
 * Finds erased subjects that are there again with data from before their erasure, because a store
 * was put back to an earlier state. Only their hashes are known; the store has the ids.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Erased } from '#shared/io/tenants/removal-list.ts'
import type { ErasureSubject } from './erasure-subject.ts'

type Found = { id: string; sha256: string; firstMs: number }

/** @returns subjects of which ClickHouse has data from before their erasure */
export function findRevivedEvents(
  clickhouse: Clickhouse,
  erased: readonly Erased[],
): Promise<ErasureSubject[]> {
  return findRevived(erased, (wanted) => findInClickhouse(clickhouse, wanted))
}

/** @returns the same of alerts, list entries, labels and corrections of phones in Postgres */
export function findRevivedAlerts(
  postgres: Queryable,
  erased: readonly Erased[],
): Promise<ErasureSubject[]> {
  return findRevived(erased, (wanted) => findInPostgres(postgres, wanted))
}

async function findRevived(
  erased: readonly Erased[],
  find: (wanted: SubjectHashes) => Promise<Found[]>,
): Promise<ErasureSubject[]> {
  const groups = Map.groupBy(erased, ({ tenant_id, subject }) => `${tenant_id} ${subject}`)
  const revived: ErasureSubject[] = []
  for (const group of groups.values()) {
    const { tenant_id: tenantId, subject: kind } = group[0]!
    // The latest one of each subject.
    const byTime = group.toSorted((a, b) => (a.started_at < b.started_at ? -1 : 1))
    const startedMs = new Map(byTime.map((one) => [one.sha256, Date.parse(one.started_at)]))
    const found = await find({ tenantId, kind, hashes: [...startedMs.keys()] })
    // What came after an erasure is new, and is kept.
    const old = found.filter(({ sha256, firstMs }) => firstMs < startedMs.get(sha256)!)
    revived.push(...old.map(({ id }) => ({ tenantId, kind, id })))
  }
  return revived
}

type SubjectHashes = { tenantId: string; kind: ErasureSubject['kind']; hashes: string[] }

async function findInClickhouse(
  clickhouse: Clickhouse,
  { tenantId, kind, hashes }: SubjectHashes,
): Promise<Found[]> {
  const [table, column] = kind === 'device' ? ['devices', 'device_id'] : ['user_devices', 'user_id']
  const result = await clickhouse.query({
    query: `select ${column} as id, lower(hex(SHA256(${column}))) as sha256,
        toUnixTimestamp64Milli(min(first_seen_at)) as firstMs
      from ${table}
      where tenant_id = {tenant:String} and sha256 in {hashes:Array(String)}
      group by ${column}`,
    query_params: { tenant: tenantId, hashes },
    use_multipart_params_auto: true,
    format: 'JSONEachRow',
  })
  return result.json<Found>()
}

async function findInPostgres(
  postgres: Queryable,
  { tenantId, kind, hashes }: SubjectHashes,
): Promise<Found[]> {
  const column = kind === 'device' ? 'device_id' : 'user_id'
  const { rows } = await postgres.query<{ id: string; sha256: string; first: Date }>(
    `select id, encode(sha256(convert_to(id, 'UTF8')), 'hex') as sha256, min(at) as first
     from (
       select ${column} as id, created_at as at from alerts
       where tenant_id = $1 and ${column} is not null
       union all
       select id, created_at from list_entries where tenant_id = $1 and kind = $3
       union all
       select device_id, at from phone_corrections where tenant_id = $1 and $3 = 'device'
       union all
       select subject_id, created_at from labels
       where tenant_id = $1 and subject_kind = $3) as named
     where encode(sha256(convert_to(id, 'UTF8')), 'hex') = any($2)
     group by id`,
    [tenantId, hashes, kind],
  )
  return rows.map(({ id, sha256, first }) => ({ id, sha256, firstMs: first.getTime() }))
}

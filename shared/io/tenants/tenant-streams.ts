/**
 * The telemetry stream of each tenant, by number. It is chosen when the tenant is created and never
 * changes: an exact order of the tenant's events needs one stream.
 */
import {
  type TelemetryStream,
  toTelemetryStream,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** First number of the advisory locks below; the second one is the number of the stream. */
const creationLocks = 7_003

/**
 * Call it in the transaction that adds the tenant. Until that ends, others count the tenant by a
 * lock that all may share, so no creation waits for another. Two that choose in the same instant
 * may choose the same stream, which is no harm.
 * @param streams how many streams there are
 * @returns the number of the stream with the fewest tenants
 */
export async function chooseTelemetryStream(tx: Queryable, streams: number): Promise<number> {
  const { rows } = await tx.query<{ stream: number }>(
    `with least as materialized (
       select stream::integer from generate_series(1, $1) as stream
       order by
         (select count(*) from tenants where telemetry_stream = stream) +
         (select count(*) from pg_locks
          where locktype = 'advisory' and objsubid = 2 and classid = $2::integer::oid
            and objid = stream
            and database = (select oid from pg_database where datname = current_database())),
         stream
       limit 1)
     select stream, pg_advisory_xact_lock_shared($2::integer, stream) from least`,
    [streams, creationLocks],
  )
  return rows[0]!.stream
}

/** @returns the stream of a tenant; the first one for a tenant that does not exist */
export async function findTelemetryStream(
  db: Queryable,
  tenantId: string,
): Promise<TelemetryStream> {
  const { rows } = await db.query<{ telemetry_stream: number }>(
    'select telemetry_stream from tenants where tenant_id = $1',
    [tenantId],
  )
  return toTelemetryStream(rows[0]?.telemetry_stream ?? 1)
}

/** @returns the streams that tenants lie on, each once */
export async function listTelemetryStreamsOf(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<TelemetryStream[]> {
  const { rows } = await db.query<{ telemetry_stream: number }>(
    'select distinct telemetry_stream from tenants where tenant_id = any($1)',
    [[...new Set(tenantIds)]],
  )
  return rows.map((row) => toTelemetryStream(row.telemetry_stream))
}

/**
 * @param streams how many streams there are
 * @returns what is wrong when a tenant lies on a stream beyond them; null when none does
 */
export async function findStreamFault(db: Queryable, streams: number): Promise<string | null> {
  const { rows } = await db.query<{ highest: number | null }>(
    'select max(telemetry_stream) as highest from tenants',
  )
  const highest = rows[0]?.highest ?? 1
  if (highest <= streams) return null
  return `TELEMETRY_STREAMS is ${streams}, but there are tenants on telemetry stream ${highest}: set it to ${highest} or more`
}

/** @returns the ids of the tenants that lie on a stream */
export async function listTenantsOfStream(db: Queryable, stream: number): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    'select tenant_id from tenants where telemetry_stream = $1 order by tenant_id',
    [stream],
  )
  return rows.map((row) => row.tenant_id)
}

/** @returns whether there is any tenant */
export async function hasAnyTenant(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>('select exists(select from tenants) as found')
  return rows[0]!.found
}

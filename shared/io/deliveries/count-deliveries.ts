/** Counts the deliveries of two periods by state, from the index of a tenant's deliveries by time. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** @param span the period is `fromMs` to `toMs`, the one before `beforeMs` to `fromMs` */
export async function countDeliveriesByState(
  db: Queryable,
  span: { tenantId: string; beforeMs: number; fromMs: number; toMs: number },
): Promise<{ state: string; now: number; before: number }[]> {
  const toTime = (ms: number) => new Date(ms).toISOString()
  const { rows } = await db.query<{ state: string; now: number; before: number }>(
    `select state, count(*) filter (where created_at >= $3) as now,
       count(*) filter (where created_at < $3) as before
     from deliveries
     where tenant_id = $1 and created_at >= $2 and created_at < $4 and alert_id is not null
     group by state order by state`,
    [span.tenantId, toTime(span.beforeMs), toTime(span.fromMs), toTime(span.toMs)],
  )
  return rows
}

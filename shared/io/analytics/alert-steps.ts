/**
 * Counts a tenant's alerts by steps of time: whole hours from the counters that every change of an
 * alert keeps, the ends of a period and short steps from the alerts themselves.
 */
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import { type Queryable, toTime } from '#shared/io/postgres/postgres.ts'

type Query = Span & { tenantId: string; stepMs: number }

/** @returns the beginnings of steps with alerts, in ms since 1970, and how many were raised */
export async function countAlertsByStep(
  db: Queryable,
  { tenantId, fromMs, toMs, stepMs }: Query,
): Promise<{ atMs: number; alerts: number }[]> {
  const isByHour = stepMs % hourMs === 0
  const firstHour = isByHour ? Math.min(toMs, Math.ceil(fromMs / hourMs) * hourMs) : toMs
  const lastHour = isByHour ? Math.max(firstHour, Math.floor(toMs / hourMs) * hourMs) : toMs
  const { rows } = await db.query<{ at_ms: string; alerts: string }>(
    `select floor(extract(epoch from at) * 1000 / $2) * $2 as at_ms, sum(alerts) as alerts
     from (
       select hour as at, alert_count as alerts from alert_counts_by_hour
       where tenant_id = $1 and hour >= $4 and hour < $5
       union all
       select created_at, 1 from alerts
       where tenant_id = $1 and created_at >= $3 and created_at < $4
       union all
       select created_at, 1 from alerts
       where tenant_id = $1 and created_at >= $5 and created_at < $6
     ) as counted
     group by 1 order by 1`,
    [tenantId, stepMs, toTime(fromMs), toTime(firstHour), toTime(lastHour), toTime(toMs)],
  )
  return rows.map(({ at_ms: atMs, alerts }) => ({ atMs: Number(atMs), alerts: Number(alerts) }))
}

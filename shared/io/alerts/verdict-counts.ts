/** What people said of the alerts of devices and users, beside what is shown of these. */
import type { VerdictCounts } from '#shared/core/alerts/alert-work-schemas.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { nodeVerdictsCountedMax } from '#shared/core/base/limits/alerts.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Whose alerts: all devices of a phone are one subject. */
export type CountedSubject = { kind: 'device' | 'user'; ids: readonly string[] }

/** Counts the alerts of some devices or users by what people said of them; exact. */
export async function countVerdicts(
  db: Queryable,
  tenantId: string,
  { kind, ids }: CountedSubject,
): Promise<VerdictCounts> {
  const { rows } = await db.query<{ disposition: Disposition; alerts: number }>(
    `select disposition, count(*) as alerts from alerts
     where tenant_id = $1 and ${kind}_id = any($2) group by disposition`,
    [tenantId, ids],
  )
  return toVerdictCounts(rows)
}

/** @param rows how many alerts have each disposition */
export function toVerdictCounts(
  rows: readonly { disposition: Disposition; alerts: number }[],
): VerdictCounts {
  const count = (disposition: Disposition) =>
    rows.find((row) => row.disposition === disposition)?.alerts ?? 0
  return {
    open: count('OPEN'),
    reviewed: count('REVIEWED'),
    false_positive: count('FALSE_POSITIVE'),
    confirmed: count('CONFIRMED'),
  }
}

/** The alerts of one device or user in a graph. */
export type NodeAlerts = { id: string; verdicts: VerdictCounts; riskScore: number }

/**
 * The newest alerts of each of some devices or users.
 * @returns those that have alerts, with the highest risk score of these
 */
export async function readNodeAlerts(
  db: Queryable,
  tenantId: string,
  { kind, ids }: CountedSubject,
): Promise<NodeAlerts[]> {
  if (ids.length === 0) return []
  const { rows } = await db.query<{
    id: string
    risk_score: number
    dispositions: Record<Disposition, number>
  }>(
    `select id, max(risk_score) as risk_score, jsonb_object_agg(disposition, alerts) as dispositions
     from (
       select wanted.id, disposition, count(*) as alerts, max(risk_score) as risk_score
       from unnest($2::text[]) as wanted (id)
       cross join lateral (
         select disposition, risk_score from alerts
         where tenant_id = $1 and ${kind}_id = wanted.id
         order by created_at desc, alert_id desc limit ${nodeVerdictsCountedMax}) as newest
       group by wanted.id, disposition) as counted
     group by id`,
    [tenantId, [...new Set(ids)]],
  )
  return rows.map(({ id, risk_score: riskScore, dispositions }) => {
    const counts = Object.entries(dispositions) as [Disposition, number][]
    const verdicts = toVerdictCounts(
      counts.map(([disposition, alerts]) => ({ disposition, alerts })),
    )
    return { id, verdicts, riskScore }
  })
}

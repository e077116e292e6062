/** Finds webhooks that fail, for the metrics of the delivery process. */
import { failingWebhooksShownMax } from '#shared/core/base/limits/deliveries.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type FailingWebhook = { tenantId: string; forMs: number }

/**
 * The webhooks that have failed for longest without a success, those that are switched on.
 * @returns at most `failingWebhooksShownMax`
 */
export async function findFailingWebhooks(db: Queryable): Promise<FailingWebhook[]> {
  const { rows } = await db.query<{ tenant_id: string; for_ms: number }>({
    name: 'failing-webhooks',
    text: `select tenant_id, (extract(epoch from now() - failing_since) * 1000)::float8 as for_ms
      from webhooks where failing_since is not null and state = 'on'
      order by failing_since limit $1`,
    values: [failingWebhooksShownMax],
  })
  return rows.map((row) => ({ tenantId: row.tenant_id, forMs: row.for_ms }))
}

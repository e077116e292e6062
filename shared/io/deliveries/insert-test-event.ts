/** Inserts the delivery of a test event, due before all pending first attempts of its tenant. */
import { webhookTest } from '#shared/core/deliveries/webhook-events.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** @param event.body the bytes to send */
export async function insertTestEvent(
  tx: Queryable,
  event: { tenantId: string; deliveryId: string; body: string },
): Promise<void> {
  await tx.query(
    // "is false", because Postgres then uses the index of the queues.
    `insert into deliveries (tenant_id, delivery_id, event, body, due_at)
     values ($1, $2, '${webhookTest}', convert_to($3, 'UTF8'), least(now(), (
       select due_at - interval '1 millisecond' from deliveries
       where tenant_id = $1 and (attempts > 0) is false and state = 'pending'
       order by due_at limit 1)))`,
    [event.tenantId, event.deliveryId, event.body],
  )
}

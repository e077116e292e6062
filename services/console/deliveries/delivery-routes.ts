/** Routes of deliveries: list, show, replay, test; and pausing and resuming a webhook. */
import { z } from 'zod'
import { deliverySchema } from '#shared/core/deliveries/delivery-schema.ts'
import { toDeliveryHeaders } from '#shared/core/deliveries/webhook-signing.ts'
import { type CursorScope, decodeCursor, encodeCursor } from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type DeliveryPosition,
  findDeliveries,
  findDeliveryBody,
  listDeliveries,
} from '#shared/io/deliveries/list-deliveries.ts'
import { countReplayable } from '#shared/io/deliveries/replay-deliveries.ts'
import { refuseKey } from '#shared/io/http/idempotency.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  deliveriesSchema,
  deliveryParams,
  deliveryRequestSchema,
  listDeliveriesQuery,
  replayBody,
  replayCountQuery,
  replayCountSchema,
  replayedSchema,
  webhookEventsBody,
  webhookEventsSchema,
  webhookStateSchema,
} from './delivery-schemas.ts'
import {
  type DeliveryDeps,
  hintDue,
  replayDeliveries,
  sendTestEvent,
  setTenantWebhookEvents,
  setWebhookPaused,
} from './manage-deliveries.ts'

/** Adds the routes. */
export function addDeliveryRoutes(app: ConsoleApp, deps: DeliveryDeps): void {
  addReads(app, deps)
  app.post(
    '/tenants/:tenant_id/deliveries/replay',
    {
      schema: {
        operationId: 'replayDeliveries',
        idempotency: 'kept',
        tags: ['Webhooks'],
        summary: 'Send deliveries again with the same id and bytes; the retry schedule restarts',
        description:
          'One of `alert_id`, `since`, `failed`, or `since` with `failed`. Deliveries in flight and ' +
          'test events are not sent again. An `Idempotency-Key` needs `alert_id`.',
        params: tenantParams,
        body: replayBody,
        problems: ['alert_not_found', 'webhook_not_on'],
        response: { 200: replayedSchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const { alert_id: alertId, since, failed } = body
      // A part of a replay is a transaction: all in one would hold the webhook's lock for too long.
      if (alertId === undefined) refuseKey(request, 'only with `alert_id`')
      const wanted = {
        tenantId: params.tenant_id,
        actor: actorOf(principal),
        what: alertId === undefined ? { sinceMs: since ?? null, onlyFailed: failed } : { alertId },
      }
      const replayed = await changeOnce(deps.postgres, { request, reply }, (postgres) =>
        replayDeliveries({ ...deps, postgres }, wanted),
      )
      await hintDue(deps, wanted.tenantId)
      return replayed
    },
  )
  app.post(
    '/tenants/:tenant_id/deliveries/test',
    {
      schema: {
        operationId: 'testWebhook',
        idempotency: 'kept',
        tags: ['Webhooks'],
        summary: 'Send a test event to the webhook; it raises no alert and is not retried',
        description: 'Returns at once. The attempts of the delivery have the outcome.',
        params: tenantParams,
        problems: ['webhook_not_on'],
        response: { 201: deliverySchema },
      },
    },
    async (request, reply) => {
      const { params, principal } = request
      const wanted = { tenantId: params.tenant_id, actor: actorOf(principal) }
      const sent = await changeOnce(deps.postgres, { request, reply }, (postgres) =>
        sendTestEvent({ ...deps, postgres }, wanted),
      )
      await hintDue(deps, wanted.tenantId)
      return reply.code(201).send(sent)
    },
  )
  app.put(
    '/tenants/:tenant_id/webhook/events',
    {
      schema: {
        operationId: 'setWebhookEvents',
        tags: ['Webhooks'],
        summary: 'Set which events the webhook gets',
        params: tenantParams,
        body: webhookEventsBody,
        response: { 200: webhookEventsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body: { events }, principal }) =>
      setTenantWebhookEvents(deps, { tenantId, events, actor: actorOf(principal) }),
  )
  for (const [verb, paused, problem, summary] of [
    ['pause', true, 'webhook_not_on', 'Pause the webhook; its deliveries wait'],
    ['resume', false, 'webhook_has_no_url', 'Switch the webhook on again, after a pause or a stop'],
  ] as const) {
    app.post(
      `/tenants/:tenant_id/webhook/${verb}`,
      {
        schema: {
          operationId: `${verb}Webhook`,
          tags: ['Webhooks'],
          summary,
          params: tenantParams,
          problems: [problem],
          response: { 200: webhookStateSchema },
        },
      },
      async ({ params, principal }) =>
        setWebhookPaused(deps, { tenantId: params.tenant_id, paused, actor: actorOf(principal) }),
    )
  }
}

function addReads(app: ConsoleApp, { postgres }: DeliveryDeps): void {
  app.get(
    '/tenants/:tenant_id/deliveries',
    {
      schema: {
        operationId: 'listDeliveries',
        tags: ['Webhooks'],
        summary: 'List deliveries with their attempts, newest first',
        params: tenantParams,
        querystring: listDeliveriesQuery,
        response: { 200: deliveriesSchema },
      },
    },
    async ({ params, query: { state, alert_id: alertId, event, limit, cursor } }) => {
      const tenantId = params.tenant_id
      await requireTenant(postgres, tenantId)
      // Cursors outlive releases: what is not given adds nothing.
      const filters = [state ?? null, alertId ?? null, ...(event === undefined ? [] : [event])]
      const scope = { list: 'deliveries', tenantId, filters }
      const { deliveries, next } = await listDeliveries(postgres, {
        tenantId,
        state,
        alertId,
        event,
        limit,
        after: cursor === undefined ? undefined : toPosition(scope, cursor),
      })
      const next_cursor = next && encodeCursor(scope, [next.createdAtUs, next.deliveryId])
      return { data: deliveries, limit, next_cursor }
    },
  )
  app.get(
    '/tenants/:tenant_id/deliveries/:delivery_id',
    {
      schema: {
        operationId: 'findDelivery',
        conditional: true,
        tags: ['Webhooks'],
        summary: 'Show a delivery with all its attempts',
        params: deliveryParams,
        problems: ['delivery_not_found'],
        response: { 200: deliverySchema },
      },
    },
    async ({ params: { tenant_id: tenantId, delivery_id: deliveryId } }) => {
      await requireTenant(postgres, tenantId)
      const [found] = await findDeliveries(postgres, tenantId, [deliveryId])
      if (found !== undefined) return found
      throw deliveryNotFound(deliveryId)
    },
  )
  app.get(
    '/tenants/:tenant_id/deliveries/:delivery_id/request',
    {
      schema: {
        operationId: 'findDeliveryRequest',
        tags: ['Webhooks'],
        summary: 'Show what the attempts of a delivery send',
        description: 'Each read is in the audit log of the tenant.',
        params: deliveryParams,
        problems: ['delivery_not_found'],
        response: { 200: deliveryRequestSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, delivery_id: deliveryId }, principal }) => {
      await requireTenant(postgres, tenantId)
      const found = await findDeliveryBody(postgres, tenantId, deliveryId)
      if (found === null) throw deliveryNotFound(deliveryId)
      await insertAudit(postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'delivery.request_read',
        after: { delivery_id: deliveryId },
      })
      const headers = toDeliveryHeaders(deliveryId, found.event)
      return { delivery_id: deliveryId, headers, body: found.body.toString('utf8') }
    },
  )
  app.get(
    '/tenants/:tenant_id/deliveries/replay-count',
    {
      schema: {
        operationId: 'countReplayedDeliveries',
        tags: ['Webhooks'],
        summary: 'Count the deliveries that a replay would send again',
        params: tenantParams,
        querystring: replayCountQuery,
        response: { 200: replayCountSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since, failed } }) => {
      await requireTenant(postgres, tenantId)
      const scope = { sinceMs: since ?? null, onlyFailed: failed === 'true' }
      return { tenant_id: tenantId, count: await countReplayable(postgres, { tenantId, scope }) }
    },
  )
}

const deliveryNotFound = (deliveryId: string) =>
  new Problem('delivery_not_found', `There is no delivery ${deliveryId}.`)

const positionSchema = z.tuple([z.int(), z.string().max(64)])

function toPosition(scope: CursorScope, cursor: string): DeliveryPosition {
  const [createdAtUs, deliveryId] = decodeCursor(scope, cursor, positionSchema)
  return { createdAtUs, deliveryId }
}

/**
 * Operations on deliveries and webhooks: replay, send a test event, pause and resume. A change is
 * one transaction with its audit row (a large replay is several). A hint then wakes delivery at
 * once.
 */
import { replayListedMax } from '#shared/core/base/limits/deliveries.ts'
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import { toTestEvent } from '#shared/core/deliveries/test-event.ts'
import { type WebhookEvent, webhookEvents } from '#shared/core/deliveries/webhook-events.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { insertTestEvent } from '#shared/io/deliveries/insert-test-event.ts'
import { findDeliveries } from '#shared/io/deliveries/list-deliveries.ts'
import {
  beginReplay,
  type ReplayScope,
  replayAlert,
  replayNext,
} from '#shared/io/deliveries/replay-deliveries.ts'
import {
  lockWebhook,
  pauseWebhook,
  probeNow,
  readWebhook,
  resumeWebhook,
  setWebhookEvents,
  type Webhook,
  type WebhookState,
} from '#shared/io/deliveries/webhook-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type DeliveryDeps = {
  postgres: Postgres
  log: Log
  randomBytes: (size: number) => Buffer
  wallMs: () => number
  /** Hints to delivery that a tenant has a delivery due. @throws when the hint is not published */
  hintDelivery: (hint: { tenantId: string; deliveryId: string }) => Promise<void>
}

/** The deliveries of one alert, or all deliveries of a scope. */
type ReplayTarget = { alertId: string } | ReplayScope

type ReplayResult = {
  tenant_id: string
  /** The number of deliveries that are due now. */
  replayed: number
  /** The first deliveries, in their current state. */
  data: Delivery[]
}

/**
 * Makes deliveries due now. Ended deliveries restart their schedule.
 * @throws Problem tenant_not_found, alert_not_found, webhook_not_on
 */
export async function replayDeliveries(
  deps: DeliveryDeps,
  wanted: { tenantId: string; what: ReplayTarget; actor: string },
): Promise<ReplayResult> {
  const { tenantId, what } = wanted
  const { replayed, first } =
    'alertId' in what
      ? await replayOne(deps, { ...wanted, what })
      : await replayAll(deps, { ...wanted, what })
  const data = await findDeliveries(deps.postgres, tenantId, first)
  return { tenant_id: tenantId, replayed, data }
}

type Replayed = { replayed: number; first: string[] }

async function replayOne(
  deps: DeliveryDeps,
  wanted: { tenantId: string; what: { alertId: string }; actor: string },
): Promise<Replayed> {
  const { tenantId, actor } = wanted
  const { alertId } = wanted.what
  return await deps.postgres.transaction(async (tx) => {
    const found = await whileWebhookOn(tx, tenantId, () => replayAlert(tx, { tenantId, alertId }))
    if (found === null) throw new Problem('alert_not_found', `There is no alert ${alertId}.`)
    const { deliveryIds, replayed } = found
    const after = { alert_id: alertId, delivery_id: deliveryIds[0], replayed }
    await insertAudit(tx, { actor, tenantId, action: 'deliveries.replayed', after })
    return { replayed, first: deliveryIds.slice(0, replayListedMax) }
  })
}

/** Replays in parts, each one a transaction: delivery sends a part while the next is prepared. */
async function replayAll(
  deps: DeliveryDeps,
  wanted: { tenantId: string; what: ReplayScope; actor: string },
): Promise<Replayed> {
  const { tenantId, what: scope, actor } = wanted
  const { sinceMs, onlyFailed } = scope
  const filter = {
    since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
    only_failed: onlyFailed,
  }
  const first: string[] = []
  let replayed = 0
  let progress = await beginReplay(deps.postgres)
  for (let part = 1; ; part++) {
    const step = await deps.postgres.transaction(async (tx) => {
      const replayPart = () => replayNext(tx, { tenantId, scope, progress })
      const next = await whileWebhookOn(tx, tenantId, replayPart)
      const { length } = next.deliveryIds
      if (length === 0 && part > 1) return next
      const after = { ...filter, replayed: length, part }
      await insertAudit(tx, { actor, tenantId, action: 'deliveries.replayed', after })
      return next
    })
    if (step.deliveryIds.length === 0) return { replayed, first }
    replayed += step.deliveryIds.length
    progress = step.progress
    first.push(...step.deliveryIds.slice(0, replayListedMax - first.length))
    if (part === 1) await hintDue(deps, tenantId, first[0])
  }
}

/**
 * Sends a test event, before all waiting deliveries. It raises no alert and is not retried.
 * @returns its delivery, which is due now
 * @throws Problem tenant_not_found, webhook_not_on
 */
export async function sendTestEvent(
  deps: DeliveryDeps,
  wanted: { tenantId: string; actor: string },
): Promise<Delivery> {
  const { tenantId, actor } = wanted
  const { deliveryId, event } = toTestEvent(tenantId, deps.randomBytes(16), deps.wallMs())
  return deps.postgres.transaction(async (tx) => {
    await whileWebhookOn(tx, tenantId, () =>
      insertTestEvent(tx, { tenantId, deliveryId, body: JSON.stringify(event) }),
    )
    const after = { delivery_id: deliveryId }
    await insertAudit(tx, { actor, tenantId, action: 'webhook.tested', after })
    const [inserted] = await findDeliveries(tx, tenantId, [deliveryId])
    return inserted!
  })
}

type WebhookResult = {
  tenant_id: string
  webhook_url: string | null
  webhook_state: WebhookState
}

/**
 * Pauses a webhook, so its deliveries wait, or switches it on. Repeating it is harmless. Resuming a
 * webhook that is on resets its failures and closes its circuit.
 * @throws Problem tenant_not_found, webhook_not_on (pausing one that is off), webhook_has_no_url
 */
export async function setWebhookPaused(
  deps: DeliveryDeps,
  wanted: { tenantId: string; paused: boolean; actor: string },
): Promise<WebhookResult> {
  const { tenantId, paused, actor } = wanted
  const answer = await deps.postgres.transaction(async (tx) => {
    const { webhook_health: health } = await requireTenant(tx, tenantId)
    const webhook = await lockWebhook(tx, tenantId)
    if (paused && webhook.state === 'off') throw notOn(tenantId, webhook)
    if (!paused && webhook.url === null) {
      const why = `The webhook of ${tenantId} has no URL, so there is nothing to resume. Set one.`
      throw new Problem('webhook_has_no_url', why)
    }
    const state: WebhookState = paused ? 'paused' : 'on'
    const changed = paused ? await pauseWebhook(tx, tenantId) : await resumeWebhook(tx, tenantId)
    if (changed) {
      await insertAudit(tx, {
        actor,
        tenantId,
        action: paused ? 'webhook.paused' : 'webhook.resumed',
        before: { state: webhook.state, off_reason: webhook.offReason, health },
        after: { state, url: webhook.url },
      })
    }
    return { tenant_id: tenantId, webhook_url: webhook.url, webhook_state: state }
  })
  if (!paused) await hintDue(deps, tenantId)
  return answer
}

/**
 * Sets which events a tenant's webhook gets, from the next one on.
 * @throws Problem tenant_not_found
 */
export async function setTenantWebhookEvents(
  deps: DeliveryDeps,
  wanted: { tenantId: string; events: readonly WebhookEvent[]; actor: string },
) {
  const { tenantId, actor } = wanted
  const events = webhookEvents.filter((event) => wanted.events.includes(event))
  return await deps.postgres.transaction(async (tx) => {
    const before = await requireTenant(tx, tenantId)
    await setWebhookEvents(tx, tenantId, events)
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'webhook.events_set',
      before: { events: before.webhook_events },
      after: { events },
    })
    return { tenant_id: tenantId, webhook_url: before.webhook_url, webhook_events: events }
  })
}

/**
 * Makes deliveries due of a webhook that is on, and its next probe: deliveries of one that is off
 * are skipped, those of a paused one wait. The webhook is locked after its deliveries, as
 * everywhere.
 */
async function whileWebhookOn<T>(
  tx: Queryable,
  tenantId: string,
  makeDue: () => Promise<T>,
): Promise<T> {
  await requireTenant(tx, tenantId)
  requireOn(tenantId, await readWebhook(tx, tenantId))
  const made = await makeDue()
  requireOn(tenantId, await lockWebhook(tx, tenantId))
  await probeNow(tx, tenantId)
  return made
}

function requireOn(tenantId: string, webhook: Webhook): void {
  if (webhook.state !== 'on') throw notOn(tenantId, webhook)
}

function notOn(tenantId: string, { state, offReason }: Webhook): Problem {
  const why = offReason === null ? '' : ` (${offReason})`
  const remedy = state === 'paused' ? 'Resume it first.' : 'Set its URL or resume it first.'
  return new Problem('webhook_not_on', `The webhook of ${tenantId} is ${state}${why}. ${remedy}`)
}

/**
 * Wakes delivery once a change is committed. Without the hint it finds the rows with its next
 * sweep.
 */
export async function hintDue(
  deps: DeliveryDeps,
  tenantId: string,
  deliveryId = 'any',
): Promise<void> {
  try {
    await deps.hintDelivery({ tenantId, deliveryId })
  } catch (error) {
    deps.log.warn(
      { err: error, tenant_id: tenantId },
      'the hint to delivery could not be published',
    )
  }
}

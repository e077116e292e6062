/** The tenant's alerts: the list with its filters and exact total, one alert, dispositions. */
import { z } from 'zod'
import { toKeyActor } from '#shared/core/alerts/alert-actors.ts'
import {
  type Alert,
  alertDetailSchema,
  alertPageSchema,
  alertSchema,
  type ListedOutcome,
} from '#shared/core/alerts/alert-schema.ts'
import { dispositionBodyBytesMax, dispositionsBodyBytesMax } from '#shared/core/base/limits/http.ts'
import {
  alertsPageDefault,
  callsPerChange,
  callsPerListedChange,
} from '#shared/core/base/limits/rest-api.ts'
import { alertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  alertPathSchema,
  dispositionBodySchema,
  listedDispositionsBody,
  listedOutcomesSchema,
} from '#shared/core/http/reading-schemas.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import { listAlertsByQuery } from '#shared/io/alerts/list-by-query.ts'
import type { DispositionChange, ListedChange } from '#shared/io/alerts/set-disposition.ts'
import { readOnceCall, sendOnce } from '#shared/io/http/idempotency.ts'
import type { OnceAnswer, OnceCall } from '#shared/io/http/idempotent-answers.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { RiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import { requireScope } from '../http/authenticate.ts'
import { compressed } from '../http/compress-responses.ts'
import { alertDetailExample, alertExample } from '../openapi/examples.ts'

/** A change of one of the tenant's alerts by a key of the tenant. */
export type KeyedChange = Omit<DispositionChange, 'scope'> & {
  tenantId: string
  keyHash: Buffer
  /** Set for a call with an `Idempotency-Key`. */
  once: OnceCall | null
}

export type KeyedListedChange = ListedChange & { once: OnceCall | null }

/** Both changes answer once for an `Idempotency-Key`. */
export type AlertRouteDeps = Pick<AlertStore, 'listAlerts' | 'findAlertDetail'> & {
  findPercentile: RiskPercentiles['find']
  /** @throws Problem alert_not_found */
  setDisposition: (change: KeyedChange) => Promise<OnceAnswer<Alert>>
  setListedDispositions: (change: KeyedListedChange) => Promise<OnceAnswer<ListedOutcome[]>>
}

/** Adds the routes. */
export function addAlertRoutes(app: ZodApp, deps: AlertRouteDeps): void {
  addList(app, deps)
  addListedChange(app, deps)
  app.get(
    '/v1/di/alerts/:alert_id',
    {
      schema: {
        operationId: 'findAlert',
        conditional: true,
        tags: ['Alerts'],
        summary: 'One alert',
        description:
          'The alert as it is now, as lists and webhooks have it, and its history and notes in `details`. Operators are named by an id, not by email. Every 50 changes and notes count as one call of the tenant’s rate.',
        params: alertPathSchema,
        querystring: z.strictObject({}),
        problems: ['alert_not_found'],
        response: { 200: alertDetailSchema },
        example: alertDetailExample,
      },
    },
    async ({ params, caller: { tenantId, chargeRows } }) => {
      const alert = await deps.findAlertDetail({ alertId: params.alert_id, tenantId })
      if (alert === null) return rejectUnknownAlert()
      const { details } = alert
      chargeRows(details.history.length + details.assignments.length + details.notes.length)
      const asked = { tenantId, score: alert.decision.risk_score }
      return { ...alert, details: { ...(await deps.findPercentile(asked)), ...details } }
    },
  )
  app.post(
    '/v1/di/alerts/:alert_id/disposition',
    {
      bodyLimit: dispositionBodyBytesMax,
      config: { calls: callsPerChange },
      schema: {
        operationId: 'setDisposition',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Set the disposition of an alert',
        description:
          'Needs a key with the scope `alerts:write`; the key that comes with a tenant reads only. Any change between the four is allowed and is recorded with the key’s name. Setting what is set already changes nothing. With an `Idempotency-Key` a repeat also does not undo what others set meanwhile. A call counts as 20 calls of the tenant’s rate.',
        params: alertPathSchema,
        querystring: z.strictObject({}),
        body: dispositionBodySchema,
        bodyExample: { disposition: 'CONFIRMED', note: 'chargeback' },
        problems: ['alert_not_found', 'scope_missing', 'approval_required'],
        response: { 200: alertSchema },
        example: { ...alertExample, disposition: 'CONFIRMED' },
      },
    },
    async (request, reply) => {
      const { params, body, caller } = request
      requireScope(caller, 'alerts:write')
      const { tenantId, keyHash, keyName } = caller
      const actor = toKeyActor(keyName)
      const answer = await deps.setDisposition({
        alertId: params.alert_id,
        tenantId,
        keyHash,
        disposition: body.disposition,
        note: body.note ?? null,
        actor,
        once: readOnceCall(request, { tenantId, actor }),
      })
      return sendOnce(reply, answer)
    },
  )
}

function addListedChange(app: ZodApp, deps: AlertRouteDeps): void {
  app.post(
    '/v1/di/alerts/dispositions',
    {
      bodyLimit: dispositionsBodyBytesMax,
      config: { calls: callsPerChange },
      schema: {
        operationId: 'setDispositions',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Set the disposition of many alerts',
        description:
          'Needs a key with the scope `alerts:write`. One transaction: when the call fails, nothing has changed. Alerts that do not exist, or have the disposition already, do not hinder the others; `outcome` says which they are. Each change is recorded and delivered as if it were made alone. A call counts as 10 calls of the tenant’s rate for each alert, and as 20 at least.',
        querystring: z.strictObject({}),
        body: listedDispositionsBody,
        bodyExample: { alert_ids: [alertExample.alert_id], disposition: 'FALSE_POSITIVE' },
        problems: ['scope_missing', 'approval_required'],
        response: { 200: listedOutcomesSchema },
        example: { data: [{ alert_id: alertExample.alert_id, outcome: 'changed' }], changed: 1 },
      },
    },
    async (request, reply) => {
      const { body, caller } = request
      requireScope(caller, 'alerts:write')
      const { tenantId, keyHash, keyName, chargeCalls } = caller
      const actor = toKeyActor(keyName)
      chargeCalls(callsPerListedChange * body.alert_ids.length - callsPerChange)
      const answer = await deps.setListedDispositions({
        tenantId,
        keyHash,
        alertIds: body.alert_ids,
        disposition: body.disposition,
        note: body.note ?? null,
        actor,
        once: readOnceCall(request, { tenantId, actor }),
      })
      const data = sendOnce(reply, answer)
      return { data, changed: data.filter(({ outcome }) => outcome === 'changed').length }
    },
  )
}

function addList(app: ZodApp, { listAlerts }: AlertRouteDeps): void {
  app.get(
    '/v1/di/alerts',
    {
      ...compressed,
      schema: {
        operationId: 'listAlerts',
        tags: ['Alerts'],
        summary: 'List and filter alerts',
        description:
          'Newest first, or by `seq` with `after_seq`. `total` is exact, and of the same instant as the page. Every 50 alerts of a page count as one call of the tenant’s rate. An unknown parameter, a repeated one or a bad value is a 400 that names it.',
        querystring: alertsQuerySchema,
        response: { 200: alertPageSchema },
        example: { data: [alertExample], total: 1, limit: alertsPageDefault, next_cursor: null },
      },
    },
    async ({ query, caller: { tenantId, chargeRows } }) => {
      const page = await listAlertsByQuery(listAlerts, tenantId, query)
      chargeRows(page.data.length)
      return page
    },
  )
}

export const rejectUnknownAlert = (): never => {
  throw new Problem('alert_not_found', 'There is no such alert. Ids of alerts begin with alr_.')
}

/**
 * The routes of erasures: request one and wait for its receipt or not, watch it, list earlier ones.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { erasuresWaitingMax } from '#shared/core/base/limits/tenants.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import {
  type Erasure,
  type ErasureReceipt,
  findErasure,
  listErasures,
  requestErasure,
} from '#shared/io/erasure/erasure-job-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { pause } from '#shared/io/process/pause.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { readCursor, toPage } from '../http/paging.ts'
import { idSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  erasureBody,
  erasureParams,
  erasureSchema,
  erasuresQuery,
  erasuresSchema,
  receiptSchema,
} from './erasure-schemas.ts'

export type EraseRouteDeps = { postgres: Postgres; sealer: Sealer }

export const newErasureId = () => `era_${randomUUID()}`

const erasureNotFound = () => new Problem('erasure_not_found', 'The tenant has no such erasure.')

/** Adds the routes. */
export function addErasureRoutes(app: ConsoleApp, deps: EraseRouteDeps): void {
  addRequestRoute(app, deps)
  const { postgres } = deps
  app.get(
    '/tenants/:tenant_id/erasures',
    {
      schema: {
        operationId: 'listErasures',
        tags: ['Erasure'],
        summary: 'List the erasures of a tenant with their receipts, newest first',
        params: tenantParams,
        querystring: erasuresQuery,
        response: { 200: erasuresSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { limit, cursor } }) => {
      const scope = { list: 'erasures', tenantId, filters: null }
      const before = readCursor(scope, cursor, idSchema)
      await requireTenant(postgres, tenantId)
      const rows = await listErasures(postgres, { tenantId, limit: limit + 1, before })
      return toPage(scope, { rows, limit }, (row) => row.erasure_id)
    },
  )
  app.get(
    '/tenants/:tenant_id/erasures/:erasure_id',
    {
      schema: {
        operationId: 'findErasure',
        conditional: true,
        tags: ['Erasure'],
        summary: 'Show an erasure: progress by store, and its receipt',
        params: erasureParams,
        problems: ['erasure_not_found'],
        response: { 200: erasureSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, erasure_id: erasureId } }) => {
      const erasure = await findErasure(postgres, { tenantId, erasureId })
      if (erasure === null) throw erasureNotFound()
      return erasure
    },
  )
}

function addRequestRoute(app: ConsoleApp, { postgres, sealer }: EraseRouteDeps): void {
  const closing = new AbortController()
  app.addHook('preClose', async () => closing.abort())
  app.post(
    '/tenants/:tenant_id/erasures',
    {
      schema: {
        operationId: 'erase',
        tags: ['Erasure'],
        summary: 'Erase a device or a user from every store',
        description:
          'Covers everything accepted before the call. The erasure goes on in the server, also ' +
          'after a crash, until nothing is left; by default the answer waits for its receipt. ' +
          'While one of the same subject is not done, the call is about that one. Erasures of a ' +
          'tenant run one after another. Erased alerts leave gaps in `seq`.',
        params: tenantParams,
        body: erasureBody,
        problems: ['conflict'],
        response: { 200: receiptSchema, 202: erasureSchema },
      },
    },
    async ({ params, body, principal }, reply) => {
      const { device_id: deviceId, user_id: userId } = body
      const { tenant_id: tenantId } = params
      await requireTenant(postgres, tenantId)
      const kind = deviceId === undefined ? 'user' : 'device'
      const erasure = await requestErasure(postgres, sealer, {
        erasureId: newErasureId(),
        subject: { tenantId, kind, id: deviceId ?? userId ?? '' },
        actor: actorOf(principal),
        waitingMax: erasuresWaitingMax,
      })
      if (erasure === 'busy') {
        throw new Problem('conflict', `${erasuresWaitingMax} erasures wait. Call again later.`)
      }
      if (!body.wait) return reply.code(202).send(erasure)
      const signal = AbortSignal.any([closing.signal, untilClosed(reply.raw)])
      return await awaitReceipt(postgres, erasure, signal)
    },
  )
}

/** @returns aborts when the client has left */
function untilClosed(response: ServerResponse): AbortSignal {
  const left = new AbortController()
  if (response.destroyed) left.abort()
  else response.once('close', () => left.abort())
  return left.signal
}

const receiptPollMs = 200

/** @throws Problem unavailable when an attempt fails or the wait is cut; the erasure goes on */
async function awaitReceipt(
  postgres: Postgres,
  { tenant_id: tenantId, erasure_id: erasureId }: Erasure,
  signal: AbortSignal,
): Promise<ErasureReceipt> {
  for (;;) {
    const erasure = await findErasure(postgres, { tenantId, erasureId })
    if (erasure === null) throw erasureNotFound()
    if (erasure.receipt !== null) return erasure.receipt
    const { problem, state } = erasure
    if (state === 'failed') throw unavailable(problem ?? '')
    const reason = problem ?? (signal.aborted ? 'The console is stopping.' : null)
    if (reason !== null) {
      throw unavailable(`${reason} The erasure is tried again; call again to wait for its receipt.`)
    }
    await pause(receiptPollMs, signal)
  }
}

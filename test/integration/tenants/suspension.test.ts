/**
 * A tenant that is suspended and resumed under load, on real servers: once a suspension has
 * returned, no edge accepts and no api answers its requests; once a resumption has returned, all
 * do; no accepted event is lost, and other tenants are not affected.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashApiKey } from '#shared/core/tenants/credentials.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createApiApp } from '../../../services/api/app.ts'
import {
  type CreatedTenant,
  createTenant,
  setTenantStatus,
} from '../../../services/console/tenants/manage-tenants.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  bodyOf,
  type EdgeRig,
  nowMs,
  send,
  startEdgeRig,
} from '../../support/telemetry/edge-rig.ts'

type App = Awaited<ReturnType<typeof createApiApp>>

let postgres: TestPostgres
let edges: EdgeRig
let rig: ConsoleRig
let api: { app: App; url: string }
let urls: string[]

beforeAll(async () => {
  ;[postgres, edges] = await Promise.all([startPostgres(), startEdgeRig()])
  rig = await createConsoleRig({ postgres, nats: edges.server }, edges.masterKey)
  urls = [(await edges.startEdge()).url, (await edges.startEdge()).url]
  const app = await createApiApp(
    {
      tenants: createTenantStore(rig.postgres),
      alerts: {
        listAlerts: async () => ({ alerts: [], total: 0, next: null }),
        listUncounted: async () => ({ alerts: [], next: null }),
      },
      history: { findSmallDevice: async () => null, findLargeDevice: async () => null },
      users: {},
      events: {},
      policies: { findCurrentPolicy: async () => null },
      lists: {},
      labels: {},
      phones: { findPhonesOfDevices: async () => new Map() },
      reconciliation: { readReconciliation: () => Promise.reject(new Error('not asked for here')) },
      nowMs: Date.now,
      monotonicMs: nowMs,
    } as unknown as Parameters<typeof createApiApp>[0],
    { log: testLog, metrics: createMetrics('api') },
  )
  api = { app, url: await listen(app, { host: '127.0.0.1', port: 0 }) }
})
afterAll(async () => {
  api?.app.server.closeAllConnections()
  await api?.app.close()
  await rig?.close()
  await Promise.all([edges?.stop(), postgres?.stop()])
})

async function create(): Promise<CreatedTenant> {
  const tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
  return createTenant(rig.deps, { ...made, tenantId })
}

type Attempt = { sentMs: number; endedMs: number; status: number; eventId: unknown }

function startLoad(tenant: CreatedTenant) {
  const attempts: Attempt[] = []
  let running = true
  const run = async (request: () => Promise<{ status: number; eventId?: unknown }>) => {
    while (running) {
      const sentMs = nowMs()
      const { status, eventId } = await request()
      attempts.push({ sentMs, endedMs: nowMs(), status, eventId })
    }
  }
  const { tenant_id: tenantId, hmac_secret: secret } = tenant
  const requests = urls.map((url) => async () => {
    const { status, body } = await send({ url }, bodyOf(tenantId), { secret })
    return { status, eventId: body.event_id }
  })
  const headers = { authorization: `Bearer ${tenant.public_api_key}` }
  requests.push(async () => {
    const answer = await fetch(`${api.url}/v1/di/devices/unknown`, { headers })
    await answer.text()
    // An unknown device is a successful answer for an authorized caller.
    return { status: answer.status === 404 ? 200 : answer.status, eventId: undefined }
  })
  const clients = requests.map(run)
  return {
    /** Resolves once some attempts have begun and ended since then. */
    attempted: (sinceMs: number, times: number) =>
      until(
        'attempts end',
        async () => attempts.filter(({ sentMs }) => sentMs >= sinceMs).length >= times,
      ),
    stop: async () => {
      running = false
      await Promise.all(clients)
      return attempts
    },
  }
}

it('a suspension is in force everywhere when it returns, and ends without loss', async () => {
  const [tenant, neighbour] = [await create(), await create()]
  const { tenant_id: tenantId } = tenant
  const [load, beside] = [startLoad(tenant), startLoad(neighbour)]
  const changes: { fromMs: number; doneMs: number; status: 'active' | 'suspended' }[] = []
  for (let round = 0; round < 10; round++) {
    for (const status of ['suspended', 'active'] as const) {
      const fromMs = nowMs()
      await setTenantStatus(rig.deps, { tenantId, status, actor: 'test' })
      const doneMs = nowMs()
      changes.push({ fromMs, doneMs, status })
      await load.attempted(doneMs, 10)
    }
  }
  const [attempts, others] = [await load.stop(), await beside.stop()]
  const judged = { active: 0, suspended: 0 }
  for (const { sentMs, endedMs, status } of attempts) {
    const before = changes.filter(({ doneMs }) => doneMs <= sentMs).at(-1)
    // Only attempts that overlap no change have one correct answer.
    if (changes.some(({ fromMs, doneMs }) => fromMs < endedMs && sentMs < doneMs)) continue
    const state = before?.status ?? 'active'
    expect(status).toBe(state === 'active' ? 200 : 401)
    judged[state]++
  }
  expect(judged.active).toBeGreaterThanOrEqual(100)
  expect(judged.suspended).toBeGreaterThanOrEqual(100)
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]))
  const stored = new Set((await edges.readStored()).map(({ event_id: id }) => id))
  const accepted = [...attempts, ...others].filter(({ eventId }) => typeof eventId === 'string')
  expect(accepted.length).toBeGreaterThan(100)
  for (const { eventId } of accepted) expect(stored).toContain(eventId)
  expect(stored.size).toBe(accepted.length)
})

it('an operator sees a key by its last four characters, and when it was last used', async () => {
  const tenant = await create()
  const { findTenant, findTenantByApiKey } = createTenantStore(rig.postgres)
  const shown = async () => (await findTenant(tenant.tenant_id))!.public_api_key
  expect(await shown()).toMatchObject({
    last4: tenant.public_api_key.slice(-4),
    last_used_at: null,
  })
  const startMs = Date.now()
  const headers = { authorization: `Bearer ${tenant.public_api_key}` }
  expect((await fetch(`${api.url}/v1/di/devices/unknown`, { headers })).status).toBe(404)
  await until('the use is shown', async () => (await shown())?.last_used_at !== null)
  expect(Date.parse((await shown())!.last_used_at!)).toBeGreaterThanOrEqual(startMs)
  const holder = await findTenantByApiKey(hashApiKey(tenant.public_api_key))
  expect(holder?.tenantId).toBe(tenant.tenant_id)
})

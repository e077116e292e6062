// Limits of concurrent queries per tenant, on the API's own server.
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { DeviceHistory } from '#shared/core/devices/device-history.ts'
import { hashApiKey, toApiKey } from '#shared/core/tenants/credentials.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { type ApiDeps, createApiApp } from '../../../services/api/app.ts'

const keyOf = (tenantId: string) => toApiKey('live', createHash('sha256').update(tenantId).digest())
const keys = new Map(['busy', 'quiet'].map((tenantId) => [keyOf(tenantId), tenantId]))

let app: Awaited<ReturnType<typeof createApiApp>>
let metrics: Metrics
let queried: string[]
let answer: () => void

beforeEach(async () => {
  queried = []
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  metrics = createMetrics('api')
  const findDevice = async ({ tenantId }: { tenantId: string }): Promise<DeviceHistory | null> => {
    queried.push(tenantId)
    if (tenantId === 'busy') await answered
    return null
  }
  const tenantOf = new Map(
    [...keys].map(([key, tenantId]) => [hashApiKey(key).toString('hex'), tenantId] as const),
  )
  const deps = {
    tenants: {
      findTenantByApiKey: async (keyHash: Buffer) => {
        const tenantId = tenantOf.get(keyHash.toString('hex'))
        return tenantId && { tenantId, status: 'active', restRate: null, lastUsedMs: Date.now() }
      },
      findExistingApiKeys: async (keyHashes: readonly Buffer[]) => keyHashes,
      recordApiKeyUse: async () => undefined,
    },
    history: { findSmallDevice: findDevice },
    users: {},
    events: {},
    alerts: { listUncounted: async () => ({ alerts: [], next: null }) },
    policies: {},
    lists: {},
    labels: {},
    phones: { findPhonesOfDevices: async () => new Map() },
    reconciliation: {},
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
  } as unknown as ApiDeps
  const log = createLog('test', 'silent')
  app = await createApiApp(deps, { log, metrics })
})
afterEach(() => app.close())

const call = (tenantId: string) => {
  const [key] = [...keys].find(([, holder]) => holder === tenantId)!
  return app.inject({ url: '/v1/di/devices/d', headers: { authorization: `Bearer ${key}` } })
}

it('a tenant at its query limit waits, and delays no other tenant', async () => {
  const busy = Array.from({ length: 20 }, () => call('busy'))
  while (queried.length < 8) await new Promise((resolve) => setImmediate(resolve))
  const quiet = await Promise.all(Array.from({ length: 4 }, () => call('quiet')))
  expect(quiet.map(({ statusCode }) => statusCode)).toEqual([404, 404, 404, 404])
  expect(queried.filter((tenantId) => tenantId === 'busy')).toHaveLength(8)
  answer()
  const codes = (await Promise.all(busy)).map(({ statusCode }) => statusCode)
  expect(codes).toEqual(codes.map(() => 404))
})

it('a query that waits too long is a 503 with Retry-After', async () => {
  const busy = Array.from({ length: 9 }, () => call('busy'))
  const first = await Promise.race(busy)
  expect(first.statusCode).toBe(503)
  expect(first.json()).toMatchObject({ code: 'unavailable' })
  expect(Number(first.headers['retry-after'])).toBeGreaterThan(0)
  const counted = /di_api_queries_rejected_total\{[^}]*query="device"[^}]*\} 1\s/
  expect(counted.test(await metrics.registry.metrics())).toBe(true)
  answer()
  await Promise.all(busy)
})

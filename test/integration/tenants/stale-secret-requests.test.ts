/**
 * Requests still signed with a replaced secret, on real servers: rejected like any wrong signature,
 * counted by SDK version for the tenant's operator, and never stored.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { staleSecretVersionsMax } from '#shared/core/base/limits/tenants.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { createTenant, setTenantStatus } from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import type { StaleSecretReport } from '../../../services/console/tenants/stale-secret-routes.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  bodyOf,
  type EdgeRig,
  sendJudged,
  startEdgeRig,
  type TestEdge,
} from '../../support/telemetry/edge-rig.ts'

const adminToken = 'the-admin-token-of-this-test'
let postgres: TestPostgres
let edges: EdgeRig
let rig: ConsoleRig
let app: FastifyInstance
let edge: TestEdge
let other: TestEdge

beforeAll(async () => {
  ;[postgres, edges] = await Promise.all([startPostgres(), startEdgeRig()])
  rig = await createConsoleRig({ postgres, nats: edges.server }, edges.masterKey)
  const deps = {
    ...rig.deps,
    adminToken,
  }
  const http = { log: testLog, metrics: createMetrics('console') }
  app = await createConsoleApp(deps, { ...http })
  edge = await edges.startEdge()
  other = await edges.startEdge()
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
  await Promise.all([edges?.stop(), postgres?.stop()])
})

async function create() {
  const tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
  const { hmac_secret: secret } = await createTenant(rig.deps, { ...made, tenantId })
  return { tenantId, secret }
}

async function rotateHmac(tenantId: string): Promise<string> {
  const request = { tenantId, actor: 'test', hmac: true, webhook: false, apiKey: false }
  return (await rotate(rig.deps, request)).hmac_secret!
}

const version = (sdk_version: unknown) => ({
  sdk_meta: { sdk_version, platform: 'android', batch_type: 'start' },
})

async function read(tenantId: string): Promise<StaleSecretReport> {
  const answer = await app.inject({
    url: `/admin/v1/tenants/${tenantId}/stale-secret-requests`,
    headers: { authorization: `Bearer ${adminToken}` },
  })
  expect(answer.statusCode).toBe(200)
  return answer.json()
}

async function untilCounted(tenantId: string, requests: number): Promise<StaleSecretReport> {
  let use = await read(tenantId)
  await until(`${requests} requests are reported`, async () => {
    use = await read(tenantId)
    return use.requests >= requests
  })
  return use
}

describe('the secret before the last rotation', () => {
  it('is rejected like a wrong one, and counted by SDK version over all edges', async () => {
    const { tenantId, secret: old } = await create()
    expect(await read(tenantId)).toMatchObject({ retired_secret: null, requests: 0, data: [] })
    const secret = await rotateHmac(tenantId)
    const startMs = Date.now()
    const canary = `canary-${randomUUID()}`
    const sends = [
      [edge, '4.2.0'],
      [edge, '4.2.0'],
      [other, '4.2.0'],
      [other, '3.9.1'],
    ] as const
    for (const [at, sdk] of sends) {
      const body = bodyOf(tenantId, { ...version(sdk), device_id: canary })
      const headers = { 'x-request-id': 'same' }
      const answer = await sendJudged(at, body, { secret: old, headers })
      const wrong = await sendJudged(at, body, { secret: 'x'.repeat(43), headers })
      expect(answer.status).toBe(401)
      expect(answer.body).toEqual(wrong.body)
      const named = ({ headers: got }: typeof answer) => [...got.keys()]
      expect(named(answer)).toEqual(named(wrong))
    }
    expect((await sendJudged(edge, bodyOf(tenantId), { secret })).status).toBe(200)
    const use = await untilCounted(tenantId, 4)
    expect(use.retired_secret?.last4).toBe(old.slice(-4))
    expect(use.requests).toBe(4)
    expect(use.data.map(({ sdk_version: sdk, requests }) => [sdk, requests])).toEqual([
      ['4.2.0', 3],
      ['3.9.1', 1],
    ])
    for (const { last_seen_at: at } of use.data) {
      expect(Date.parse(at)).toBeGreaterThan(startMs - 50)
      expect(Date.parse(at)).toBeLessThanOrEqual(Date.now())
    }
    const labels = { tenant: tenantId, sdk_version: '4.2.0' }
    expect(await edge.count('di_ingest_stale_secret_requests_total', labels)).toBe(2)
    expect(JSON.stringify(await edges.readStored())).not.toContain(canary)
    expect(JSON.stringify(use)).not.toContain(canary)
  })

  it('is only the newest one: requests with an older secret no longer count', async () => {
    const { tenantId, secret: first } = await create()
    const second = await rotateHmac(tenantId)
    expect((await sendJudged(edge, bodyOf(tenantId), { secret: first })).status).toBe(401)
    await untilCounted(tenantId, 1)
    await rotateHmac(tenantId)
    expect(await read(tenantId)).toMatchObject({ requests: 0, data: [] })
    for (const secret of [first, second, first]) {
      expect((await sendJudged(edge, bodyOf(tenantId), { secret })).status).toBe(401)
    }
    const use = await untilCounted(tenantId, 1)
    expect([use.retired_secret?.last4, use.requests]).toEqual([second.slice(-4), 1])
  })

  it('is counted for any body, and a flood has a bounded number of versions', async () => {
    const { tenantId, secret: old } = await create()
    await rotateHmac(tenantId)
    const odd = [
      bodyOf(tenantId, version(7)),
      bodyOf(tenantId, version('')),
      bodyOf(tenantId, version('x'.repeat(500))),
      bodyOf(tenantId, version('a\nb')),
      bodyOf(tenantId, { sdk_meta: null }),
      `{"tenant_id":"${tenantId}"`,
      `{"tenant_id":"${tenantId}","x":${'['.repeat(9_000)}${']'.repeat(9_000)}}`,
      `{"tenant_id":"${tenantId}","x":${'['.repeat(9_000)}`,
    ]
    for (const body of odd) expect((await sendJudged(edge, body, { secret: old })).status).toBe(401)
    expect((await untilCounted(tenantId, odd.length)).data).toMatchObject([
      { sdk_version: 'unreadable', requests: odd.length },
    ])
    const flood = Array.from({ length: 200 }, (_, at) =>
      sendJudged(edge, bodyOf(tenantId, version(`flood-${at}`)), { secret: old }),
    )
    for (const { status } of await Promise.all(flood)) expect(status).toBe(401)
    const use = await untilCounted(tenantId, odd.length + 200)
    expect(use.requests).toBe(odd.length + 200)
    expect(use.data).toHaveLength(staleSecretVersionsMax + 1)
    expect(use.data[0]).toMatchObject({ sdk_version: 'other' })
    const metrics = await edge.metrics()
    const series = metrics.match(/di_ingest_stale_secret_requests_total\{/g) ?? []
    expect(series.length).toBeLessThan(110)
  })

  it('is still distinguished from a wrong one while the tenant is suspended', async () => {
    const { tenantId, secret: old } = await create()
    await rotateHmac(tenantId)
    await setTenantStatus(rig.deps, { tenantId, status: 'suspended', actor: 'test' })
    expect((await sendJudged(edge, bodyOf(tenantId), { secret: old })).status).toBe(401)
    await untilCounted(tenantId, 1)
  })

  it('is sealed in the directory for its own tenant, and counts for no other', async () => {
    const [one, two] = [await create(), await create()]
    await Promise.all([rotateHmac(one.tenantId), rotateHmac(two.tenantId)])
    expect((await sendJudged(edge, bodyOf(two.tenantId), { secret: one.secret })).status).toBe(401)
    expect((await sendJudged(edge, bodyOf(one.tenantId), { secret: one.secret })).status).toBe(401)
    await untilCounted(one.tenantId, 1)
    expect((await read(two.tenantId)).requests).toBe(0)
    expect(edge.directory.find(one.tenantId)?.retired?.last4).toBe(one.secret.slice(-4))
    const sealed = edges.sealer.seal(one.secret, { tenantId: one.tenantId, kind: 'hmac' })
    const stolen = await edges.projectTenant(`thief-${randomBytes(4).toString('hex')}`, {
      hmac_secret_retired_sealed: sealed,
    })
    await until('the edge has it', () => edge.directory.revision() >= stolen.revision)
    expect(edge.directory.find(stolen.tenantId)).toMatchObject({ retired: null, fault: null })
  })
})

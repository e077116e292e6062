/** deploy/proxy/nginx.conf with a real nginx in front of two edges. */
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { until } from '../../support/process/until.ts'
import { startNginx, type TestNginx } from '../../support/servers/nginx-server.ts'
import {
  type EdgeRig,
  type SpawnedEdge,
  startEdgeRig,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'
import { validBody } from '../../support/telemetry/raw-submissions.ts'

let rig: EdgeRig
let edges: SpawnedEdge[]
let tenant: TestTenant
let nginx: TestNginx
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
beforeAll(async () => {
  rig = await startEdgeRig()
  tenant = await rig.projectTenant('behind')
  const spawn = () => rig.spawnEdge({ env: { TRUSTED_PROXIES: '127.0.0.1', LOG_LEVEL: 'info' } })
  edges = await Promise.all([spawn(), spawn()])
  nginx = await startNginx(edges.map(({ url }) => new URL(url).host))
})
afterAll(async () => {
  agent.destroy()
  await nginx?.stop()
  await rig?.stop()
})

type Call = { path: string; method?: string; headers?: Record<string, string>; body?: string }

function call({ path, method = 'GET', headers = {}, body }: Call): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${nginx.url}${path}`, { agent, method, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
      .on('error', reject)
      .end(body)
  })
}

function submit(more: Record<string, string> = {}): Promise<number> {
  const body = JSON.stringify(validBody(tenant.tenantId))
  const signed = { 'x-service-signature': signBody(body, tenant.secret) }
  const headers = { 'content-type': 'application/json', ...signed, ...more }
  return call({ path: '/v1/rasp/ingest', method: 'POST', headers, body })
}

/** Open connections of both edges. */
async function countConnections(): Promise<number> {
  const texts = edges.map(async ({ internalUrl }) => (await fetch(`${internalUrl}/metrics`)).text())
  return (await Promise.all(texts))
    .flatMap((text) => [...text.matchAll(/^di_http_connections\{.*\} (\d+)$/gm)])
    .reduce((total, [, value]) => total + Number(value), 0)
}

it('leads to ingest over a few kept connections, and to nothing else', async () => {
  const statuses = new Set<number>()
  for (let n = 0; n < 50; n++) statuses.add(await submit())
  expect([...statuses]).toEqual([200])
  const connections = await countConnections()
  expect(connections).toBeGreaterThan(0)
  expect(connections).toBeLessThanOrEqual(4)
  for (const path of ['/', '/healthz', '/readyz', '/metrics', '/admin/v1/tenants', '/v1/other']) {
    expect([path, await call({ path })]).toEqual([path, 404])
  }
})

it('passes the address of the client on, and not the one that it claims', async () => {
  const claimed = { 'x-forwarded-for': '203.0.113.9', 'x-request-id': 'behind-nginx' }
  expect(await submit({ ...claimed, 'x-service-signature': 'wrong' })).toBe(401)
  const find = () =>
    edges.flatMap((edge) => edge.output().split('\n')).find((line) => line.includes('behind-nginx'))
  const line = await until('its line', () => find() ?? null)
  expect(JSON.parse(line)).toMatchObject({ status: 401, source: '127.0.0.0/24' })
})

it('sends what one edge cannot take to another, also when it is killed', async () => {
  const statuses = new Set<number>()
  let running = true
  const client = async () => {
    while (running) statuses.add(await submit())
  }
  const clients = [client(), client(), client(), client()]
  const [killed] = edges
  killed!.child.kill('SIGKILL')
  await once(killed!.child, 'exit')
  for (let n = 0; n < 50; n++) statuses.add(await submit())
  running = false
  await Promise.all(clients)
  expect([...statuses]).toEqual([200])
})

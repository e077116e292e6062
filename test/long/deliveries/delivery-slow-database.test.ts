// The delivery engine on a slow PostgreSQL: webhooks are still sent once, and a rotation of the
// webhook secret keeps its guarantee.
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type RotationDeps, rotate } from '../../../services/console/tenants/rotation.ts'
import { startTestEngine } from '../../support/deliveries/delivery-engine.ts'
import {
  createDeliveryFixtures,
  type DeliveryFixtures,
} from '../../support/deliveries/delivery-fixtures.ts'
import { type ReceivedRequest, startReceiver } from '../../support/deliveries/receiver.ts'
import { waitFor } from '../../support/process/wait-for.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'
import { startSlowServer } from '../../support/servers/slow-server.ts'

const log = createLog('test', 'silent')
let database: MigratedPostgres
let databaseUrl: string
let postgres: Postgres
let fixtures: DeliveryFixtures

beforeAll(async () => {
  database = await startMigratedPostgres()
  postgres = database.postgres
  databaseUrl = database.databaseUrl
  fixtures = createDeliveryFixtures(postgres)
})

afterAll(() => database?.close())

const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  await postgres.query(`update webhook_secret_lease set extended_until = '-infinity'`)
})

async function engineFarAway(latencyMs: number) {
  const slow = await startSlowServer(databaseUrl, latencyMs)
  const far = createPostgres(slow.url, { role: 'delivery', log, connectTimeoutMs: 15_000 })
  const engine = startTestEngine(far)
  closers.push(slow.close, far.close, async () => {
    slow.setLatency(0)
    await engine.stop(0)
  })
  return { engine, slow }
}
async function receiver() {
  const started = await startReceiver()
  closers.push(started.close)
  return started
}
const isSignedWith = (secret: string) => (request: ReceivedRequest) =>
  verifyDelivery(request.body, String(request.headers['x-service-signature']), secret)

const rotation: Omit<RotationDeps, 'leases'> = {
  sealer: createDeliveryFixtures({ query: () => Promise.reject(new Error('unused')) }).sealer,
  randomBytes,
  directory: {
    connected: () => false,
    findEpoch: async () => null,
    project: () => Promise.reject(new Error('no edge is told of a webhook secret')),
    awaitEdges: () => Promise.reject(new Error('no edge is told of a webhook secret')),
  },
  log,
  nowMs: () => performance.now(),
  onOutcome: () => undefined,
}
const rotateWebhook = async (tenantId: string): Promise<string> => {
  const only = { hmac: false, webhook: true, apiKey: false }
  const deps = { ...rotation, leases: { renewals: postgres, work: postgres } }
  return (await rotate(deps, { ...only, tenantId, actor: 'test' })).webhook_secret!
}

test.each([150, 500, 2_000])(
  'with a latency of %d ms each webhook is sent once, without repeated connections',
  async (latencyMs) => {
    const there = await receiver()
    const { tenantId, secret } = await fixtures.addTenant({ url: there.url })
    const ids = await fixtures.addDeliveries(tenantId, 3)
    const { engine } = await engineFarAway(latencyMs)
    await waitFor(async () => {
      for (const id of ids) expect((await fixtures.read(id)).state).toBe('delivered')
    })
    expect(there.requests).toHaveLength(ids.length)
    // A claim can become too old on a connection that has just opened, but not again and again.
    expect(there.connections()).toBeLessThan(2 * ids.length)
    expect(there.requests.every(isSignedWith(secret))).toBe(true)
    expect(there.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(
      ids.map(() => '1'),
    )
    // Our slow database does not count against the receiver, and a warm process reads no secret
    // twice.
    const extended = 'di_delivery_secret_lease_extensions_total'
    const extensions = await engine.count(extended)
    const [later] = await fixtures.addDeliveries(tenantId, 1)
    await waitFor(async () => expect((await fixtures.read(later!)).state).toBe('delivered'))
    expect(await engine.count(extended)).toBe(extensions)
  },
)

test('rising latency at run time stops no delivery', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const { slow } = await engineFarAway(0)
  for (const latencyMs of [60, 99, 220, 400]) {
    slow.setLatency(latencyMs)
    const [id] = await fixtures.addDeliveries(tenantId, 1)
    await waitFor(async () => expect((await fixtures.read(id!)).state).toBe('delivered'))
  }
  expect(there.requests).toHaveLength(4)
})

test.each([0, 150, 400])(
  'with answers after %d ms nothing signed with the old secret arrives after a rotation',
  async (latencyMs) => {
    const there = await receiver()
    const { tenantId, secret } = await fixtures.addTenant({ url: there.url })
    await engineFarAway(latencyMs)
    let stopped = false
    const pour = async () => {
      while (!stopped) {
        await fixtures.addDeliveries(tenantId, 5)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    const pouring = pour()
    let old = secret
    for (let n = 0; n < 2; n++) {
      const before = there.requests.length
      await waitFor(() => expect(there.requests.length).toBeGreaterThan(before + 5))
      const next = await rotateWebhook(tenantId)
      const returned = there.requests.length
      await waitFor(() => expect(there.requests.length).toBeGreaterThan(returned + 5))
      const after = there.requests.slice(returned)
      expect(after.filter(isSignedWith(old))).toEqual([])
      expect(after.every(isSignedWith(next))).toBe(true)
      old = next
    }
    stopped = true
    await pouring
  },
)

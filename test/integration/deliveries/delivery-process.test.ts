// The delivery process as the stack runs it, with a real nats-server and PostgreSQL: hints, kills
// during a request, outages, and an orderly stop.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { deliveryHintSubject } from '#shared/core/telemetry/nats-names.ts'
import { toDerivedKey } from '#shared/io/keys/process-keys.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import {
  createDeliveryFixtures,
  type DeliveryFixtures,
  testMasterKey,
} from '../../support/deliveries/delivery-fixtures.ts'
import { type Answer, startReceiver } from '../../support/deliveries/receiver.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { waitFor } from '../../support/process/wait-for.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const log = createLog('test', 'silent')

let server: TestPostgres
let natsServer: TestNats
let postgres: Postgres
let nats: Nats
let fixtures: DeliveryFixtures
let databaseUrl: string

beforeAll(async () => {
  ;[server, natsServer] = await Promise.all([startPostgres(), startNats()])
  databaseUrl = await server.createMigratedDatabase()
  postgres = createPostgres(databaseUrl, { role: 'test', log })
  fixtures = createDeliveryFixtures(postgres)
  nats = await connectNats(natsServer.url, 'test', log)
  await ensureStreams(nats)
})

afterAll(async () => {
  await nats?.close()
  await postgres?.close()
  await Promise.all([server?.stop(), natsServer?.stop()])
})

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

type Running = { child: ChildProcess; url: string; output: () => string; ended: Promise<unknown[]> }

/**
 * Starts the process on any free port and waits until it listens.
 * @param nodeOptions for Node itself
 */
async function startProcess(
  env: Record<string, string> = {},
  nodeOptions: string[] = [],
): Promise<Running> {
  const child = spawn(process.execPath, [...nodeOptions, 'services/delivery/main.ts'], {
    cwd: projectDir,
    env: {
      ...nodeEnv(),
      POSTGRES_URL: databaseUrl,
      NATS_URL: natsServer.url,
      WEBHOOK_KEY: toDerivedKey(testMasterKey, 'WEBHOOK_KEY'),
      DELIVERY_LISTEN: '127.0.0.1:0',
      ALLOW_PRIVATE_WEBHOOKS: '1',
      LOG_LEVEL: 'debug',
      PARENT_PID: String(process.pid),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk
  })
  const ended = once(child, 'exit')
  closers.push(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const url = await new Promise<string>((resolve, reject) => {
    void ended.then(() => reject(new Error(`it ended before it listened: ${output}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`
      const entry = JSON.parse(line) as { msg: string; url: string }
      if (entry.msg === 'listening') resolve(entry.url)
    })
  })
  return { child, url, output: () => output, ended }
}

async function receiver(answer?: Answer) {
  const started = await startReceiver(answer)
  closers.push(started.close)
  return started
}
const waitForState = (deliveryId: string, state: string) =>
  waitFor(async () => expect((await fixtures.read(deliveryId)).state).toBe(state))

const hint = (tenantId: string, deliveryId: string) =>
  nats.jetstream.publish(
    deliveryHintSubject,
    JSON.stringify({ tenant_id: tenantId, delivery_id: deliveryId }),
  )

test('a hint starts its delivery at once, and garbage among hints does no harm', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const { url } = await startProcess()
  await waitFor(async () => expect(await readMetric(url, 'di_delivery_hints_connected')).toBe(1))
  for (const garbage of ['{', '[]', '{"tenant_id":1}', '']) {
    await nats.jetstream.publish(deliveryHintSubject, garbage)
  }
  await waitFor(async () => expect(await readMetric(url, 'di_delivery_hints_total')).toBe(4))
  const sweeps = () => readMetric(url, 'di_delivery_sweeps_total')
  // A sweep comes every second. What arrives between two of them came by its hint: how many of the
  // deliveries that are depends on the machine, and without hints none does.
  let between = 0
  for (let sent = 0; between < 5; sent++) {
    expect(sent).toBeLessThan(60)
    const before = await sweeps()
    const [id] = await fixtures.addDeliveries(tenantId, 1)
    await hint(tenantId, id!)
    await waitFor(() => expect(there.requests).toHaveLength(sent + 1))
    if ((await sweeps()) === before) between++
  }
  expect(await readMetric(url, 'di_delivery_attempts_total')).toBeGreaterThanOrEqual(4)
})

test('it delivers without NATS; without Postgres it is not ready, and recovers', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const { url } = await startProcess({ NATS_URL: 'nats://127.0.0.1:1' })
  const ready = async () => (await fetch(`${url}/readyz`)).status
  expect(await ready()).toBe(200)
  expect(await readMetric(url, 'di_delivery_hints_connected')).toBe(0)
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(id!, 'delivered')
  await server.kill('SIGKILL')
  await waitFor(async () => expect(await ready()).toBe(503))
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  await server.restart()
  await waitFor(async () => expect(await ready()).toBe(200))
  const [later] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(later!, 'delivered')
  expect(there.requests).toHaveLength(2)
})

// More than the wait that the busy receiver asks for, which no slow machine reaches.
test.each([4_000_000, -4_000_000])(
  'a process whose clock is %d ms ahead takes no claim early and repeats nothing early',
  async (shiftMs) => {
    const hanging = await receiver(() => undefined)
    const busy = await receiver((response) =>
      response.writeHead(503, { 'retry-after': '3600' }).end(),
    )
    const slow = await fixtures.addTenant({ url: hanging.url })
    const failing = await fixtures.addTenant({ url: busy.url })
    await startProcess()
    await fixtures.addDeliveries(slow.tenantId, 1)
    const [retried] = await fixtures.addDeliveries(failing.tenantId, 1)
    await waitFor(async () => {
      expect(hanging.requests).toHaveLength(1)
      expect((await fixtures.read(retried!)).attempts).toBe(1)
    })
    const clock = fileURLToPath(new URL('../../support/process/shifted-clock.ts', import.meta.url))
    const env = { SHIFTED_CLOCK_MS: String(shiftMs) }
    const { url } = await startProcess(env, ['--import', clock])
    await waitFor(async () => {
      expect(await readMetric(url, 'di_delivery_sweeps_total')).toBeGreaterThanOrEqual(3)
    })
    // On a slow machine the first process has given up meanwhile, and tries a second time.
    const firstTries = hanging.requests.filter(
      ({ headers }) => headers['x-service-attempt'] === '1',
    )
    expect([firstTries.length, busy.requests.length]).toEqual([1, 1])
    // Due deliveries are due on any clock.
    const prompt = await receiver()
    const { tenantId } = await fixtures.addTenant({ url: prompt.url })
    const [id] = await fixtures.addDeliveries(tenantId, 1)
    await waitForState(id!, 'delivered')
  },
)

test('SIGTERM stops it in order: a request in flight is first answered and recorded', async () => {
  const there = await receiver((response) => setTimeout(() => response.end('ok'), 700))
  const { tenantId, secret } = await fixtures.addTenant({ url: there.url })
  const running = await startProcess()
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitFor(() => expect(there.requests).toHaveLength(1))
  running.child.kill('SIGTERM')
  const [code] = await running.ended
  expect(code).toBe(0)
  expect(await fixtures.read(id!)).toMatchObject({ state: 'delivered', attempts: 1 })
  const signature = String(there.requests[0]!.headers['x-service-signature'])
  for (const canary of [
    secret,
    secret.slice(6),
    signature,
    testMasterKey,
    'postgres-test-password',
  ]) {
    expect(running.output()).not.toContain(canary)
  }
})

test('NODE_EXTRA_CA_CERTS makes it trust a receiver with a company certificate', async () => {
  const pem = (name: string) => fileURLToPath(new URL(`../../vectors/${name}.pem`, import.meta.url))
  const identity = {
    key: readFileSync(pem('receiver-key')),
    cert: readFileSync(pem('receiver-cert')),
  }
  const there = createServer(identity, (_request, response) => response.end('ok'))
  there.listen(0, '127.0.0.1')
  await once(there, 'listening')
  closers.push(async () => void there.close())
  const url = `https://localhost:${(there.address() as AddressInfo).port}/`
  const { tenantId } = await fixtures.addTenant({ url })
  await startProcess({ NODE_EXTRA_CA_CERTS: pem('receiver-cert') })
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(id!, 'delivered')
})

test('every fault of the configuration is listed at once', async () => {
  const started = startProcess({
    WEBHOOK_KEY: 'short',
    POSTGRES_URL: 'http://x',
    DELIVERY_CONCURRENCY: '0',
  })
  await expect(started).rejects.toThrow(/WEBHOOK_KEY(.|\n)*DELIVERY_CONCURRENCY|POSTGRES_URL/)
  const networks = startProcess({ WEBHOOK_ALLOW_NETWORKS: '10.0.0.0/8,10.1.2.3/16, 127.0.0.0/8' })
  await expect(networks).rejects.toThrow(/10.1.2.3\/16 has bits(.|\n)*127.0.0.0\/8 can never/)
  const laws = startProcess({ DELIVERY_CONCURRENCY: '4', DELIVERY_TENANT_CONCURRENCY: '5' })
  await expect(laws).rejects.toThrow(/must not be above DELIVERY_CONCURRENCY/)
})

// The example receivers of the READMEs, each as its own server; the delivery engine delivers to it.
// Each must reject a body that is not genuine.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { signDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { useDeliveryDatabase } from '../../support/deliveries/delivery-database.ts'
import { startTestEngine } from '../../support/deliveries/delivery-engine.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { waitFor } from '../../support/process/wait-for.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * The receivers of the front page and of delivery's README, by the file name in their first line.
 */
function readReceivers(): Record<string, string> {
  const pages = ['README.md', 'services/delivery/README.md']
  const text = pages.map((page) => readFileSync(`${projectDir}/${page}`, 'utf8')).join('\n')
  const blocks = text.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)
  return Object.fromEntries([...blocks].map(([, name, code]) => [name, code]))
}

const receivers = readReceivers()

const { postgres, fixtures, closers } = await useDeliveryDatabase()

type Running = { url: string; alerts: () => string[]; errors: () => string }

/** Runs a receiver in the project's folder, where its packages are installed. */
async function run(code: string, secret: string): Promise<Running> {
  const port = await choosePort({})
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: projectDir,
    env: { ...nodeEnv(), PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = { out: '', err: '' }
  child.stdout?.on('data', (chunk: Buffer) => {
    printed.out += chunk
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    printed.err += chunk
  })
  const ended = once(child, 'exit')
  closers.push(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`it ended: ${printed.err}`)
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
  })
  return {
    url: `http://127.0.0.1:${port}/hook`,
    alerts: () => printed.out.split('\n').filter((line) => line.startsWith('alert ')),
    errors: () => printed.err,
  }
}

/** A tenant whose webhook is the receiver, and an engine that delivers. */
async function deliverTo(code: string) {
  const { tenantId, secret } = await fixtures.addTenant()
  const receiver = await run(code, secret)
  await fixtures.setWebhook(tenantId, receiver.url)
  const engine = startTestEngine(postgres)
  closers.push(() => engine.stop(0))
  return { tenantId, secret, receiver }
}

const body = Buffer.from('{"alert_id": "alr_direct",\n "n": 1.0}')

async function post(url: string, headers: Record<string, string>, bytes = body): Promise<number> {
  const answer = await fetch(url, { method: 'POST', headers, body: bytes })
  await answer.arrayBuffer()
  return answer.status
}

async function findStatuses(deliveryId: string): Promise<(number | null)[]> {
  const { rows } = await postgres.query<{ status: number | null }>(
    'select status from delivery_attempts where delivery_id = $1 order by attempt',
    [deliveryId],
  )
  return rows.map(({ status }) => status)
}

test('the READMEs have five receivers', () => {
  expect(Object.keys(receivers)).toEqual([
    'receiver.mjs',
    'receive-with-node.mjs',
    'receive-with-fastify.mjs',
    'receive-with-express.mjs',
    'receive-with-standardwebhooks.mjs',
  ])
})

test.each(Object.entries(receivers))('%s accepts deliveries of the engine', async (_name, code) => {
  const { tenantId, receiver } = await deliverTo(code)
  const ids = await fixtures.addDeliveries(tenantId, 3)
  await waitFor(async () => {
    for (const id of ids) {
      const result = `answers ${await findStatuses(id)}; ${receiver.errors()}`
      expect((await fixtures.read(id)).state, result).toBe('delivered')
    }
  })
  await waitFor(() => expect(receiver.alerts()).toHaveLength(3))
  expect(new Set(receiver.alerts()).size).toBe(3)
  for (const id of ids) expect(await findStatuses(id)).toEqual([204])
  expect(receiver.errors()).toBe('')
})

test.each(Object.entries(receivers))('%s handles a repeat once', async (_name, code) => {
  const { secret, receiver } = await deliverTo(code)
  const timestampSeconds = Math.floor(Date.now() / 1_000)
  for (const attempt of [1, 2, 3]) {
    const stamp = { deliveryId: 'dlv_direct', attempt, timestampSeconds }
    expect(await post(receiver.url, signDelivery(body, secret, stamp))).toBe(204)
  }
  const other = { deliveryId: 'dlv_other', attempt: 1, timestampSeconds }
  expect(await post(receiver.url, signDelivery(body, secret, other))).toBe(204)
  await waitFor(() => expect(receiver.alerts()).toHaveLength(2))
})

test.each(Object.entries(receivers))('%s rejects what is not genuine', async (_name, code) => {
  const { tenantId, secret, receiver } = await deliverTo(code)
  const timestampSeconds = Math.floor(Date.now() / 1_000)
  const stamp = { deliveryId: 'dlv_direct', attempt: 1, timestampSeconds }
  const genuine = signDelivery(body, secret, stamp)
  for (let at = 0; at < body.length; at += 7) {
    const changed = Buffer.from(body)
    changed[at]! ^= 1
    expect(await post(receiver.url, genuine, changed)).toBe(401)
  }
  // The same text in other bytes: a receiver that verifies the parsed value would accept it.
  const reformatted = Buffer.from(JSON.stringify(JSON.parse(body.toString())))
  expect(await post(receiver.url, genuine, reformatted)).toBe(401)
  expect(await post(receiver.url, genuine, Buffer.alloc(0))).toBe(401)
  const unsigned = Object.entries(genuine).filter(([name]) => !name.endsWith('signature'))
  expect(await post(receiver.url, Object.fromEntries(unsigned))).toBe(401)
  for (const broken of ['', 'x', genuine['x-service-signature']!.slice(0, -4)]) {
    const headers = { 'x-service-signature': broken, 'webhook-signature': `v1,${broken}` }
    expect(await post(receiver.url, { ...genuine, ...headers })).toBe(401)
  }
  // The engine signs with the new secret, the receiver still has the old one.
  await fixtures.rotateSecret(tenantId)
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitFor(async () => expect(await findStatuses(id!)).toEqual([401]))
  expect((await fixtures.read(id!)).state).toBe('pending')
  expect(receiver.alerts()).toEqual([])
  expect(await post(receiver.url, genuine)).toBe(204)
})

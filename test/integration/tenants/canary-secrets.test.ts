/**
 * Known secrets through a whole stack: traffic, alerts, failing and successful webhooks, rotations,
 * and common mistakes with credentials. Afterwards no secret is in any log, metric or file of any
 * server, in any encoding.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import {
  admin,
  createTenant,
  ingest,
  read,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { createSecretSearch, type Hit } from '../../support/tenants/secret-search.ts'

const masterKey = randomBytes(32).toString('base64')
const adminToken = randomBytes(32).toString('base64url')
/** Not a secret, but as random as one: it must be found where events and alerts are stored. */
const planted = randomBytes(32).toString('base64url')
const frida = { debugger: { frida_detected: true } }

let running: TestStack
let receiver: Receiver
let hits: Hit[]
const metrics: string[] = []

beforeAll(async () => {
  // Every other delivery fails.
  let requests = 0
  receiver = await startReceiver((response) => response.writeHead(++requests % 2 ? 500 : 200).end())
  running = await startStack({ env: { MASTER_KEY: masterKey, ADMIN_TOKEN: adminToken } })
  const { stack } = running
  const first = await createTenant(stack, 'canary', receiver.url)
  await use(first, 'before')
  const answer = await admin<Partial<Tenant>>(stack, 'POST', '/tenants/canary/rotate', {
    hmac: true,
    webhook: true,
    api_key: true,
  })
  const second = { ...first, ...answer }
  await use(second, 'after')
  await misuse(first)
  await misuse(second)
  for (const part of ['ingest', 'api', 'console', 'scorer', 'delivery'] as const) {
    metrics.push(await (await fetch(`${stack.internal[part]}/metrics`)).text())
  }
  const facts = readFileSync(join(running.dataDir, 'stack.json'))
  const { demo } = stack
  // After their stop the servers have written all their data.
  await running.stop()
  const search = createSecretSearch({
    master_key: masterKey,
    admin_token: adminToken,
    planted,
    ...named('first', first),
    ...named('second', second),
    ...named('demo', demo),
  })
  hits = [
    ...search.inFolder(running.dataDir),
    ...search.inBytes(facts, 'stack.json'),
    ...search.inBytes(Buffer.from(running.output()), 'terminal'),
    ...metrics.flatMap((text) => search.inBytes(Buffer.from(text), 'metrics')),
  ]
})

afterAll(async () => {
  await running?.discard()
  await receiver?.close()
})

const named = (name: string, tenant: Tenant) => ({
  [`${name} api key`]: tenant.public_api_key,
  [`${name} hmac secret`]: tenant.hmac_secret,
  [`${name} webhook secret`]: tenant.webhook_secret,
})

/** A tenant's typical use: events, alerts, a failing webhook, reads, its own policy. */
async function use(tenant: Tenant, device: string): Promise<void> {
  const { stack } = running
  const sent = receiver.requests.length
  for (let n = 0; n < 5; n++) {
    const session = `${device}-${n}`
    const body = toBody('canary', { device: `${planted}-${device}`, session, signals: frida })
    expect((await ingest(stack, tenant.hmac_secret, body)).status).toBe(200)
  }
  await until('webhooks', () => receiver.requests.length >= sent + 5)
  const { alerts } = await readAlerts(stack, tenant.public_api_key)
  expect(alerts.length).toBeGreaterThanOrEqual(5)
  const path = `/v1/di/devices/${planted}-${device}`
  expect((await read(stack, tenant.public_api_key, path)).status).toBe(200)
}

/** Common mistakes with credentials. Each is rejected. */
async function misuse({ hmac_secret: hmac, webhook_secret, public_api_key }: Tenant) {
  const { stack } = running
  const url = `${stack.ingest}/v1/rasp/ingest`
  const secrets = [hmac, webhook_secret, public_api_key, masterKey]
  for (const secret of secrets) {
    const statuses = [
      (await ingest(stack, `${secret}x`, toBody('canary'))).status,
      (await ingest(stack, secret, '{"tenant_id":"canary"')).status,
      await refused(url, { 'content-type': 'application/json', 'x-service-signature': secret }),
      await refused(url, { 'content-type': 'text/plain', authorization: `Bearer ${secret}` }),
      await refused(`${stack.console}/admin/v1/tenants`, { authorization: `Bearer ${secret}` }),
      await refused(`${stack.console}/admin/v1/tenants/canary/rotate`, {
        authorization: `Bearer ${adminToken}`,
        'content-type': 'application/json',
        body: JSON.stringify({ hmac: secret, [secret]: true }),
      }),
    ]
    if (secret !== public_api_key) {
      statuses.push((await read(stack, secret, '/v1/di/alerts')).status)
      const basic = Buffer.from(`:${secret}`).toString('base64')
      const answer = await fetch(`${stack.api}/v1/di/alerts`, {
        headers: { authorization: `Basic ${basic}` },
      })
      statuses.push(answer.status)
    }
    for (const status of statuses) expect([400, 401, 415]).toContain(status)
  }
  // A valid signature over an invalid body is another kind of error.
  expect((await ingest(stack, hmac, toBody('canary', { device: '' }))).status).not.toBe(200)
}

async function refused(url: string, { body = '{}', ...headers }: Record<string, string>) {
  return (await fetch(url, { method: 'POST', headers, body })).status
}

const where = (secret: string) => [
  ...new Set(hits.filter((hit) => hit.secret === secret).map((hit) => hit.where.split('/')[0]!)),
]

describe('after a full run', () => {
  it('no secret of a tenant is in any file, in any encoding', () => {
    expect(metrics.every((text) => text.includes('di_'))).toBe(true)
    expect(hits.filter(({ secret }) => /^(first|second)/.test(secret))).toEqual([])
  })

  it('the master key is in no file, and the admin token only in its own', () => {
    expect(hits.filter(({ secret }) => secret === 'master_key')).toEqual([])
    expect(where('admin_token')).toEqual(['stack.json'])
  })

  it('the demo tenant’s secrets are only where they are shown on purpose', () => {
    const shown = ['secrets.json', 'stack.json', 'terminal']
    for (const kind of ['api key', 'hmac secret', 'webhook secret']) {
      expect(where(`demo ${kind}`).length).toBeGreaterThan(0)
      expect(where(`demo ${kind}`).filter((place) => !shown.includes(place))).toEqual([])
    }
  })

  it('an equally random text that is no secret is found where events and alerts are stored', () => {
    expect(where('planted')).toEqual(expect.arrayContaining(['nats', 'clickhouse', 'postgres']))
  })
})

describe('the search', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const search = createSecretSearch({ canary: secret })
  const bytes = Buffer.from(secret.slice(6), 'base64')

  it.each<[string, Buffer | string]>([
    ['as it is', secret],
    ['without its prefix', secret.slice(6)],
    ['as bytes', bytes],
    ['URL-encoded', encodeURIComponent(secret)],
    ['in hex', bytes.toString('hex')],
    ['in the middle of base64', Buffer.from(`user:${secret}\n`).toString('base64')],
    ['in base64url, one byte on', Buffer.from(`:${secret}`).toString('base64url')],
    ['in hex of its text, upper case', Buffer.from(secret).toString('hex').toUpperCase()],
  ])('finds a secret %s', (_, spelled) => {
    const text = Buffer.concat([randomBytes(1_000), Buffer.from(spelled), randomBytes(10)])
    expect(search.inBytes(text, 'here').length).toBeGreaterThan(0)
  })

  it('finds nothing in an empty folder', () => {
    expect(search.inBytes(randomBytes(100_000), 'here')).toEqual([])
  })
})

// The delivery engine on a real PostgreSQL with real receivers: protocol, schedule, crashes,
// fairness.
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import { retryDelaysMs } from '#shared/core/deliveries/retry-schedule.ts'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { createDeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import { findDeliveries } from '#shared/io/deliveries/list-deliveries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { useDeliveryDatabase } from '../../support/deliveries/delivery-database.ts'
import {
  createClock,
  startTestEngine,
  type TestEngine,
  type TestEngineOptions,
} from '../../support/deliveries/delivery-engine.ts'
import {
  type Answer,
  type ReceivedRequest,
  startReceiver,
} from '../../support/deliveries/receiver.ts'
import { waitFor } from '../../support/process/wait-for.ts'
import { atTime } from '../../support/servers/database-clock.ts'

const { server, postgres, fixtures, closers } = await useDeliveryDatabase({ connectionsMax: 8 })

function engine(options: TestEngineOptions = {}): TestEngine {
  const started = startTestEngine(postgres, options)
  closers.push(() => started.stop(0))
  return started
}
async function receiver(answer?: Answer) {
  const started = await startReceiver(answer)
  closers.push(started.close)
  return started
}
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end(`answer ${code}`)
const silence: Answer = () => undefined

async function view(tenantId: string, deliveryId: string): Promise<Delivery> {
  const [found] = await findDeliveries(postgres, tenantId, [deliveryId])
  return found!
}
const waitForState = (deliveryId: string, state: string) =>
  waitFor(async () => expect((await fixtures.read(deliveryId)).state).toBe(state))
/** Two complete sweeps: every delivery that was due at the call has been found. */
async function sweepTwice(one: TestEngine): Promise<void> {
  const before = await one.sweeps()
  await waitFor(async () => expect(await one.sweeps()).toBeGreaterThanOrEqual(before + 2))
}
const header = (request: ReceivedRequest, name: string) => String(request.headers[name])

test('a delivery arrives at once with all its headers and both valid signatures', async () => {
  const there = await receiver(status(200))
  const { tenantId, secret } = await fixtures.addTenant({ url: `${there.url}?key=1` })
  // After its first sweep no other one comes within this test: only the hint can cause the
  // delivery.
  const one = engine({ sweepMs: 600_000 })
  await waitFor(async () => expect(await one.sweeps()).toBe(1))
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  one.wake({ tenantId, retry: false })
  await waitForState(id!, 'delivered')
  const request = there.requests[0]!
  const { body } = await fixtures.read(id!)
  expect(request.body.equals(body)).toBe(true)
  expect(request).toMatchObject({ method: 'POST', path: '/hook?key=1' })
  expect(request.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(body.length),
    'x-service-event': 'risk.alert',
    'x-service-delivery': id,
    'x-service-attempt': '1',
    'x-service-timestamp': expect.stringMatching(/^\d{10}$/),
    'x-service-signature': expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
    'webhook-id': id,
    'webhook-timestamp': request.headers['x-service-timestamp'],
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  })
  expect(verifyDelivery(request.body, header(request, 'x-service-signature'), secret)).toBe(true)
  const verified = new Webhook(secret).verify(
    request.body.toString(),
    request.headers as Record<string, string>,
  )
  expect(verified).toEqual(JSON.parse(body.toString()))
  expect(await view(tenantId, id!)).toMatchObject({
    state: 'delivered',
    reason: null,
    attempts: [
      { attempt: 1, status: 200, error_kind: null, address: '127.0.0.1', answer: 'answer 200' },
    ],
  })
  expect(await one.count('di_delivery_attempts_total', { outcome: 'delivered' })).toBe(1)
  expect(there.requests).toHaveLength(1)
})

test('a delivery whose hint was lost is found by the sweep', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  engine()
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(id!, 'delivered')
})

test('a failing receiver gets the whole schedule, never early, then the delivery fails', async () => {
  const there = await receiver(status(500))
  const { tenantId, secret } = await fixtures.addTenant({ url: there.url })
  const clock = createClock(Date.now())
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  const one = engine({ clock })
  for (const [index, baseMs] of retryDelaysMs.entries()) {
    const attempts = index + 1
    await waitFor(async () => {
      expect(await fixtures.read(id!)).toMatchObject({ state: 'pending', attempts })
    })
    expect(there.requests).toHaveLength(attempts)
    const waitMs = (await fixtures.read(id!)).due_at.getTime() - clock.nowMs()
    expect(waitMs).toBeGreaterThanOrEqual(baseMs)
    expect(waitMs).toBeLessThanOrEqual(baseMs * 1.1)
    clock.set(clock.nowMs() + waitMs - 1)
    await sweepTwice(one)
    expect(there.requests).toHaveLength(attempts)
    clock.set(clock.nowMs() + 1)
  }
  await waitForState(id!, 'failed')
  await sweepTwice(one)
  expect(there.requests).toHaveLength(11)
  const { body } = await fixtures.read(id!)
  for (const [index, request] of there.requests.entries()) {
    expect(header(request, 'x-service-attempt')).toBe(String(index + 1))
    expect(header(request, 'x-service-delivery')).toBe(id)
    expect(header(request, 'webhook-id')).toBe(id)
    expect(request.body.equals(body)).toBe(true)
    expect(verifyDelivery(request.body, header(request, 'x-service-signature'), secret)).toBe(true)
  }
  // Each attempt is stamped with its own time.
  expect(new Set(there.requests.map((r) => header(r, 'webhook-timestamp'))).size).toBe(11)
  const failed = await view(tenantId, id!)
  expect(failed).toMatchObject({ state: 'failed', reason: 'exhausted' })
  expect(failed.attempts.map((made) => made.status)).toEqual(new Array(11).fill(500))
})

test('a delivery that succeeds on a retry is delivered', async () => {
  const there = await receiver((response, request, n) =>
    status(n < 3 ? 503 : 204)(response, request, n),
  )
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const clock = createClock(Date.now())
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  engine({ clock })
  for (const attempts of [1, 2]) {
    await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(attempts))
    clock.set((await fixtures.read(id!)).due_at.getTime())
  }
  await waitForState(id!, 'delivered')
  const { attempts } = await view(tenantId, id!)
  expect(attempts.map((made) => made.status)).toEqual([503, 503, 204])
})

test.each([
  [429, '3600', 3_600_000],
  [503, '3600', 3_600_000],
  [503, 'DATE+7200', 7_200_000],
  [503, '2', 5_000],
  [503, '-30', 5_000],
  [503, 'in a while', 5_000],
  [503, '31536000', 36_000_000],
  [500, '3600', 5_000],
])('after a %d with Retry-After %s the next attempt is due in %d ms', async (code, text, ms) => {
  const clock = createClock(Math.floor(Date.now() / 1_000) * 1_000)
  const retryAfter = text.startsWith('DATE+')
    ? new Date(clock.nowMs() + Number(text.slice(5)) * 1_000).toUTCString()
    : text
  const there = await receiver(status(code, { 'retry-after': retryAfter }))
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  engine({ clock, random: () => 0 })
  await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
  expect((await fixtures.read(id!)).due_at.getTime() - clock.nowMs()).toBe(ms)
})

test('410 ends the delivery and the webhook; waiting deliveries are skipped', async () => {
  const there = await receiver(status(410))
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  // A single slot: the others still wait when the answer comes.
  const one = engine({ limits: { total: 1, retries: 1, perTenant: 1 } })
  const ids = await fixtures.addDeliveries(tenantId, 5)
  for (const id of ids)
    await waitFor(async () => expect((await fixtures.read(id)).ended_at).not.toBeNull())
  const rows = await Promise.all(ids.map((id) => fixtures.read(id)))
  const reasons = rows.map(({ state, reason }) => `${state} ${reason}`).sort()
  expect(there.requests.length).toBe(reasons.filter((text) => text === 'failed gone').length)
  expect(reasons.filter((text) => text === 'failed gone').length).toBeLessThan(5)
  expect(new Set(reasons)).toEqual(new Set(['failed gone', 'skipped no_webhook']))
  const { rows: webhooks } = await postgres.query(
    'select state, off_reason from webhooks where tenant_id = $1',
    [tenantId],
  )
  expect(webhooks).toEqual([{ state: 'off', off_reason: 'gone' }])
  expect(await one.count('di_webhooks_switched_off_total')).toBe(1)
})

test('a tenant without a webhook gets nothing, also not later', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant()
  const one = engine()
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(id!, 'skipped')
  await fixtures.setWebhook(tenantId, there.url)
  await sweepTwice(one)
  expect(there.requests).toHaveLength(0)
  expect(await view(tenantId, id!)).toMatchObject({ reason: 'no_webhook', attempts: [] })
})

test('a redirect is a failure and is not followed', async () => {
  const trap = await receiver()
  const there = await receiver(status(307, { location: trap.url }))
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  engine()
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
  expect((await view(tenantId, id!)).attempts[0]).toMatchObject({
    status: 307,
    error_kind: 'status',
  })
  expect(trap.connections()).toBe(0)
})

test('a receiver that does not answer in time is a failed attempt', async () => {
  const there = await receiver(silence)
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  engine({ timeoutMs: 200 })
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
  expect((await view(tenantId, id!)).attempts[0]).toMatchObject({
    status: null,
    error_kind: 'timeout',
    error: 'no answer within 200 ms',
    address: '127.0.0.1',
    answer: null,
  })
})

test('an answer that Postgres cannot store unchanged does not stop the delivery', async () => {
  const nasty = Buffer.from([0, 1, 0xff, 0xfe, 0xed, 0xa0, 0x80, ...Buffer.from('ende'), 0])
  const there = await receiver((response) => response.end(nasty))
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  engine()
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  await waitForState(id!, 'delivered')
  expect((await view(tenantId, id!)).attempts[0]!.answer).toContain('ende')
  expect(there.requests).toHaveLength(1)
})

test('a live tenant’s delivery to a forbidden address opens no connection', async () => {
  const there = await receiver()
  const clock = createClock(Date.now())
  const one = engine({ clock, outbound: { resolve: async () => ['93.184.215.14', '127.0.0.1'] } })
  const urls = [
    `https://127.0.0.1:${there.port}/`,
    `http://receiver.example:${there.port}/`,
    `https://receiver.example:${there.port}/`,
    `https://[::ffff:127.0.0.1]:${there.port}/`,
  ]
  for (const url of urls) {
    const { tenantId } = await fixtures.addTenant({ url, environment: 'live' })
    const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
    await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
    const { attempts } = await view(tenantId, id!)
    expect(attempts[0], url).toMatchObject({ status: null, error_kind: 'refused_address' })
  }
  await sweepTwice(one)
  expect(there.connections()).toBe(0)
})

test('a retry uses the secret and the URL of its own time', async () => {
  const before = await receiver(status(500))
  const after = await receiver(status(200))
  const { tenantId, secret } = await fixtures.addTenant({ url: before.url })
  const clock = createClock(Date.now())
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  engine({ clock })
  await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
  const next = await fixtures.rotateSecret(tenantId)
  await fixtures.setWebhook(tenantId, after.url)
  clock.set((await fixtures.read(id!)).due_at.getTime())
  await waitForState(id!, 'delivered')
  expect(before.requests).toHaveLength(1)
  const [old, fresh] = [before.requests[0]!, after.requests[0]!]
  expect(verifyDelivery(old.body, header(old, 'x-service-signature'), secret)).toBe(true)
  expect(verifyDelivery(fresh.body, header(fresh, 'x-service-signature'), next)).toBe(true)
  expect(verifyDelivery(fresh.body, header(fresh, 'x-service-signature'), secret)).toBe(false)
  // One signature of Standard Webhooks too, of the new secret.
  const headers = fresh.headers as Record<string, string>
  expect(headers['webhook-signature']!.split(' ')).toHaveLength(1)
  new Webhook(next).verify(fresh.body, headers)
  expect(() => new Webhook(secret).verify(fresh.body, headers)).toThrow()
  expect(fresh.body.equals(old.body)).toBe(true)
  expect(header(fresh, 'x-service-delivery')).toBe(header(old, 'x-service-delivery'))
})

test('no attempt is spent while no secret is active, and while suspended or paused', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const setSecret = (state: string) =>
    postgres.query(
      `update tenant_secrets set state = $2 where tenant_id = $1 and kind = 'webhook'`,
      [tenantId, state],
    )
  const setStatus = (state: string) =>
    postgres.query('update tenants set status = $2 where tenant_id = $1', [tenantId, state])
  const clock = createClock(Date.now())
  await setSecret('pending')
  const one = engine({ clock })
  const released = (reason: string) => one.count('di_delivery_released_total', { reason })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  await waitFor(async () => expect(await released('no_secret')).toBeGreaterThan(0))
  await waitForState(id!, 'pending')
  const withoutSecret = await released('no_secret')
  await setStatus('suspended')
  await setSecret('active')
  clock.set(clock.nowMs() + 60_000)
  await sweepTwice(one)
  await fixtures.setWebhook(tenantId, there.url, 'paused')
  await setStatus('active')
  await sweepTwice(one)
  // It is not claimed again. The count of connections is no proof: the port may be reused.
  expect(await released('no_secret')).toBe(withoutSecret)
  expect(await released('waiting')).toBe(0)
  expect(there.requests).toHaveLength(0)
  await fixtures.setWebhook(tenantId, there.url)
  await waitForState(id!, 'delivered')
  expect(there.requests).toHaveLength(1)
  expect(header(there.requests[0]!, 'x-service-attempt')).toBe('1')
})

test('the log names the alert of a delivery that cannot be attempted or recorded', async () => {
  const there = await receiver(status(200))
  const lines: Record<string, unknown>[] = []
  const add = (fields: object, msg: string) => void lines.push({ ...fields, msg })
  const log = { debug: add, info: add, warn: add, error: add } as unknown as Log
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const setSecret = (sealed: string) =>
    postgres.query(`update tenant_secrets set sealed = $2 where tenant_id = $1`, [tenantId, sealed])
  const { rows } = await postgres.query<{ sealed: string }>(
    'select sealed from tenant_secrets where tenant_id = $1',
    [tenantId],
  )
  await setSecret('sealed by another key')
  const [id] = await fixtures.addDeliveries(tenantId, 1)
  const { alert_id: alertId } = await view(tenantId, id!)
  const about = { tenant_id: tenantId, delivery_id: id, alert_id: alertId }
  const first = engine({ log })
  const unsealable = { ...about, why: 'unsealable', msg: 'a delivery could not be attempted' }
  await waitFor(async () => expect(lines).toContainEqual(expect.objectContaining(unsealable)))
  await first.stop(0)

  await setSecret(rows[0]!.sealed)
  await postgres.query('update deliveries set due_at = now() where delivery_id = $1', [id])
  const refusing: Postgres = {
    ...postgres,
    query: (sql, values) =>
      typeof sql === 'object' && sql.name === 'record-outcomes'
        ? Promise.reject(new Error('a text that Postgres cannot store'))
        : postgres.query(sql, values),
  }
  const second = startTestEngine(refusing, { log })
  closers.push(() => second.stop(0))
  const unrecorded = { ...about, msg: 'an outcome cannot be recorded' }
  await waitFor(async () => expect(lines).toContainEqual(expect.objectContaining(unrecorded)))
})

test('several engines share the work and send nothing twice', async () => {
  const there = await receiver((response) => setTimeout(() => response.end('ok'), 5))
  const ids: string[] = []
  for (let i = 0; i < 5; i++) {
    const { tenantId } = await fixtures.addTenant({ url: there.url })
    ids.push(...(await fixtures.addDeliveries(tenantId, 60)))
  }
  const engines = [engine(), engine(), engine()]
  await waitFor(async () => {
    const done = await postgres.query<{ n: number }>(
      "select count(*) as n from deliveries where delivery_id = any($1) and state = 'delivered'",
      [ids],
    )
    expect(done.rows[0]!.n).toBe(300)
  })
  const sent = there.requests.map((request) => header(request, 'x-service-delivery'))
  expect(sent).toHaveLength(300)
  expect(new Set(sent)).toEqual(new Set(ids))
  const shares = await Promise.all(engines.map((one) => one.count('di_delivery_attempts_total')))
  for (const share of shares) expect(share).toBeGreaterThan(0)
})

test('deliveries of a dead process are resent after its claim, with id and bytes', async () => {
  const there = await receiver()
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const clock = createClock(Date.now())
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  const [dead] = await createDeliveryStore(atTime(postgres, clock)).claimDeliveries({
    queues: [{ tenantId, retry: false, limit: 1 }],
    claim: 'a process that died',
    claimMs: 30_000,
    takeOver: true,
  })
  const one = engine({ clock })
  clock.set(clock.nowMs() + 28_000)
  await sweepTwice(one)
  expect(there.requests).toHaveLength(0)
  clock.set(clock.nowMs() + 2_000)
  await waitForState(id!, 'delivered')
  expect(header(there.requests[0]!, 'x-service-delivery')).toBe(dead!.deliveryId)
  expect(header(there.requests[0]!, 'x-service-attempt')).toBe('1')
  expect(there.requests[0]!.body.equals(dead!.body)).toBe(true)
})

test('a hanging receiver with a backlog does not delay another tenant', async () => {
  const hanging = await receiver(silence)
  const quick = await receiver()
  const slow = await fixtures.addTenant({ url: hanging.url })
  const fine = await fixtures.addTenant({ url: quick.url })
  await fixtures.addDeliveries(slow.tenantId, 500)
  // No request to the hanging one ends within this test.
  engine({ limits: { total: 16, retries: 8, perTenant: 8 }, timeoutMs: 600_000, claimMs: 900_000 })
  await waitFor(() => expect(hanging.requests.length).toBeGreaterThan(0))
  for (let round = 0; round < 5; round++) {
    const ids = await fixtures.addDeliveries(fine.tenantId, 10)
    for (const id of ids) await waitForState(id, 'delivered')
  }
  expect(hanging.open()).toBeGreaterThan(0)
  expect(hanging.open()).toBeLessThanOrEqual(8)
  expect(hanging.requests.length).toBeLessThanOrEqual(8)
})

test('a graceful stop waits for requests, then aborts and releases hanging ones', async () => {
  const quick = await receiver((response) => setTimeout(() => response.end('ok'), 100))
  const hanging = await receiver(silence)
  const fine = await fixtures.addTenant({ url: quick.url })
  const slow = await fixtures.addTenant({ url: hanging.url })
  const one = startTestEngine(postgres, { timeoutMs: 600_000, claimMs: 900_000 })
  const [sent] = await fixtures.addDeliveries(fine.tenantId, 1)
  const [held] = await fixtures.addDeliveries(slow.tenantId, 1)
  await waitFor(() => expect([quick.requests.length, hanging.requests.length]).toEqual([1, 1]))
  await one.stop(3_000)
  expect(await fixtures.read(sent!)).toMatchObject({ state: 'delivered' })
  expect(await fixtures.read(held!)).toMatchObject({ state: 'pending', attempts: 0 })
  // Released, so another process need not wait for the claim to expire.
  hanging.setAnswer(status(200))
  engine()
  await waitForState(held!, 'delivered')
  expect(hanging.requests.map((request) => header(request, 'x-service-delivery'))).toEqual([
    held,
    held,
  ])
  expect(hanging.requests[0]!.body.equals(hanging.requests[1]!.body)).toBe(true)
})

test('an answer during an outage of Postgres is recorded, without a new request', async () => {
  const responses: (() => void)[] = []
  const there = await receiver((response) => responses.push(() => response.end('ok')))
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const clock = createClock(Date.now())
  const one = engine({ clock })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: clock.nowMs() })
  await waitFor(() => expect(responses).toHaveLength(1))
  await server.kill('SIGKILL')
  await waitFor(async () => {
    expect(await one.count('di_delivery_sweeps_total', { result: 'failed' })).toBeGreaterThan(0)
  })
  responses[0]!()
  await waitFor(async () => expect(await one.count('di_delivery_in_flight')).toBe(0))
  // The claim has expired when the database is back.
  clock.set(clock.nowMs() + 120_000)
  await server.restart()
  await waitForState(id!, 'delivered')
  await sweepTwice(one)
  expect(there.requests).toHaveLength(1)
})

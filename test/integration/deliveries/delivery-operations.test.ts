// Operators' actions on deliveries, over the admin API and the command line, with a real delivery
// engine and a real receiver: a replay sends the same delivery again, a test event differs from
// every alert, a paused webhook waits.

import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Alert, type AlertUpdate, alertSchema } from '#shared/core/alerts/alert-schema.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { listAlerts } from '#shared/io/alerts/list-alerts.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { removeDeliveries } from '#shared/io/retention/retention-store.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { verifyWebhook } from '../../../shared/client/client.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { startTestEngine, type TestEngine } from '../../support/deliveries/delivery-engine.ts'
import { testMasterKey } from '../../support/deliveries/delivery-fixtures.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { type ConsoleRig, startConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { runDi } from '../../support/process/command-line.ts'
import { until } from '../../support/process/until.ts'

const adminToken = randomBytes(32).toString('base64url')
let rig: ConsoleRig
let app: FastifyInstance
let consoleUrl: string
let receiver: Receiver
let engine: TestEngine | null = null
const hinted: string[] = []

beforeAll(async () => {
  rig = await startConsoleRig(testMasterKey)
  await ensureStreams(rig.nats)
  const deps = {
    ...rig.deps,
    adminToken,
    hintDelivery: async (hint: { tenantId: string; deliveryId: string }) => {
      await rig.deps.hintDelivery(hint)
      hinted.push(hint.tenantId)
    },
  }
  const metrics = createMetrics('console')
  const http = { log: testLog, metrics }
  app = await createConsoleApp(deps, http)
  consoleUrl = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
})
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(async () => {
  await engine?.stop(0)
  engine = null
  await receiver.close()
})

const startEngine = () => {
  engine = startTestEngine(rig.postgres)
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type Answer<T> = { status: number; body: T & { code?: string; detail?: string } }

async function call<T = Record<string, unknown>>(
  method: Method,
  path: string,
  body?: object,
): Promise<Answer<T>> {
  const answer = await app.inject({
    method,
    url: `/admin/v1/tenants${path}`,
    headers: { authorization: `Bearer ${adminToken}` },
    ...(body === undefined ? {} : { payload: body }),
  })
  return { status: answer.statusCode, body: answer.json() }
}

type Replayed = { tenant_id: string; replayed: number; data: Delivery[] }
type Page = { data: Delivery[]; next_cursor: string | null }
type AuditPage = { data: { action: string; actor: string; after: Record<string, unknown> }[] }

async function addTenant(url: string | null = receiver.url) {
  const tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const tenant = { tenant_id: tenantId, environment: 'sandbox', webhook_url: url }
  const { status, body } = await call<{ webhook_secret: string }>('POST', '', tenant)
  expect(status, JSON.stringify(body)).toBe(201)
  return { tenantId, secret: body.webhook_secret }
}

/** Raises alerts as the scorer does; returns their ids. */
async function raise(tenantId: string, count: number): Promise<string[]> {
  const candidates = Array.from({ length: count }, () =>
    makeAlertCandidate({ tenantId, sessionId: randomUUID(), action: 'BLOCK' }),
  )
  await createAlertStore(rig.postgres).raiseAlerts(candidates, Date.now)
  return candidates.map(({ alertId }) => alertId)
}

const show = async (tenantId: string, deliveryId: string) =>
  (await call<Delivery>('GET', `/${tenantId}/deliveries/${deliveryId}`)).body
const list = async (tenantId: string, query = '') =>
  (await call<Page>('GET', `/${tenantId}/deliveries?${query}`)).body
const replay = (tenantId: string, body: object) =>
  call<Replayed>('POST', `/${tenantId}/deliveries/replay`, body)
const untilState = (tenantId: string, deliveryId: string, state: string) =>
  until(`${deliveryId} is ${state}`, async () => (await show(tenantId, deliveryId)).state === state)
const audited = async (tenantId: string, action: string) =>
  (await call<AuditPage>('GET', `/${tenantId}/audit`)).body.data.filter(
    (row) => row.action === action,
  )
const row = async (deliveryId: string) => {
  const { rows } = await rig.postgres.query<{
    state: string
    attempts: number
    attempts_before_replay: number
    due_at: Date
    ended_at: Date | null
    reason: string | null
    body: Buffer
  }>('select * from deliveries where delivery_id = $1', [deliveryId])
  return rows[0]!
}

test('a replayed alert arrives with the same id and bytes, as the next attempt', async () => {
  const { tenantId, secret } = await addTenant()
  const [alertId] = await raise(tenantId, 1)
  const deliveryId = toDeliveryId(alertId!)
  startEngine()
  await untilState(tenantId, deliveryId, 'delivered')
  const { status, body } = await replay(tenantId, { alert_id: alertId })
  expect(status).toBe(200)
  expect(body).toMatchObject({ tenant_id: tenantId, replayed: 1 })
  expect(body.data).toMatchObject([{ delivery_id: deliveryId, alert_id: alertId }])
  expect(hinted).toContain(tenantId)
  await until('it arrived twice', () => receiver.requests.length === 2)
  await untilState(tenantId, deliveryId, 'delivered')
  const [once, again] = receiver.requests
  expect(again!.body.equals(once!.body)).toBe(true)
  expect(again!.headers['x-service-delivery']).toBe(deliveryId)
  expect(again!.headers['x-service-attempt']).toBe('2')
  expect(verifyDelivery(again!.body, String(again!.headers['x-service-signature']), secret)).toBe(
    true,
  )
  // The schedule restarts here: earlier attempts do not shorten it.
  expect(await row(deliveryId)).toMatchObject({ attempts: 2, attempts_before_replay: 1 })
  const shown = await show(tenantId, deliveryId)
  const sent = `/${tenantId}/deliveries/${deliveryId}/request`
  const request = (await call<{ headers: object; body: string }>('GET', sent)).body
  expect(request.body).toBe(again!.body.toString())
  expect(again!.headers).toMatchObject(request.headers)
  expect((await call('GET', `/${tenantId}/deliveries/none/request`)).status).toBe(404)
  expect(await audited(tenantId, 'delivery.request_read')).toMatchObject([
    { actor: 'admin', after: { delivery_id: deliveryId } },
  ])
  expect(shown.attempts).toMatchObject([
    { attempt: 1, status: 200, error_kind: null, answer: 'ok', address: '127.0.0.1' },
    { attempt: 2, status: 200 },
  ])
  expect(await audited(tenantId, 'deliveries.replayed')).toMatchObject([
    { actor: 'admin', after: { alert_id: alertId, delivery_id: deliveryId, replayed: 1 } },
  ])
})

test('an alert whose delivery expired is delivered again with the same id', async () => {
  const { tenantId } = await addTenant()
  const [alertId] = await raise(tenantId, 1)
  const deliveryId = toDeliveryId(alertId!)
  await rig.postgres.query('delete from deliveries where delivery_id = $1', [deliveryId])
  expect((await replay(tenantId, { alert_id: alertId })).body).toMatchObject({ replayed: 1 })
  startEngine()
  await untilState(tenantId, deliveryId, 'delivered')
  const sent = JSON.parse(receiver.requests[0]!.body.toString()) as Alert
  const listed = await listAlerts(rig.postgres, { tenantId, limit: 1, after: null })
  expect(sent).toEqual(listed.alerts[0])
})

test('a tenant that asked for it gets each change of a disposition, signed, and its replay', async () => {
  const { tenantId, secret } = await addTenant()
  const events = `/${tenantId}/webhook/events`
  const asked = await call('PUT', events, { events: ['alert.updated', 'risk.alert'] })
  expect(asked.body).toEqual({
    tenant_id: tenantId,
    webhook_url: receiver.url,
    webhook_events: ['risk.alert', 'alert.updated'],
  })
  const [alertId, erased] = (await raise(tenantId, 2)) as [string, string]
  const { setDisposition } = createAlertStore(rig.postgres)
  const change = { scope: [tenantId], note: null, actor: 'ada@example.com' } as const
  await setDisposition({ ...change, alertId, disposition: 'CONFIRMED' })
  await setDisposition({ ...change, alertId, disposition: 'FALSE_POSITIVE' })
  await setDisposition({ ...change, alertId: erased, disposition: 'CONFIRMED' })
  const device = { tenantId, kind: 'device', id: 'device-1' } as const
  const query = `alert_id=${alertId}&event=alert.updated`
  const updates = (await list(tenantId, query)).data
  expect(updates).toMatchObject([{ event: 'alert.updated' }, { event: 'alert.updated' }])
  const updateOfErased = (await list(tenantId, `alert_id=${erased}`)).data
  expect(updateOfErased).toHaveLength(2)
  await rig.postgres.query(`update alerts set device_id = 'device-2' where alert_id = $1`, [
    alertId,
  ])
  await eraseAlerts(rig.postgres, { subject: device, eventIds: [], sessionIds: [] })
  startEngine()
  for (const { delivery_id: id } of updates) await untilState(tenantId, id, 'delivered')
  await untilState(tenantId, toDeliveryId(alertId), 'delivered')
  const byEvent = (event: string) =>
    receiver.requests.filter(({ headers }) => headers['x-service-event'] === event)
  const bodyOf = ({ body }: (typeof receiver.requests)[number]) =>
    JSON.parse(body.toString()) as AlertUpdate
  const sent = byEvent('alert.updated')
  for (const { body, headers } of sent) {
    expect(verifyDelivery(body, String(headers['x-service-signature']), secret)).toBe(true)
    const id = bodyOf({ body } as never).alert_id
    expect(id).toBe(alertId)
  }
  const inOrder = sent.map(bodyOf).sort((a, b) => (a.updated_at < b.updated_at ? -1 : 1))
  expect(
    inOrder.map(({ disposition, details }) => [
      disposition,
      details.change.from,
      details.change.to,
    ]),
  ).toEqual([
    ['CONFIRMED', 'OPEN', 'CONFIRMED'],
    ['FALSE_POSITIVE', 'CONFIRMED', 'FALSE_POSITIVE'],
  ])
  expect(byEvent('risk.alert').map(bodyOf)).toMatchObject([
    { alert_id: alertId, disposition: 'OPEN' },
  ])
  const again = await replay(tenantId, { alert_id: alertId })
  expect(again.body).toMatchObject({ replayed: 3 })
  expect(again.body.data.map((one) => one.event)).toEqual([
    'risk.alert',
    'alert.updated',
    'alert.updated',
  ])
  await until('all arrived again', () => receiver.requests.length === 6)
  // Back to the default: a change is recorded and not delivered.
  await call('PUT', events, { events: ['risk.alert'] })
  await setDisposition({ ...change, alertId, disposition: 'OPEN' })
  expect((await list(tenantId, query)).data).toHaveLength(2)
  expect(await audited(tenantId, 'webhook.events_set')).toMatchObject([
    { after: { events: ['risk.alert'] } },
    { before: { events: ['risk.alert'] }, after: { events: ['risk.alert', 'alert.updated'] } },
  ])
})

/** Adds deliveries that ended long ago, all at one moment. */
async function addEnded(tenantId: string, count: number, state: string, createdAt: string) {
  await rig.postgres.query(
    `insert into deliveries (tenant_id, delivery_id, alert_id, body, state, attempts, created_at,
       ended_at, reason)
     select $1, 'dlv_' || $1 || '_' || $3 || '_' || n, 'alr_' || n, '{}', $3,
       case $3 when 'skipped' then 0 else 11 end, $4, now(),
       case $3 when 'failed' then 'exhausted' when 'skipped' then 'no_webhook' end
     from generate_series(1, $2::integer) as n`,
    [tenantId, count, state, createdAt],
  )
}

test('12,000 failed deliveries are replayed by one call, each once', async () => {
  const { tenantId } = await addTenant()
  await addEnded(tenantId, 11_990, 'failed', '2026-01-01T00:00:00.000001Z')
  await addEnded(tenantId, 10, 'skipped', '2026-01-02T00:00:00Z')
  await addEnded(tenantId, 5, 'delivered', '2026-01-03T00:00:00Z')
  const { status, body } = await replay(tenantId, { failed: true })
  expect(status).toBe(200)
  expect(body.replayed).toBe(12_000)
  expect(body.data).toHaveLength(50)
  const { rows } = await rig.postgres.query(
    `select state, attempts, attempts_before_replay, count(*) as n,
       bool_and(due_at <= now() and reason is null and ended_at is null) as due
     from deliveries where tenant_id = $1 group by 1, 2, 3 order by 1, 2`,
    [tenantId],
  )
  expect(rows).toEqual([
    { state: 'delivered', attempts: 11, attempts_before_replay: 0, n: 5, due: false },
    { state: 'pending', attempts: 0, attempts_before_replay: 0, n: 10, due: true },
    { state: 'pending', attempts: 11, attempts_before_replay: 11, n: 11_990, due: true },
  ])
  const parts = await audited(tenantId, 'deliveries.replayed')
  expect(parts.map(({ after }) => [after.part, after.replayed])).toEqual([
    [3, 2_000],
    [2, 5_000],
    [1, 5_000],
  ])
  expect((await replay(tenantId, { failed: true })).body).toEqual({
    tenant_id: tenantId,
    replayed: 0,
    data: [],
  })
  await rig.postgres.query('delete from deliveries where tenant_id = $1', [tenantId])
})

test('a replay since a time includes every state, except deliveries in flight', async () => {
  const { tenantId } = await addTenant()
  await addEnded(tenantId, 2, 'delivered', '2026-01-01T00:00:00Z')
  await addEnded(tenantId, 1, 'failed', '2025-12-31T23:59:59.999Z')
  const [waiting, sending] = (await raise(tenantId, 2)).map(toDeliveryId)
  const later = new Date(Date.now() + 3_600_000)
  await rig.postgres.query('update deliveries set due_at = $2 where delivery_id = $1', [
    ...[waiting, later],
  ])
  await rig.postgres.query(`update deliveries set claimed_by = 'x' where delivery_id = $1`, [
    sending,
  ])
  await call('POST', `/${tenantId}/deliveries/test`)
  const since = '2026-01-01T00:00:00Z'
  const count = async (query: string) =>
    (await call<{ count: number }>('GET', `/${tenantId}/deliveries/replay-count?${query}`)).body
  expect(await count(`since=${since}`)).toEqual({ tenant_id: tenantId, count: 3 })
  expect(await count('failed=true')).toEqual({ tenant_id: tenantId, count: 1 })
  expect(await count(`failed=true&since=${since}`)).toEqual({ tenant_id: tenantId, count: 0 })
  const { body } = await replay(tenantId, { since })
  expect(body.replayed).toBe(3)
  expect(body.data.map((one) => one.delivery_id)).not.toContain(sending)
  expect((await row(waiting!)).due_at.getTime()).toBeLessThan(later.getTime())
  expect(await show(tenantId, sending!)).toMatchObject({ state: 'sending' })
  expect((await list(tenantId, 'state=sending')).data).toHaveLength(1)
  const failed = { failed: true, since: '2026-01-01' }
  expect((await replay(tenantId, failed)).body.replayed).toBe(0)
  expect((await replay(tenantId, { failed: true })).body.replayed).toBe(1)
})

test('a list continues exactly where a page ended, also within one moment', async () => {
  const { tenantId } = await addTenant()
  const other = await addTenant()
  await addEnded(tenantId, 7, 'failed', '2026-01-01T00:00:00.000001Z')
  await addEnded(tenantId, 1, 'delivered', '2026-01-01T00:00:00.000002Z')
  const [alertId] = await raise(tenantId, 1)
  const seen: string[] = []
  for (let after = ''; ; ) {
    const page = await list(tenantId, `limit=3${after}`)
    seen.push(...page.data.map((one) => one.delivery_id))
    if (page.next_cursor === null) break
    after = `&cursor=${page.next_cursor}`
  }
  expect(seen).toHaveLength(9)
  expect(new Set(seen).size).toBe(9)
  expect(seen[0]).toBe(toDeliveryId(alertId!))
  const failed = await list(tenantId, 'state=failed&limit=6')
  expect((await list(tenantId, `state=failed&cursor=${failed.next_cursor}`)).data).toHaveLength(1)
  const ofAlert = await list(tenantId, `alert_id=${alertId}`)
  expect(ofAlert).toMatchObject({ data: [{ alert_id: alertId }], next_cursor: null })
  expect((await list(other.tenantId, `alert_id=${alertId}`)).data).toEqual([])
  for (const [of, query] of [
    [tenantId, `cursor=${failed.next_cursor}`],
    [other.tenantId, `state=failed&cursor=${failed.next_cursor}`],
    [tenantId, 'cursor=nonsense'],
  ]) {
    const { status, body } = await call('GET', `/${of}/deliveries?${query}`)
    expect([status, body.code]).toEqual([400, 'invalid_query'])
  }
})

test('a test event verifies, is marked as a test, goes first, and is not an alert', async () => {
  const { tenantId, secret } = await addTenant()
  const alerts = (await raise(tenantId, 3)).map(toDeliveryId)
  const totals = async () => {
    const { rows } = await rig.postgres.query(
      `select (select sum(alert_count) from alert_counts_by_day where tenant_id = $1) as counted,
         (select last_seq from alert_sequences where tenant_id = $1) as seq,
         (select count(*) from alerts where tenant_id = $1) as alerts`,
      [tenantId],
    )
    return rows[0]
  }
  const before = await totals()
  const { status, body: made } = await call<Delivery>('POST', `/${tenantId}/deliveries/test`)
  expect(status).toBe(201)
  expect(made).toMatchObject({ alert_id: null, event: 'webhook.test', state: 'pending' })
  expect(made.delivery_id).toMatch(/^dlv_[\w-]{26}$/)
  const due = await Promise.all(alerts.map(async (id) => (await row(id)).due_at.getTime()))
  expect(Date.parse(made.due_at!)).toBeLessThan(Math.min(...due))
  startEngine()
  await untilState(tenantId, made.delivery_id, 'delivered')
  const isTest = ({ headers }: { headers: object }) =>
    (headers as Record<string, string>)['x-service-event'] === 'webhook.test'
  const got = receiver.requests.find(isTest)!
  expect(got.headers['x-service-delivery']).toBe(made.delivery_id)
  expect(verifyDelivery(got.body, String(got.headers['x-service-signature']), secret)).toBe(true)
  const event = JSON.parse(got.body.toString())
  expect(event).toMatchObject({ test: true, alert_id: expect.stringMatching(/^alr_test_/) })
  expect(alertSchema.safeParse(event).error).toBeUndefined()
  expect(await totals()).toEqual(before)
  expect(await audited(tenantId, 'webhook.tested')).toMatchObject([
    { after: { delivery_id: made.delivery_id } },
  ])
  // Retention removes it like any other.
  const cutoffMs = Date.now() + 60_000
  await until('all ended', async () => (await list(tenantId, 'state=delivered')).data.length === 4)
  expect(await removeDeliveries(rig.postgres, { tenantId, cutoffMs }, 100)).toMatchObject({
    alerts: 0,
    deliveries: 4,
    attempts: 4,
  })
})

test('a paused webhook keeps its deliveries until it is resumed', async () => {
  const { tenantId } = await addTenant()
  const paused = await call('POST', `/${tenantId}/webhook/pause`)
  const set = { tenant_id: tenantId, webhook_url: receiver.url }
  expect(paused).toEqual({ status: 200, body: { ...set, webhook_state: 'paused' } })
  expect((await call('POST', `/${tenantId}/webhook/pause`)).status).toBe(200)
  const [alertId] = await raise(tenantId, 1)
  startEngine()
  const sweeps = await engine!.sweeps()
  await until('it swept on', async () => (await engine!.sweeps()) > sweeps + 3)
  expect(await show(tenantId, toDeliveryId(alertId!))).toMatchObject({
    state: 'pending',
    attempts: [],
  })
  const resumed = await call('POST', `/${tenantId}/webhook/resume`)
  expect(resumed).toEqual({ status: 200, body: { ...set, webhook_state: 'on' } })
  await untilState(tenantId, toDeliveryId(alertId!), 'delivered')
  expect(await audited(tenantId, 'webhook.paused')).toHaveLength(1)
  expect(await audited(tenantId, 'webhook.resumed')).toHaveLength(1)
})

test('a webhook secret is rotated without one refusal: pause, rotate, both secrets, resume', async () => {
  const { tenantId, secret } = await addTenant()
  let accepted = [secret]
  const refused: string[] = []
  receiver.setAnswer((response, { body, headers }) => {
    try {
      verifyWebhook(body, headers, accepted)
      response.writeHead(204).end()
    } catch (error) {
      refused.push(String(error))
      response.writeHead(401).end()
    }
  })
  startEngine()
  const raised: string[] = []
  let goesOn = true
  const load = (async () => {
    while (goesOn) raised.push(...(await raise(tenantId, 1)))
  })()
  const untilRaised = (count: number) => until('it goes on', () => raised.length >= count)
  await untilRaised(20)

  expect((await call('POST', `/${tenantId}/webhook/pause`)).status).toBe(200)
  await untilRaised(raised.length + 20)
  const rotated = await call<{ webhook_secret: string }>('POST', `/${tenantId}/rotate`, {
    webhook: true,
  })
  expect(rotated.status).toBe(200)
  accepted = [rotated.body.webhook_secret, secret]
  await untilRaised(raised.length + 20)
  expect((await call('POST', `/${tenantId}/webhook/resume`)).status).toBe(200)

  goesOn = false
  await load
  const ids = raised.map((alertId) => toDeliveryId(alertId))
  for (const id of ids) await untilState(tenantId, id, 'delivered')
  expect(refused).toEqual([])
  const received = receiver.requests.map(({ headers }) => headers['x-service-delivery'])
  expect(received.sort()).toEqual(ids.sort())
  // Those that waited were signed with the new secret alone.
  const last = receiver.requests.at(-1)!
  expect(() => verifyWebhook(last.body, last.headers, secret)).toThrow(/signature/)
})

const failing = `failing_since = now() - interval '1 hour', failed_attempts = 37,
  last_failure = 'timeout', circuit_open_until = now() + interval '1 hour', failed_probes = 3`
const setHealth = (tenantId: string, more = '') =>
  rig.postgres.query(`update webhooks set ${failing}${more} where tenant_id = $1`, [tenantId])
type Shown = { webhook_state: string; webhook_health: { held_until: string } | null }
const tenantOf = async (tenantId: string) => (await call<Shown>('GET', `/${tenantId}`)).body

test('the failures of a webhook are shown, and reset when it is set or resumed', async () => {
  const { tenantId } = await addTenant()
  expect((await tenantOf(tenantId)).webhook_health).toBeNull()
  const anew: (() => Promise<Answer<unknown>>)[] = [
    () => call('POST', `/${tenantId}/webhook/resume`),
    () => call('PUT', `/${tenantId}/webhook`, { url: receiver.url }),
    () => call('DELETE', `/${tenantId}/webhook`),
  ]
  for (const act of anew) {
    await setHealth(tenantId)
    expect((await tenantOf(tenantId)).webhook_health).toEqual({
      failing_since: expect.stringMatching(/Z$/),
      failed_attempts: 37,
      last_failure: 'timeout',
      failed_probes: 3,
      held_until: expect.stringMatching(/Z$/),
    })
    expect((await act()).status).toBe(200)
    expect((await tenantOf(tenantId)).webhook_health).toBeNull()
  }
})

test('a webhook that was switched off as failing or gone is resumed with its URL', async () => {
  const { tenantId } = await addTenant()
  for (const reason of ['failing', 'gone']) {
    await setHealth(tenantId, `, state = 'off', off_reason = '${reason}'`)
    const refused = await replay(tenantId, { failed: true })
    expect([refused.status, refused.body.code]).toEqual([409, 'webhook_not_on'])
    expect(refused.body.detail).toContain(`is off (${reason})`)
    expect((await call('POST', `/${tenantId}/webhook/resume`)).status).toBe(200)
    expect(await tenantOf(tenantId)).toMatchObject({
      webhook_state: 'on',
      webhook_off_reason: null,
      webhook_health: null,
    })
  }
})

test('with an open circuit a replay and a test only advance the next probe', async () => {
  const { tenantId } = await addTenant()
  const [alertId] = await raise(tenantId, 1)
  for (const act of [
    () => replay(tenantId, { alert_id: alertId }),
    () => replay(tenantId, { since: '2026-01-01' }),
    () => call('POST', `/${tenantId}/deliveries/test`),
  ]) {
    await setHealth(tenantId)
    expect((await act()).status).toBeLessThan(300)
    const { webhook_health: health } = await tenantOf(tenantId)
    expect(health).toMatchObject({ failed_attempts: 37, failed_probes: 3 })
    expect(Date.parse(health!.held_until)).toBeLessThanOrEqual(Date.now())
  }
})

test('an impossible action is rejected with its code and changes nothing', async () => {
  const { tenantId } = await addTenant()
  const off = await addTenant(null)
  const paused = await addTenant()
  await call('POST', `/${paused.tenantId}/webhook/pause`)
  const [alertId] = await raise(tenantId, 1)
  const deliveryId = toDeliveryId(alertId!)
  const cases: [Method, string, object | undefined, number, string][] = [
    ['POST', `/${off.tenantId}/deliveries/replay`, { alert_id: 'alr_x' }, 409, 'webhook_not_on'],
    ['POST', `/${off.tenantId}/deliveries/test`, undefined, 409, 'webhook_not_on'],
    ['POST', `/${off.tenantId}/webhook/pause`, undefined, 409, 'webhook_not_on'],
    ['POST', `/${off.tenantId}/webhook/resume`, undefined, 409, 'webhook_has_no_url'],
    ['POST', `/${paused.tenantId}/deliveries/replay`, { failed: true }, 409, 'webhook_not_on'],
    ['POST', `/${paused.tenantId}/deliveries/test`, undefined, 409, 'webhook_not_on'],
    ['POST', `/${tenantId}/deliveries/replay`, { alert_id: 'alr_x' }, 404, 'alert_not_found'],
    ['POST', `/${tenantId}/deliveries/replay`, { alert_id: '\0' }, 404, 'alert_not_found'],
    ['GET', `/${tenantId}/deliveries/dlv_x`, undefined, 404, 'delivery_not_found'],
    // Another tenant's delivery gets the same answer as an unknown one.
    ['GET', `/${off.tenantId}/deliveries/${deliveryId}`, undefined, 404, 'delivery_not_found'],
    ['GET', '/nobody/deliveries/dlv_x', undefined, 404, 'tenant_not_found'],
    ['POST', '/nobody/deliveries/replay', { failed: true }, 404, 'tenant_not_found'],
    ['POST', '/nobody/deliveries/test', undefined, 404, 'tenant_not_found'],
    ['POST', '/nobody/webhook/pause', undefined, 404, 'tenant_not_found'],
    ['POST', '/nobody/webhook/resume', undefined, 404, 'tenant_not_found'],
    ['POST', `/${tenantId}/deliveries/replay`, {}, 400, 'invalid_body'],
    ['POST', `/${tenantId}/deliveries/replay`, { failed: false }, 400, 'invalid_body'],
    ['POST', `/${tenantId}/deliveries/replay`, { since: 'monday' }, 400, 'invalid_body'],
    ['POST', `/${tenantId}/deliveries/replay`, { all: true }, 400, 'invalid_body'],
    [
      ...(['POST', `/${tenantId}/deliveries/replay`] as const),
      { alert_id: alertId, failed: true },
      ...([400, 'invalid_body'] as const),
    ],
  ]
  for (const [method, path, body, status, code] of cases) {
    const answer = await call(method, path, body)
    expect([answer.status, answer.body.code], path).toEqual([status, code])
  }
  const theirs = await addTenant()
  const unknown = await replay(theirs.tenantId, { alert_id: alertId })
  expect([unknown.status, unknown.body.code]).toEqual([404, 'alert_not_found'])
  expect(await show(tenantId, deliveryId)).toMatchObject({ state: 'pending', attempts: [] })
  const all = await Promise.all(
    [off, paused, theirs].map((of) => audited(of.tenantId, 'deliveries.replayed')),
  )
  expect(all.flat()).toEqual([])
})

const di = (...args: string[]) => runDi(args, { CONSOLE_URL: consoleUrl, ADMIN_TOKEN: adminToken })

async function diJson<T>(...args: string[]): Promise<T> {
  const { status, stdout, stderr } = await di(...args, '--json')
  expect({ status, stderr }, args.join(' ')).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

test('the command line lists, shows, replays and tests, as JSON and as text', async () => {
  const { tenantId } = await addTenant()
  const [alertId] = await raise(tenantId, 1)
  const deliveryId = toDeliveryId(alertId!)
  startEngine()
  await untilState(tenantId, deliveryId, 'delivered')
  const replayed = await diJson<Replayed>('deliveries', 'replay', tenantId, '--alert', alertId!)
  expect(replayed).toMatchObject({ tenant_id: tenantId, replayed: 1 })
  expect(replayed.data[0]!.attempts[0]).toMatchObject({ attempt: 1, status: 200 })
  await until('it arrived twice', () => receiver.requests.length === 2)
  await untilState(tenantId, deliveryId, 'delivered')
  const [listed, shown, tested, since] = await Promise.all([
    diJson<Page>('deliveries', 'list', tenantId, '--alert', alertId!, '--state', 'delivered'),
    di('deliveries', 'show', tenantId, deliveryId),
    diJson<{ tenant_id: string; data: Delivery[] }>('deliveries', 'test', tenantId),
    di('deliveries', 'replay', tenantId, '--failed', '--since', '2026-01-01'),
  ])
  expect(listed).toMatchObject({ data: [{ delivery_id: deliveryId }], next_cursor: null })
  expect(shown.stdout).toMatch(/^2 +.*Z +\d+ ms +200 +- +127\.0\.0\.1$/m)
  expect(shown.stdout).toContain('Answer to attempt 1:\nok')
  expect(tested).toMatchObject({
    tenant_id: tenantId,
    data: [{ event: 'webhook.test', state: 'delivered', attempts: [{ status: 200 }] }],
  })
  expect(since.stdout).toBe('There is nothing to send again.\n')
  receiver.setAnswer((response) => response.writeHead(500).end('broken'))
  const failed = await di('deliveries', 'test', tenantId, '--json')
  expect(failed.status).toBe(1)
  expect(failed.stderr).toBe('The test event was not delivered: the answer was 500.\n')
  expect(JSON.parse(failed.stdout)).toMatchObject({ data: [{ attempts: [{ status: 500 }] }] })
})

test('the command line pauses, resumes, and describes the state of a webhook', async () => {
  const { tenantId } = await addTenant()
  const webhook = ['tenants', 'webhook', tenantId]
  const set = { tenant_id: tenantId, webhook_url: receiver.url }
  expect(await diJson(...webhook, '--pause')).toEqual({ ...set, webhook_state: 'paused' })
  expect(await diJson(...webhook, '--resume')).toEqual({ ...set, webhook_state: 'on' })
  const both = ['risk.alert', 'alert.updated']
  const asked = await diJson(...webhook, '--events', 'risk.alert, alert.updated')
  expect(asked).toEqual({ ...set, webhook_events: both })
  expect((await di('tenants', 'show', tenantId)).stdout).toMatch(
    /^webhook_events +risk.alert, alert.updated$/m,
  )
  for (const wrong of ['alert.updated', 'risk.alert,alert.created', '']) {
    const refused = await di(...webhook, '--events', wrong)
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/must (have|be)/)])
  }
  await setHealth(tenantId)
  expect((await di('tenants', 'show', tenantId)).stdout).toMatch(
    /^webhook +on, failing since 2.*Z \(37 attempts, last: timeout\); deliveries are held, next probe 2.*Z$/m,
  )
  await setHealth(tenantId, ", state = 'off', off_reason = 'failing'")
  expect((await di('tenants', 'show', tenantId)).stdout).toMatch(
    /^webhook +off since 2.*Z \(failing: no attempt succeeded for five days since 2.*Z\)$/m,
  )
  const refused = await di('deliveries', 'test', tenantId)
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(refused.stderr).toContain('is off (failing). Set its URL or resume it first.')
  const unclear = await di('deliveries', 'replay', tenantId)
  expect(unclear.stderr).toBe('Give one of --alert ID, --since TIME, --failed, or the last two.\n')
})

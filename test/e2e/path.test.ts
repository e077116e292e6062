/**
 * The whole path on a real stack: signed telemetry in; score, device history, alert and a verified
 * webhook out; then the same again on the same data after an orderly stop and after a kill of all
 * processes.
 */
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endClaims } from '../faults/support/stack-under-load/read-back.ts'
import { migrateFurther } from '../releases/later-schema.ts'
import { type Receiver, startReceiver } from '../support/deliveries/receiver.ts'
import {
  type ApiDevice,
  admin,
  createTenant,
  ingest,
  read,
  readAlerts,
  type Tenant,
  toBody,
} from '../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../support/process/stack.ts'
import { until } from '../support/process/until.ts'
import { type CollectedSpan, type Collector, startCollector } from '../support/tracing/collector.ts'

let running: TestStack
let collector: Collector
let receiver: Receiver
let acme: Tenant
let globex: Tenant

const frida = { debugger: { frida_detected: true } }

beforeAll(async () => {
  receiver = await startReceiver()
  collector = await startCollector()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '1' }
  running = await startStack({ env })
  await migrateFurther(running.stack)
  acme = await createTenant(running.stack, 'acme', receiver.url)
  globex = await createTenant(running.stack, 'globex')
})

afterAll(async () => {
  await running?.discard()
  await receiver?.close()
  collector?.close()
})

const device = (tenant: Tenant, id: string) =>
  read<ApiDevice>(running.stack, tenant.public_api_key, `/v1/di/devices/${encodeURIComponent(id)}`)

/** Waits until a device has the expected number of sessions. */
const seenDevice = (tenant: Tenant, id: string, sessions: number) =>
  until(`device ${id} with ${sessions} sessions`, async () => {
    const answer = await device(tenant, id)
    return answer.status === 200 && answer.body.sessions_total >= sessions ? answer.body : null
  })

const deliveriesOf = (alertId: string) =>
  receiver.requests.filter(({ body }) => body.toString().includes(`"${alertId}"`))

describe('the schema of a later release', () => {
  it('leaves every process ready', async () => {
    const answers = await Promise.all(
      Object.entries(running.stack.internal).map(async ([name, url]) => {
        const { status } = await fetch(`${url}/readyz`)
        return `${name} ${status}`
      }),
    )
    expect(answers).toContain('scorer 200')
    expect(answers.filter((answer) => !answer.endsWith(' 200'))).toEqual([])
  })
})

describe('the path of one event', () => {
  it('returns the score, stores the history, raises one alert and delivers it signed', async () => {
    const body = toBody('acme', {
      device: 'phone/1 ü',
      session: 's-1',
      user: 'ada',
      signals: frida,
    })
    const answer = await ingest(running.stack, acme.hmac_secret, body)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ status: 'accepted', rasp_score: 80, rasp_action: 'BLOCK' })

    const history = await seenDevice(acme, 'phone/1 ü', 1)
    expect(history).toMatchObject({
      device_id: 'phone/1 ü',
      peak_rasp_score: 80,
      users_seen_on: ['ada'],
      sessions: [{ session_id: 's-1', rasp_action: 'BLOCK' }],
    })

    const alert = await until('the alert', async () => {
      const { alerts } = await readAlerts(running.stack, acme.public_api_key)
      return alerts.find(({ entity }) => entity.device.device_id === 'phone/1 ü')
    })
    expect(alert).toMatchObject({
      seq: 1,
      // The client reported 0 for a device that scores 80.
      decision: { action: 'BLOCK', severity: 'CRITICAL', risk_score: 84 },
      flags: ['HOOKING_DETECTED', 'SCORE_MISMATCH'],
      disposition: 'OPEN',
    })

    const delivery = await until('the webhook', () => deliveriesOf(alert.alert_id)[0])
    expect(JSON.parse(delivery.body.toString())).toEqual(alert)
    const expected = createHmac('sha256', acme.webhook_secret)
      .update(delivery.body)
      .digest('base64')
    expect(delivery.headers['x-service-signature']).toBe(expected)
    expect(delivery.headers['x-service-event']).toBe('risk.alert')
    const standard = new Webhook(acme.webhook_secret)
    expect(
      standard.verify(delivery.body.toString(), delivery.headers as Record<string, string>),
    ).toEqual(alert)
  })

  it('accepts the same bytes again without a second session, alert or webhook', async () => {
    const body = toBody('acme', { device: 'retry', session: 's-1', signals: frida })
    const answers = []
    for (let n = 0; n < 5; n++) answers.push(await ingest(running.stack, acme.hmac_secret, body))
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    // A later event of the same device proves that the earlier ones have been stored.
    const later = toBody('acme', { device: 'retry', session: 's-2' })
    await ingest(running.stack, acme.hmac_secret, later)
    const history = await seenDevice(acme, 'retry', 2)
    expect(history.sessions_total).toBe(2)
    const own = await until('the alert', async () => {
      const { alerts } = await readAlerts(running.stack, acme.public_api_key)
      const found = alerts.filter(({ entity }) => entity.device.device_id === 'retry')
      return found.length > 0 ? found : null
    })
    expect(own).toHaveLength(1)
    await until('the webhook', () => deliveriesOf(own[0]!.alert_id).length > 0)
    expect(deliveriesOf(own[0]!.alert_id)).toHaveLength(1)
  })

  it('has one trace, from the edge to the receiver', async () => {
    const client = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
    const traceparent = `00-${client.traceId}-${client.spanId}-01`
    const facts = { device: 'traced-device', session: 'traced-session', user: 'traced-user' }
    const body = toBody('acme', { ...facts, signals: frida })
    const answer = await ingest(running.stack, acme.hmac_secret, body, { traceparent })
    const { event_id: eventId } = answer.body as { event_id: string }
    // Without a valid signature the header is not read, and nothing is traced.
    const forged = { traceparent: traceparent.replaceAll('a', 'c') }
    expect((await ingest(running.stack, 'x'.repeat(43), body, forged)).status).toBe(401)
    const delivery = await until('the webhook', () =>
      receiver.requests.find(({ body }) => body.includes('"traced-device"')),
    )
    await read(running.stack, acme.public_api_key, `/v1/di/events/${eventId}`)
    const isOfEvent = (one: CollectedSpan) => one.attributes['di.event_id'] === eventId
    const find = (name: string, isIt: (one: CollectedSpan) => boolean) =>
      until(`the span: ${name}`, () =>
        collector.spans.find((one) => one.name === name && isIt(one)),
      )
    const first = await find('ingest telemetry', isOfEvent)
    expect(first).toMatchObject({ service: 'ingest', links: [client] })
    expect(first.traceId).not.toBe(client.traceId)
    const childOf = (parent: CollectedSpan) => (one: CollectedSpan) =>
      one.traceId === parent.traceId && one.parentSpanId === parent.spanId
    const publish = await find('publish telemetry', childOf(first))
    const store = await find('store telemetry', childOf(publish))
    const decide = await find('decide telemetry', childOf(publish))
    const deliver = await find('deliver webhook', childOf(decide))
    expect([publish, store, decide, deliver].map(({ service }) => service)).toEqual([
      ...['ingest', 'scorer', 'scorer', 'delivery'],
    ])
    expect(deliver.attributes['http.response.status_code']).toBe(200)
    expect(delivery.headers.traceparent).toBe(`00-${deliver.traceId}-${deliver.spanId}-01`)
    const call = await find('GET /v1/di/events/:event_id', () => true)
    expect(call).toMatchObject({ service: 'api', attributes: { 'di.tenant_id': 'acme' } })
    const secrets = [acme.hmac_secret, acme.public_api_key, acme.webhook_secret]
    for (const absent of ['cccccccc', ...Object.values(facts), ...secrets]) {
      expect(collector.received()).not.toContain(absent)
    }
    // From here on nothing takes the spans of the stack.
    collector.hang()
  })

  it('flags velocity and many users with their evidence', async () => {
    // A proxy and a remote session: 40 points, so that every session raises an alert.
    const signals = {
      network: { proxy_configured: true },
      ecosystem: { remote_control_active: true },
    }
    for (let n = 0; n < 22; n++) {
      const body = toBody('globex', {
        device: 'bot',
        session: `s-${n}`,
        user: `u-${n % 5}`,
        signals,
      })
      expect((await ingest(running.stack, globex.hmac_secret, body)).status).toBe(200)
    }
    const alerts = await until('an alert of each session', async () => {
      const all = (await readAlerts(running.stack, globex.public_api_key)).alerts
      return all.length >= 22 ? all : null
    })
    const last = alerts.find(({ entity }) => entity.session.session_id === 's-21')!
    expect(last.flags).toContain('HIGH_VELOCITY')
    expect(last.flags).toContain('MANY_USERS_PER_DEVICE')
    const velocity = last.reasons.find(({ code }) => code === 'HIGH_VELOCITY')!
    expect(velocity.evidence).toMatchObject({
      metric: 'sessions_per_device',
      count: 22,
      threshold: 20,
      window: '5m',
    })
    const sum = last.reasons.reduce((total, { weight }) => total + weight, 0)
    expect(sum).toBe(last.decision.risk_score)
    const first = alerts.find(({ entity }) => entity.session.session_id === 's-0')!
    expect(first.flags).not.toContain('HIGH_VELOCITY')
    expect(alerts.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 22 }, (_, index) => index + 1),
    )
  })

  it.each([
    ['test-allow', 'ALLOW'],
    ['test-review', 'REVIEW'],
    ['test-block', 'BLOCK'],
  ])('forces the action of the sandbox device %s', async (id, action) => {
    const body = toBody('acme', { device: id, session: 'rehearsal' })
    const answer = await ingest(running.stack, acme.hmac_secret, body)
    expect(answer.body.rasp_action).toBe(action)
  })
})

describe('two tenants', () => {
  it('do not see each other’s data, even with the same ids', async () => {
    for (const [tenant, user] of [
      [acme, 'alice'],
      [globex, 'bob'],
    ] as const) {
      const body = toBody(tenant.tenant_id, { device: 'shared', session: 'shared', user })
      expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
    }
    expect((await seenDevice(acme, 'shared', 1)).users_seen_on).toEqual(['alice'])
    expect((await seenDevice(globex, 'shared', 1)).users_seen_on).toEqual(['bob'])
    const foreign = await device(globex, 'phone/1 ü')
    const unknown = await device(globex, 'no such device')
    expect(foreign.status).toBe(404)
    expect({ ...foreign.body, request_id: '' }).toEqual({ ...unknown.body, request_id: '' })
  })

  it('cannot sign for each other', async () => {
    const body = toBody('acme', { device: 'stolen' })
    const answer = await ingest(running.stack, globex.hmac_secret, body)
    expect(answer.status).toBe(401)
    expect(answer.body.code).toBe('signature_invalid')
  })
})

describe('rotation and suspension', () => {
  it('revokes the old secret before it returns and accepts the new one at once', async () => {
    const tenant = await createTenant(running.stack, 'rotating')
    const body = toBody('rotating')
    expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
    const rotated = await admin<{ hmac_secret: string }>(
      running.stack,
      'POST',
      '/tenants/rotating/rotate',
      { hmac: true },
    )
    expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(401)
    expect((await ingest(running.stack, rotated.hmac_secret, body)).status).toBe(200)
    await admin(running.stack, 'POST', '/tenants/rotating/suspend')
    expect((await ingest(running.stack, rotated.hmac_secret, body)).status).toBe(401)
    expect((await read(running.stack, tenant.public_api_key, '/v1/di/alerts')).status).toBe(401)
    await admin(running.stack, 'POST', '/tenants/rotating/resume')
    expect((await ingest(running.stack, rotated.hmac_secret, body)).status).toBe(200)
  })
})

describe('the output of npm start', () => {
  it('has a curl line that works when pasted', () => {
    const line = running.output().match(/^.*openssl dgst[\s\S]*?(?:\n\s*\n|$)/m)?.[0] ?? ''
    const printed = execFileSync('bash', ['-c', line.replace(/^ {2}\$ ?/gm, '')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    expect(printed).toContain('"status":"accepted"')
  })
})

describe('the same data after a restart', () => {
  const remember = async () => ({
    acme: await readAlerts(running.stack, acme.public_api_key),
    globex: await readAlerts(running.stack, globex.public_api_key),
    phone: (await device(acme, 'phone/1 ü')).body,
    bot: (await device(globex, 'bot')).body,
  })

  it.each([
    ['an orderly stop', () => running.stop()],
    ['kill -9 of every process at once', () => running.kill9All()],
  ])('is complete after %s, and usable', async (_name, end) => {
    const before = await remember()
    const { dataDir, portBase } = running
    await end()
    running = await startStack({ dataDir, portBase })
    expect(await remember()).toEqual(before)
    const id = `after-${before.acme.total}`
    const body = toBody('acme', { device: id, session: 's-1', signals: frida })
    expect((await ingest(running.stack, acme.hmac_secret, body)).status).toBe(200)
    const after = await until('the next alert', async () => {
      const now = await readAlerts(running.stack, acme.public_api_key)
      return now.total > before.acme.total ? now : null
    })
    expect(after.alerts[0]!.seq).toBe(before.acme.alerts[0]!.seq + 1)
  })

  it('has every accepted event after a kill of all processes during a run', async () => {
    const accepted: string[] = []
    const { dataDir, portBase, stack } = running
    let stop = false
    const post = async (worker: number) => {
      for (let n = 0; !stop; n++) {
        const id = `crash-${worker}-${n}`
        const body = toBody('acme', { device: id, session: 's', signals: n % 5 === 0 ? frida : {} })
        const answer = await ingest(stack, acme.hmac_secret, body).catch(() => null)
        if (answer === null) return
        if (answer.status === 200) accepted.push(id)
      }
    }
    const workers = [0, 1, 2, 3].map(post)
    await until('a run in full swing', () => accepted.length > 200)
    await running.kill9All()
    stop = true
    await Promise.all(workers)
    running = await startStack({ dataDir, portBase })
    const frozen = [...accepted]
    const last = toBody('acme', { device: 'after-the-crash', session: 's', signals: frida })
    await until('intake', async () => {
      const answer = await ingest(running.stack, acme.hmac_secret, last)
      return answer.status === 200
    })
    await seenDevice(acme, 'after-the-crash', 1)
    // The killed scorer's messages are redelivered after the ack wait.
    let missing = frozen
    await until('every accepted event', async () => {
      const still: string[] = []
      for (const id of missing) if ((await device(acme, id)).status !== 200) still.push(id)
      missing = still
      return missing.length === 0
    })
    const due = frozen.filter((id) => Number(id.split('-')[2]) % 5 === 0)
    const alerts = await until('the alerts', async () => {
      const { alerts: all } = await readAlerts(running.stack, acme.public_api_key)
      const raised = new Set(all.map(({ entity }) => entity.device.device_id))
      return due.every((id) => raised.has(id)) ? all : null
    })
    expect(alerts.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(
      alerts.map((_, index) => index + 1),
    )
    const perDevice = new Map<string, number>()
    for (const { entity } of alerts) {
      const id = entity.device.device_id
      if (id.startsWith('crash-')) perDevice.set(id, (perDevice.get(id) ?? 0) + 1)
    }
    expect([...perDevice.values()].filter((n) => n > 1)).toEqual([])
    // The killed delivery process' claims expire after half a minute; this ends them at once.
    await endClaims(running.stack)
    await until('every webhook', () =>
      alerts.every(({ alert_id }) => deliveriesOf(alert_id).length > 0),
    )
  })
})

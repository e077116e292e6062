/**
 * Ingest over HTTP on a real nats-server: every check of the contract in order, the content of each
 * answer and of the stream.
 */
import { createHash, createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashIdentifier } from '#shared/core/identity/sent-identifiers.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { describeRefusedRequest } from '#shared/core/telemetry/signature-form.ts'
import { addressKeyBytes } from '#shared/core/tenants/client-address.ts'
import { refusals } from '../../../services/ingest/refusals.ts'
import { sendTelemetry } from '../../../shared/client/client.ts'
import type { Telemetry } from '../../../shared/client/telemetry.ts'
import { toEventId } from '../../../shared/core/base/ids.ts'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import { until } from '../../support/process/until.ts'
import {
  type Answer,
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
  telemetryOf,
} from '../../support/telemetry/edge-rig.ts'
import { readMessages } from '../../support/telemetry/read-stream.ts'

let rig: EdgeRig
let edge: TestEdge
let acme: TestTenant

beforeAll(async () => {
  rig = await startEdgeRig()
  const addressKey = Buffer.alloc(addressKeyBytes, 7).toString('base64')
  acme = await rig.projectTenant('acme', {
    epoch: 3,
    policy_version: 2,
    address_key_sealed: rig.sealer.seal(addressKey, { tenantId: 'acme', kind: 'address' }),
  })
  edge = await rig.startEdge()
})

afterAll(() => rig.stop())

const sendAs = (tenant: TestTenant, body: string | Uint8Array, headers = {}) =>
  send(edge, body, { secret: tenant.secret, headers })

/** The stored events of one body, by its event id. */
async function storedOf(body: string | Uint8Array) {
  const id = toEventId(Buffer.from(body))
  return (await rig.readStored()).filter(({ event_id: eventId }) => eventId === id)
}

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
  expect(answer.headers.get('x-request-id')).toBe(answer.body.request_id)
  expect(answer.body).toMatchObject({ status, code })
}

describe('an accepted submission', () => {
  it('is answered with the server’s score and is in the stream, its body unchanged', async () => {
    const body = JSON.stringify(
      telemetryOf('acme', {
        note: 'ä 😀 / \u2028',
        scorer: { rasp_score: 1, rasp_action: 'ALLOW', rasp_flags: ['CLIENT'] },
        signals: {
          root: { su_binary: true },
          emulator: {},
          debugger: {},
          tamper: {},
          ecosystem: {},
          network: { vpn_active: true },
        },
      }),
      null,
      1,
    )
    const before = Date.now()
    const answer = await sendAs(acme, body)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const [event, ...others] = await storedOf(body)
    expect(others).toEqual([])
    expect(event).toMatchObject({
      event_id: toEventId(Buffer.from(body)),
      tenant_id: 'acme',
      epoch: 3,
      policy_version: 2,
      policy_hash: toPolicyHash(defaultPolicy),
      body: JSON.parse(body),
    })
    expect(event!.received_at).toBeGreaterThanOrEqual(before)
    expect(event!.received_at).toBeLessThanOrEqual(Date.now())
    expect(answer.body).toEqual({
      status: 'accepted',
      rasp_score: event!.rasp_score,
      rasp_action: event!.rasp_action,
      event_id: event!.event_id,
      flags: event!.reasons.map(({ code }) => code),
    })
    expect(answer.body.flags).toContain('ROOTED')
    expect(event!.reasons.reduce((sum, { weight }) => sum + weight, 0)).toBe(event!.rasp_score)
  })

  it('keeps its event id when it is sent again, with a signature of any secret', async () => {
    const body = bodyOf('acme')
    const ids = [await sendAs(acme, body), await sendAs(acme, body)].map(
      ({ body }) => body.event_id,
    )
    expect(ids).toEqual([toEventId(Buffer.from(body)), toEventId(Buffer.from(body))])
  })

  it('is stored with hashes in the place of identifiers, under the id of the signed bytes', async () => {
    const plain = 'AB5E0000-imei'
    const body = bodyOf('acme', { device: { identifiers: { keychain_id: plain, n: 7 } } })
    const answer = await sendAs(acme, body)
    expect(answer.body.event_id).toBe(toEventId(Buffer.from(body)))
    expect((await sendAs(acme, body)).body).toEqual(answer.body)
    const [event, again] = await storedOf(body)
    const key = createSecretKey(Buffer.alloc(addressKeyBytes, 7))
    const identifiers = { keychain_id: hashIdentifier('keychain_id', plain, key) }
    expect(event!.body.device).toEqual({ identifiers })
    expect(again!.bodyBytes).toEqual(event!.bodyBytes)
    for await (const { data } of readMessages(rig.nats)) {
      expect(Buffer.from(data).toString()).not.toContain(plain)
    }
    const counted = ['hashed', 'value'].map((result) =>
      edge.count('di_ingest_identifiers_total', { result }),
    )
    expect(await Promise.all(counted)).toEqual([2, 2])
  })

  it('adds no header to its message while tracing is off', async () => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    expect((await sendAs(acme, bodyOf('acme'), { traceparent })).status).toBe(200)
    for await (const { headers } of readMessages(rig.nats)) {
      expect(headers!.keys().sort()).toEqual(['Nats-Expected-Stream', 'Nats-Msg-Id', 'Proof'])
    }
  })

  it('keeps the request id that it was sent with, when that is harmless', async () => {
    const id = async (given: string) =>
      (await sendAs(acme, bodyOf('acme'), { 'x-request-id': given })).headers.get('x-request-id')
    expect(await id('trace-1.A_b')).toBe('trace-1.A_b')
    expect(await id('<script>')).not.toBe('<script>')
    expect(await id('x'.repeat(65))).not.toBe('x'.repeat(65))
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="utf-8"',
    'application/json ; profile=x',
  ])('may have the content type %s', async (type) => {
    expect((await sendAs(acme, bodyOf('acme'), { 'content-type': type })).status).toBe(200)
  })

  it('may have the encoding identity, and a query in its URL', async () => {
    const headers = { 'content-encoding': 'Identity' }
    expect((await sendAs(acme, bodyOf('acme'), headers)).status).toBe(200)
    const body = bodyOf('acme')
    const response = await fetch(`${edge.url}/v1/rasp/ingest?sdk=4`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signBody(body, acme.secret),
      },
    })
    expect(response.status).toBe(200)
  })

  it('may have exactly 64 KiB', async () => {
    const sized = (bytes: number) => {
      const body = bodyOf('acme', { pad: '' })
      return body.replace('"pad":""', `"pad":"${'x'.repeat(bytes - body.length)}"`)
    }
    expect(sized(65_536)).toHaveLength(65_536)
    expect((await sendAs(acme, sized(65_536))).status).toBe(200)
    expectProblem(await sendAs(acme, sized(65_537)), 413, 'body_too_large')
  })

  it('may use any legal spelling of JSON', async () => {
    const fields = telemetryOf('acme')
    const { tenant_id: _, ...others } = fields
    const rest = JSON.stringify(others).slice(1)
    for (const body of [
      `{"tenant\\u005fid":"acme",${rest}`,
      `{"tenant_id":"\\u0061cme",${rest}`,
      `{"x":{"tenant_id":"other"},"tenant_id":"acme",${rest}`,
      `{"x":"\\"tenant_id\\":\\"other\\"","tenant_id":"acme",${rest}`,
      `${JSON.stringify(others).slice(0, -1)},"tenant_id":"acme"}`,
      ` \r\n\t{ "tenant_id" \n:\t"acme" , ${rest} \n`,
    ]) {
      const answer = await sendAs(acme, body)
      expect(answer.status, body).toBe(200)
      expect((await storedOf(body))[0]?.body).toEqual(JSON.parse(body))
    }
  })
})

describe('the order of the checks', () => {
  const faults = ['media type', 'size', 'no signature', 'signature', 'rate', 'body'] as const
  type Fault = (typeof faults)[number]
  const expected: Record<Fault, [number, string]> = {
    'media type': [415, 'unsupported_media_type'],
    size: [413, 'body_too_large'],
    'no signature': [401, 'signature_missing'],
    signature: [401, 'signature_invalid'],
    rate: [429, 'rate_limited'],
    body: [400, 'invalid_body'],
  }
  const pairs = faults.flatMap((first, index) => {
    return faults.slice(index).map((second) => [first, second] as const)
  })
  let slow: TestTenant

  beforeAll(async () => {
    const ingest_rate = { perSecond: 0.001, burst: 1 }
    slow = await rig.projectTenant('slow', { ingest_rate })
    await until('the edge knows the tenant', () => edge.directory.revision() >= slow.revision)
    expect((await sendAs(slow, bodyOf('slow'))).status).toBe(200)
  })

  it.each(pairs)('%s before %s', async (...pair) => {
    const has = (fault: Fault) => pair.includes(fault)
    const tenant = has('rate') ? slow : acme
    const pad = has('size') ? 'x'.repeat(70_000) : ''
    const body = bodyOf(tenant.tenantId, { pad, ...(has('body') ? { device_id: 7 } : {}) })
    const secret = has('signature') ? 'not the secret of any tenant at all' : tenant.secret
    const headers = has('media type') ? { 'content-type': 'text/plain' } : {}
    const answer = await send(edge, body, {
      ...(has('no signature') ? {} : { secret }),
      headers,
    })
    expectProblem(answer, ...expected[pair[0]])
    expect(await storedOf(body)).toEqual([])
  })

  it('and each rejection is counted with its reason', async () => {
    const reasons = ['content_type', 'too_large', 'signature_missing', 'signature_invalid', 'rate']
    for (const reason of [...reasons, 'body']) {
      expect(await edge.count('di_ingest_refused_total', { reason })).toBeGreaterThan(0)
    }
    const text = await edge.metrics()
    expect(text).toMatch(/di_ingest_accepted_total\{tenant="acme",action="ALLOW".*\} \d+/)
    expect(text).not.toContain('nobody')
  })
})

describe('401', () => {
  let suspended: TestTenant
  let between: TestTenant

  beforeAll(async () => {
    suspended = await rig.projectTenant('suspended', { status: 'suspended' })
    between = await rig.projectTenant('between', { secret: null })
    await until('the edge knows them', () => edge.directory.revision() >= between.revision)
  })

  it('is equal in every respect, for every reason of a failed verification', async () => {
    const unknown = { tenantId: 'nobody', secret: acme.secret }
    const signature = (body: string) => ({ 'x-service-signature': signBody(body, acme.secret) })
    const requests: [string, string, Record<string, string>][] = []
    const add = (name: string, body: string, headers = signature(body)) => {
      requests.push([name, body, headers])
    }
    const body = bodyOf('acme')
    add('wrong secret', body, { 'x-service-signature': signBody(body, 'another secret') })
    add('not canonical', body, { 'x-service-signature': 'AAAA' })
    const toHex = (text: string) =>
      Buffer.from(signBody(text, acme.secret), 'base64').toString('hex')
    for (const tenantId of ['acme', 'suspended', 'between', unknown.tenantId]) {
      const text = bodyOf(tenantId)
      add(`no padding, ${tenantId}`, text, {
        'x-service-signature': signBody(text, acme.secret).slice(0, -1),
      })
      add(`hex, ${tenantId}`, text, { 'x-service-signature': toHex(text) })
    }
    add('unknown tenant', bodyOf(unknown.tenantId))
    add('suspended', bodyOf('suspended'), {
      'x-service-signature': signBody(bodyOf('suspended'), suspended.secret),
    })
    const asSuspended = bodyOf('suspended')
    add('suspended, rightly signed', asSuspended, {
      'x-service-signature': signBody(asSuspended, suspended.secret),
    })
    add('between two secrets', bodyOf('between'))
    add('no JSON', '{"tenant_id":acme')
    add('an array', '[{"tenant_id":"acme"}]')
    add('a text', '"tenant_id"')
    add('null', 'null')
    add('nothing', '')
    add('no tenant', '{"device_id":"x"}')
    add('a tenant that is no text', '{"tenant_id":["acme"]}')
    add('a tenant in upper case', '{"tenant_id":"ACME"}')
    add('two tenants, ours last', `{"tenant_id":"other","tenant_id":"acme"}`)
    const answers = await Promise.all(
      requests.map(async ([name, body, headers]) => {
        const more = { ...headers, 'x-request-id': 'same' }
        const { status, headers: got, body: json } = await send(edge, body, { headers: more })
        // Only fields that follow from the request may differ.
        const { date: _, 'content-length': length, ...fields } = Object.fromEntries(got)
        const { received, signature_form, detail, ...rest } = json as Record<string, unknown>
        const bytes = Buffer.from(body)
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        expect(received, name).toEqual({ bytes: bytes.length, sha256 })
        const described = describeRefusedRequest(bytes, headers['x-service-signature'])
        const usual = refusals.signatureInvalid.problem.message
        expect(detail, name).toBe(described.detail ?? usual)
        expect(signature_form, name).toMatch(/; base64 of 32 bytes expected$|, as expected$/)
        expect(Number(length), name).toBeGreaterThan(0)
        return { name, answer: JSON.stringify({ status, fields, rest }) }
      }),
    )
    expect(answers[0]!.answer).toContain('"code":"signature_invalid"')
    for (const { name, answer } of answers) expect(answer, name).toBe(answers[0]!.answer)
  })
})

describe('429', () => {
  it('has a Retry-After, after which requests pass again; others are not affected', async () => {
    const rated = await rig.projectTenant('rated', { ingest_rate: { perSecond: 4, burst: 2 } })
    await until('the edge knows the tenant', () => edge.directory.revision() >= rated.revision)
    const answers: Answer[] = []
    for (let at = 0; at < 3; at++) answers.push(await sendAs(rated, bodyOf('rated')))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    for (const [at, { headers }] of answers.entries()) {
      expect(headers.get('ratelimit-policy')).toBe('"tenant";q=2;w=1')
      expect(headers.get('ratelimit')).toBe(`"tenant";r=${at === 0 ? 1 : 0};t=1`)
    }
    const refused = answers[2]!
    expectProblem(refused, 429, 'rate_limited')
    expect(refused.headers.get('retry-after')).toBe('1')
    const unlimited = await sendAs(acme, bodyOf('acme'))
    expect(unlimited.status).toBe(200)
    expect(unlimited.headers.has('ratelimit')).toBe(false)
    // A change of the tenant with the same rate gives no fresh burst.
    const renamed = await rig.projectTenant('rated', { ...rated.entry, epoch: 2 })
    expect(renamed.revision).toBeGreaterThan(rated.revision)
    await until(
      'the rate lets something through again',
      async () => (await sendAs(rated, bodyOf('rated'))).status === 200,
    )
  })
})

describe('the RateLimit fields', () => {
  it('are in every answer to a tenant with a rate, and in no answer without tenant', async () => {
    const ingest_rate = { perSecond: 0.5, burst: 10 }
    const limited = await rig.projectTenant('limited', { ingest_rate })
    await until('the edge knows the tenant', () => edge.directory.revision() >= limited.revision)
    const limitOf = ({ status, headers }: Answer) => [status, headers.get('ratelimit')]
    const invalid = bodyOf('limited', { device_id: 7 })
    expect(limitOf(await sendAs(limited, bodyOf('limited')))).toEqual([200, '"tenant";r=9;t=2'])
    expect(limitOf(await sendAs(limited, invalid))).toEqual([400, '"tenant";r=8;t=4'])
    const wrong = await send(edge, bodyOf('limited'), { secret: 'wrong' })
    expect(limitOf(wrong)).toEqual([401, null])
    const others = bodyOf('limited').replace('{', '{"tenant_id":"acme",')
    expect(limitOf(await sendAs(limited, others))).toEqual([401, null])
  })
})

describe('400', () => {
  it('names every fault by its path, and repeats nothing from the body', async () => {
    const body = bodyOf('acme', {
      device_id: '',
      session_id: 'secret\u0000text',
      signals: { root: { su_binary: 'canary' }, emulator: [], debugger: {} },
    })
    const answer = await sendAs(acme, body)
    expectProblem(answer, 400, 'invalid_body')
    const errors = answer.body.errors as { path: string; message: string }[]
    const paths = errors.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining(['$.device_id', '$.session_id', '$.signals.emulator']),
    )
    expect(JSON.stringify(answer.body)).not.toMatch(/canary|secret/)
    expect(await storedOf(body)).toEqual([])
  })
})

describe('the telemetry of real clients', () => {
  it('is scored by the known signals, with any numbers beside them', async () => {
    const signals = {
      ...telemetryOf('acme').signals,
      root: { magisk_detected: true, ns: 1, float: 2 },
    }
    const body = bodyOf('acme', { signals, device_id: 'numbers' })
      .replace('"ns":1', '"ns":1764086400123456789')
      .replace('"float":2', '"float":[3.4028235E38,1e16]')
    const answer = await sendAs(acme, body)
    expect(answer).toMatchObject({ status: 200, body: { rasp_action: 'REVIEW' } })
    const [event] = await storedOf(body)
    expect(event?.body.signals.root).toMatchObject({
      ns: '1764086400123456789',
      float: ['3.4028235E38', '1e16'],
    })
    expect(Buffer.from(event!.bodyBytes!).toString()).toBe(body)
    const known = body.replace('"magisk_detected":true', '"magisk_detected":1e16')
    expect((await sendAs(acme, known)).status).toBe(400)
  })
})

describe('sandbox', () => {
  const thresholds = { review: 30, block: 60 }

  it('test devices force their action, only in a sandbox tenant', async () => {
    const policy = { ...defaultPolicy, thresholds }
    const sandbox = await rig.projectTenant('sandbox', { environment: 'sandbox', policy })
    const live = await rig.projectTenant('live', { policy })
    await until('the edge knows them', () => edge.directory.revision() >= live.revision)
    const risky = { root: { su_binary: true }, emulator: {}, debugger: {}, tamper: {} }
    const signals = { ...risky, ecosystem: {}, network: {} }
    const submit = async (tenant: TestTenant, device_id: string) => {
      const body = bodyOf(tenant.tenantId, { device_id, signals })
      const { rasp_score: score, rasp_action: action, flags } = (await sendAs(tenant, body)).body
      const reasons = (await storedOf(body))[0]!.reasons
      expect(reasons.reduce((sum, { weight }) => sum + weight, 0)).toBe(score)
      return [score, action, (flags as string[]).join()]
    }
    expect(await submit(sandbox, 'test-allow')).toEqual([0, 'ALLOW', 'SANDBOX_FORCED'])
    expect(await submit(sandbox, 'test-review')).toEqual([30, 'REVIEW', 'SANDBOX_FORCED'])
    expect(await submit(sandbox, 'test-block')).toEqual([60, 'BLOCK', 'SANDBOX_FORCED'])
    expect(await submit(sandbox, 'device')).toEqual([40, 'REVIEW', 'ROOTED'])
    const misspelt = { ...signals, root: { su_binay: true, 'wü😀rz': 1 } }
    const of = (tenantId: string) => bodyOf(tenantId, { signals: misspelt })
    const { body: warned } = await sendAs(sandbox, of('sandbox'))
    expect(warned.warnings).toMatchObject([
      { path: '$.signals.root.su_binay', nearest: 'root.su_binary' },
      { path: '$.signals.root.wü😀rz', nearest: null },
    ])
    expect((await sendAs(acme, of('acme'))).body).not.toHaveProperty('warnings')
    expect(await submit(live, 'test-allow')).toEqual([40, 'REVIEW', 'ROOTED'])
    expect(await submit(live, 'test-block')).toEqual([40, 'REVIEW', 'ROOTED'])
  })
})

describe('the client package', () => {
  const options = () => ({ ingestUrl: edge.url, hmacSecret: acme.secret })

  it('sends a submission that is stored as it was serialized', async () => {
    const telemetry = telemetryOf('acme', {
      user_id: null,
      signals: {
        root: { su_binary: true },
        emulator: {},
        debugger: {},
        tamper: {},
        ecosystem: {},
        network: {},
      },
    })
    const result = await sendTelemetry(telemetry as Telemetry, options())
    const [event] = await storedOf(JSON.stringify(telemetry))
    expect(result).toMatchObject({
      status: 'accepted',
      event_id: event!.event_id,
      rasp_score: event!.rasp_score,
      rasp_action: 'REVIEW',
      flags: ['ROOTED'],
    })
  })

  it('sends what an old secret was refused for again with the new one, and it counts once', async () => {
    const [before, after] = ['o'.repeat(43), 'n'.repeat(43)]
    const project = async (secret: string, epoch: number) => {
      const { revision } = await rig.projectTenant('rotating', { secret, epoch })
      await until('the edge knows it', () => edge.directory.revision() >= revision)
    }
    const sendWith = (body: string, hmacSecret: string) =>
      sendTelemetry(body, { ingestUrl: edge.url, hmacSecret })
    const [early, late] = ['early', 'late'].map((id) => bodyOf('rotating', { session_id: id }))
    await project(before, 1)
    const { event_id } = await sendWith(early!, before)
    await project(after, 2)
    const refused = { refusal: { status: 401, code: 'signature_invalid' } }
    await expect(sendWith(late!, before)).rejects.toMatchObject(refused)
    expect(await sendWith(late!, after)).toMatchObject({ event_id: toEventId(Buffer.from(late!)) })
    // Also what had been accepted: the id is of the bytes and not of the signature.
    expect(await sendWith(early!, after)).toMatchObject({ event_id })
  })
})

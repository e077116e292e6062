/**
 * Registrations of installs at an edge: what they answer and leave in the stream, what is refused
 * and why, and their bounds.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  challengeMs,
  installTokenMs,
  registrationBytesMax,
  tenantRegistrationsVerifyingMax,
} from '#shared/core/base/limits/installs.ts'
import { makeChallenge } from '#shared/core/installs/challenge.ts'
import { registrationSchema } from '#shared/core/installs/registration.ts'
import { toAppleEvidence, toChainEvidence } from '../../support/installs/evidence-fixtures.ts'
import {
  fetchChallenge,
  installsPath,
  readRegistrations,
  register,
  registrationOf,
  sealRoots,
  sendRegistration,
  sendWithToken,
} from '../../support/installs/install-client.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  edgeKeysOf,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edge: TestEdge
let second: TestEdge
let acme: TestTenant
let aheadMs = 0

const project = (
  tenantId: string,
  change: Parameters<EdgeRig['projectTenant']>[1] = {},
  epochs = [1],
) =>
  rig.projectTenant(tenantId, {
    install_roots: sealRoots(rig.sealer, tenantId, ...epochs),
    ...change,
  })
const isApplied = async ({ revision }: TestTenant, on = [edge, second]) => {
  for (const { directory } of on) {
    while (directory.revision() < revision) await new Promise((done) => setTimeout(done, 5))
  }
}

beforeAll(async () => {
  rig = await startEdgeRig()
  edge = await rig.startEdge({ wallMs: () => Date.now() + aheadMs })
  second = await rig.startEdge()
  acme = await project('acme')
  await isApplied(acme)
})
afterAll(() => rig.stop())

describe('GET /v1/rasp/challenge', () => {
  it('gives forty bytes for two minutes, another one each time, and is not cached', async () => {
    const response = await fetch(`${edge.url}/v1/rasp/challenge`)
    const { challenge, expires_at: expiresAt } = (await response.json()) as Record<string, string>
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(Buffer.from(challenge!, 'base64url')).toHaveLength(40)
    expect(expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const leftMs = Date.parse(expiresAt!) - Date.now()
    expect(leftMs).toBeGreaterThan(challengeMs - 60_000)
    expect(leftMs).toBeLessThanOrEqual(challengeMs)
    expect(await fetchChallenge(edge)).not.toBe(challenge)
    expect(await edge.metrics()).toMatch(/^di_ingest_challenges_total(\{[^}]*\})? 2$/m)
  })

  it('has no other method', async () => {
    const response = await fetch(`${edge.url}/v1/rasp/challenge`, { method: 'POST' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })
})

describe('a registration without evidence', () => {
  it('has a token and a key with which the install sends telemetry to any edge', async () => {
    const body = await registrationOf(edge, acme, { device_model: 'Pixel 9' })
    const beforeMs = Date.now()
    const { status, headers, body: answer } = await sendRegistration(second, acme, body)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(Object.keys(answer)).toEqual([
      'status',
      'install_token',
      'install_key',
      'expires_at',
      'attestation',
    ])
    expect(answer).toMatchObject({
      status: 'registered',
      install_key: expect.stringMatching(/^[\w-]{43}$/),
      attestation: { provider: 'none', verdict: 'none', reason: null, level: 'none' },
    })
    const leftMs = Date.parse(String(answer.expires_at)) - beforeMs
    expect(leftMs).toBeGreaterThanOrEqual(installTokenMs)
    const { install_token: token, install_key: key } = answer as Record<string, string>
    for (const one of [edge, second]) {
      const telemetry = bodyOf('acme', { device_id: 'pixel-1' })
      const sent = await sendWithToken(one, telemetry, { token: token!, key: key! })
      expect([sent.status, sent.body.status]).toEqual([200, 'accepted'])
    }
    expect(await second.count('di_ingest_registrations_total', { verdict: 'none' })).toBe(1)
  })

  it('leaves its record in the stream, and nothing of the token', async () => {
    const { token, key } = await register(edge, acme, 'pixel-2')
    const registrations = await readRegistrations(rig.nats)
    const record = registrations.find(({ body }) => (body as Device).device_id === 'pixel-2')!
    expect(registrationSchema.parse(record.body)).toMatchObject({
      tenant_id: 'acme',
      platform: 'android',
      app_id: 'com.acme.bank',
      provider: 'none',
      verdict: 'none',
      root_epoch: 1,
      attested_key: null,
      issuers: [],
    })
    const text = JSON.stringify(registrations)
    expect(text).not.toContain(token.split('.')[2])
    expect(text).not.toContain(key)
  })

  it('may have no app, members of later clients, and any depth that they need', async () => {
    const { app: _, ...body } = await registrationOf(edge, acme, {
      sdk: { version: '5', list: [[]] },
    })
    expect((await sendRegistration(edge, acme, body)).status).toBe(200)
  })

  it('is made with the first of two roots', async () => {
    const two = await project('two-roots', {}, [4, 3])
    await isApplied(two)
    expect((await register(edge, two)).token).toMatch(/^ins1\.4\./)
  })

  it('is refused while the tenant has no root', async () => {
    const bare = await rig.projectTenant('bare')
    await isApplied(bare)
    const answer = await sendRegistration(edge, bare, await registrationOf(edge, bare))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  })
})

type Device = { device_id: string }

describe('a registration with evidence', () => {
  it.each([
    toChainEvidence(Buffer.alloc(40)),
    toAppleEvidence(Buffer.alloc(40), Date.now()),
    { provider: 'play_integrity', token: 'a.b.c.d.e' },
  ])('that does not hold registers as rejected: %o', async (evidence) => {
    const body = await registrationOf(edge, acme, { evidence })
    const { status, body: answer } = await sendRegistration(edge, acme, body)
    expect(status).toBe(200)
    expect(answer.attestation).toMatchObject({
      provider: evidence.provider,
      verdict: 'rejected',
      reason: expect.any(String),
    })
    const sent = await sendWithToken(edge, bodyOf('acme', { device_id: 'pixel-1' }), {
      token: String(answer.install_token),
      key: String(answer.install_key),
    })
    expect(sent.status).toBe(200)
  })

  it('over a challenge that has expired, or of another service, is rejected for it', async () => {
    const evidence = toChainEvidence(Buffer.alloc(40))
    const [key] = edgeKeysOf(rig.masterKey).challenges
    const expired = makeChallenge(key, Buffer.alloc(16), Date.now() - challengeMs - 1)
    const foreign = makeChallenge(Buffer.alloc(32), Buffer.alloc(16), Date.now())
    for (const { challenge } of [expired, foreign]) {
      const body = await registrationOf(edge, acme, { evidence, challenge })
      const { status, body: answer } = await sendRegistration(edge, acme, body)
      expect([status, answer.attestation]).toMatchObject([
        200,
        { verdict: 'rejected', reason: 'challenge_mismatch' },
      ])
    }
  })
})

describe('a registration that is refused', () => {
  const refused = async (more: Record<string, unknown>) => {
    const stored = (await readRegistrations(rig.nats)).length
    const body = await registrationOf(edge, acme, more)
    const answer = await sendRegistration(edge, acme, body)
    expect(await readRegistrations(rig.nats)).toHaveLength(stored)
    return answer
  }
  const errorsOf = async (more: Record<string, unknown>) => {
    const { status, body } = await refused(more)
    expect([status, body.code]).toEqual([400, 'invalid_body'])
    return (body.errors as { path: string; message: string }[])[0]
  }

  const [leaf] = (toChainEvidence(Buffer.alloc(40)) as { chain: string[] }).chain
  it.each<[string, Record<string, unknown>, string, string]>([
    ['no device', { device_id: undefined }, '$.device_id', 'is missing'],
    ['a device that is a number', { device_id: 7 }, '$.device_id', 'must be a string'],
    ['no challenge', { challenge: undefined }, '$.challenge', 'is missing'],
    [
      'a malformed challenge',
      { challenge: 'AAAA' },
      '$.challenge',
      'must be base64url of 40 bytes',
    ],
    ['no evidence', { evidence: undefined }, '$.evidence', 'is missing'],
    [
      'unknown evidence',
      { evidence: { provider: 'safetynet' } },
      '$.evidence.provider',
      'must be one of key_attestation, app_attest, play_integrity, none',
    ],
    [
      'an empty chain',
      { evidence: { provider: 'key_attestation', chain: [] } },
      '$.evidence.chain',
      'must have at least 1 item',
    ],
    [
      'evidence of no app',
      { app: undefined, evidence: { provider: 'key_attestation', chain: ['AA=='] } },
      '$.app',
      'is missing; evidence is of an app',
    ],
    [
      'a certificate in PEM',
      {
        evidence: {
          provider: 'key_attestation',
          chain: [leaf, `-----BEGIN CERTIFICATE-----\n${leaf}\n-----END CERTIFICATE-----`],
        },
      },
      '$.evidence.chain[1]',
      'must be base64 of one certificate in DER; this is PEM, without its BEGIN and END lines it is right',
    ],
    [
      'a key id in hex',
      { evidence: { provider: 'app_attest', key_id: 'ab'.repeat(32), attestation: 'AA==' } },
      '$.evidence.key_id',
      'must be the key id that generateKey returned: base64 of 32 bytes; this is hex',
    ],
    [
      'an unknown platform',
      { app: { platform: 'web', id: 'x' } },
      '$.app.platform',
      'must be one of android, ios',
    ],
    [
      'an endless app',
      { app: { platform: 'ios', id: 'x'.repeat(156) } },
      '$.app.id',
      'must have at most 155 characters',
    ],
  ])('with %s', async (_, more, path, message) => {
    expect(await errorsOf(more)).toEqual({ path, message })
  })

  it('without evidence and over a challenge that does not count', async () => {
    const foreign = makeChallenge(Buffer.alloc(32), Buffer.alloc(16), Date.now())
    const error = await errorsOf({ challenge: foreign.challenge })
    expect(error).toEqual({
      path: '$.challenge',
      message: 'has expired, or is not of this service; get another one',
    })
    const challenge = await fetchChallenge(edge)
    aheadMs = challengeMs + 1_000
    expect(await errorsOf({ challenge })).toEqual(error)
    aheadMs = 0
  })

  it('with a member twice', async () => {
    const body = JSON.stringify(await registrationOf(edge, acme))
    const twice = body.replace('{', '{"device_id":"pixel-9",')
    const answer = await send(edge, twice, { secret: acme.secret, path: installsPath })
    expect(answer.body.errors).toEqual([
      { path: '$.device_id', message: 'is given more than once' },
    ])
  })

  it('without a right signature, alike for tenants that are unknown or suspended', async () => {
    const gone = await project('gone', { status: 'suspended' })
    await isApplied(gone)
    const answers = []
    for (const [tenantId, secret] of [
      ['acme', 'wrong'],
      ['nobody', acme.secret],
      ['gone', gone.secret],
    ] as const) {
      const body = await registrationOf(edge, { tenantId })
      const { status, body: answer } = await sendRegistration(edge, { tenantId, secret }, body)
      const { request_id: _, received: __, ...rest } = answer
      answers.push({ status, rest })
    }
    expect(answers[0]).toMatchObject({ status: 401, rest: { code: 'signature_invalid' } })
    expect(answers[1]).toEqual(answers[0])
    expect(answers[2]).toEqual(answers[0])
  })

  it('with a body of another type, or one that is too large', async () => {
    const typed = await sendRegistration(edge, acme, {}, { 'content-type': 'text/plain' })
    expect(typed.status).toBe(415)
    const large = await send(edge, 'x'.repeat(registrationBytesMax + 1), {
      secret: acme.secret,
      path: installsPath,
    })
    expect(large.status).toBe(413)
    const count = (reason: string) =>
      edge.count('di_ingest_registrations_refused_total', { reason })
    expect([await count('content_type'), await count('too_large')]).toEqual([1, 1])
  })
})

describe('a registration whose record cannot be stored', () => {
  it('is answered 503, and the same bytes register later', async () => {
    let isDown = true
    const failing = await rig.startEdge({
      wrapPublish:
        (publish) =>
        async (...message) => {
          if (isDown) throw Object.assign(new Error('full'), { fault: 'stream_full', final: true })
          return publish(...message)
        },
    })
    const body = await registrationOf(failing, acme, { device_id: 'late' })
    const stored = async () =>
      (await readRegistrations(rig.nats)).filter(
        ({ body }) => (body as Device).device_id === 'late',
      )
    const refused = await sendRegistration(failing, acme, body)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(refused.body).not.toHaveProperty('install_token')
    expect(await stored()).toEqual([])
    isDown = false
    expect((await sendRegistration(failing, acme, body)).status).toBe(200)
    expect(await stored()).toHaveLength(1)
    expect(await failing.count('di_ingest_registrations_total')).toBe(1)
  })
})

describe('where the tenant’s own secret is off', () => {
  it('registrations and installs go on, and what the secret signs is refused', async () => {
    const off = await project('off', { shared_secret_off: true })
    await isApplied(off)
    const install = await register(edge, off)
    const body = bodyOf('off', { device_id: install.deviceId })
    expect((await sendWithToken(edge, body, install)).status).toBe(200)
    const bySecret = await send(edge, body, { secret: off.secret })
    const wrong = await send(edge, body, { secret: 'wrong' })
    const batch = `{"tenant_id":"off","events":[${body}]}`
    const path = '/v1/rasp/ingest/batch'
    const inBatch = await send(edge, batch, { secret: off.secret, path })
    const toPlain = ({ status, body: { request_id: _, ...rest } }: typeof wrong) => [status, rest]
    expect(toPlain(bySecret)).toEqual(toPlain(wrong))
    expect([bySecret.status, inBatch.status]).toEqual([401, 401])
    expect(await edge.count('di_ingest_refused_total', { reason: 'shared_secret_off' })).toBe(2)
    const withExpired = await sendWithToken(edge, body, { token: install.token, key: off.secret })
    expect(withExpired.status).toBe(401)
  })
})

describe('while evidence is verified', () => {
  /** Evidence waits here until a test lets it go on. */
  let goOn: () => void
  let held: Promise<void>
  let slow: TestEdge
  const hold = () => {
    held = new Promise((resolve) => {
      goOn = resolve
    })
  }

  beforeAll(async () => {
    hold()
    slow = await rig.startEdge({
      wrapEvidence: (verify) => async (request, tenant) => {
        if (tenant.tenantId !== 'free') await held
        return verify(request, tenant)
      },
    })
  })

  it('registrations of one tenant are bounded, and others and telemetry go on', async () => {
    const [busy, free] = [await project('busy'), await project('free')]
    await isApplied(free, [slow])
    const body = await registrationOf(slow, busy)
    const waiting = Array.from({ length: tenantRegistrationsVerifyingMax }, () =>
      sendRegistration(slow, busy, body),
    )
    await until('all of them wait', async () => {
      const metrics = await slow.metrics()
      return /^di_ingest_registrations_verifying(\{[^}]*\})? 64$/m.test(metrics)
    })
    const beyond = await sendRegistration(slow, busy, body)
    expect([beyond.status, beyond.headers.get('retry-after')]).toEqual([429, '1'])
    expect((await register(slow, free)).token).toMatch(/^ins1\./)
    expect((await send(slow, bodyOf('busy'), { secret: busy.secret })).status).toBe(200)
    goOn()
    // On a slow machine some of them have waited for too long.
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true)
    expect((await sendRegistration(slow, busy, await registrationOf(slow, busy))).status).toBe(200)
    const reason = 'registration_rate'
    expect(await slow.count('di_ingest_registrations_refused_total', { reason })).toBe(1)
  })

  it('a secret that is replaced meanwhile registers nothing', async () => {
    hold()
    const tenant = await project('replaced')
    await isApplied(tenant, [slow])
    const answer = sendRegistration(slow, tenant, await registrationOf(slow, tenant))
    await until('it waits', async () => {
      const metrics = await slow.metrics()
      return /^di_ingest_registrations_verifying(\{[^}]*\})? 1$/m.test(metrics)
    })
    await isApplied(await project('replaced', { secret: 'another one', epoch: 2 }), [slow])
    goOn()
    expect((await answer).status).toBe(401)
  })

  it('that takes too long gets a 503, and may be sent again', async () => {
    hold()
    const tenant = await project('patient')
    await isApplied(tenant, [slow])
    const answer = await sendRegistration(slow, tenant, await registrationOf(slow, tenant))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    goOn()
    const reason = 'evidence'
    expect(await slow.count('di_ingest_registrations_refused_total', { reason })).toBeGreaterThan(0)
  })
})

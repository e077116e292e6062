/**
 * What someone gets who captured what an install sent, or extracted a secret: the same 401 for
 * every body, token and key that do not belong together, and a counted reason that only the
 * operator sees.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installTokenMs } from '#shared/core/base/limits/installs.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  type Install,
  readElements,
  register,
  sealRoots,
  sendWithToken,
} from '../../support/installs/install-client.ts'
import {
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edge: TestEdge
let [acme, other, suspended, rotated]: TestTenant[] = []
let [mine, ofOther, ofSuspended, ofOldRoot, expired, ofSandbox]: Install[] = []
/** What is added to the wall clock of the edge. */
let aheadMs = 0

const projectWithRoots = (
  tenantId: string,
  roots: Parameters<typeof sealRoots>[2][],
  more: Parameters<EdgeRig['projectTenant']>[1] = {},
) =>
  rig.projectTenant(tenantId, {
    install_roots: sealRoots(rig.sealer, tenantId, ...roots),
    ...more,
  })
const isApplied = async ({ revision }: TestTenant) => {
  while (edge.directory.revision() < revision) await new Promise((done) => setTimeout(done, 5))
}

beforeAll(async () => {
  rig = await startEdgeRig()
  edge = await rig.startEdge({ wallMs: () => Date.now() + aheadMs })
  acme = await projectWithRoots('acme', [1])
  const sandbox = await projectWithRoots('trial', [1], { environment: 'sandbox' })
  other = await projectWithRoots('other', [2])
  suspended = await projectWithRoots('suspended', [1])
  rotated = await projectWithRoots('rotated', [1])
  await projectWithRoots('twin', [{ epoch: 1, byte: 9 }])
  await isApplied(await projectWithRoots('same-root', [1]))
  aheadMs = -installTokenMs - 1_000
  expired = await register(edge, acme)
  aheadMs = 0
  mine = await register(edge, acme)
  ofSandbox = await register(edge, sandbox)
  ofOther = await register(edge, other)
  ofSuspended = await register(edge, suspended)
  ofOldRoot = await register(edge, rotated)
  const { secret } = suspended
  await projectWithRoots('suspended', [1], { secret, status: 'suspended', epoch: 2 })
  rotated = await projectWithRoots('rotated', [3, 2], { secret: rotated.secret, epoch: 2 })
  await isApplied(rotated)
})
afterAll(() => rig.stop())

const bodyFrom = (tenantId: string, deviceId = 'pixel-1') =>
  bodyOf(tenantId, { device_id: deviceId })

type Sent = { body: string; token: string; key: string }
const cases: [string, string, () => Sent][] = [
  ['of another device', 'install_device', () => ({ ...mine!, body: bodyFrom('acme', 'pixel-2') })],
  ['of another tenant', 'install_mac', () => ({ ...mine!, body: bodyFrom('twin') })],
  [
    'of another tenant, were its root the same',
    'install_tenant',
    () => ({ ...mine!, body: bodyFrom('same-root') }),
  ],
  ['of another tenant and epoch', 'install_epoch', () => ({ ...mine!, body: bodyFrom('other') })],
  [
    'for a tenant that is unknown',
    'signature_invalid',
    () => ({ ...mine!, body: bodyFrom('nobody') }),
  ],
  ['for no tenant', 'signature_invalid', () => ({ ...mine!, body: '{"device_id":"pixel-1"}' })],
  [
    'for a suspended tenant',
    'signature_invalid',
    () => ({ ...ofSuspended!, body: bodyFrom('suspended') }),
  ],
  ['of a dropped epoch', 'install_epoch', () => ({ ...ofOldRoot!, body: bodyFrom('rotated') })],
  [
    'after its token has expired',
    'install_expired',
    () => ({ ...expired!, body: bodyFrom('acme') }),
  ],
  [
    'with the key of another install',
    'signature_invalid',
    () => ({ token: mine!.token, key: ofOther!.key, body: bodyFrom('acme') }),
  ],
  [
    'with the token of another tenant',
    'install_epoch',
    () => ({ token: ofOther!.token, key: mine!.key, body: bodyFrom('acme') }),
  ],
  [
    'with the tenant’s secret beside a token that counts',
    'install_key',
    () => ({ token: mine!.token, key: acme!.secret, body: bodyFrom('acme') }),
  ],
  [
    'with the secret and an expired token of another device',
    'install_device',
    () => ({ token: expired!.token, key: acme!.secret, body: bodyFrom('acme', 'pixel-2') }),
  ],
  [
    'with the secret and the token of another tenant',
    'install_epoch',
    () => ({ token: ofOther!.token, key: acme!.secret, body: bodyFrom('acme') }),
  ],
  [
    'with the secret and a token that is none',
    'install_malformed',
    () => ({ token: 'ins1', key: acme!.secret, body: bodyFrom('acme') }),
  ],
  [
    'with an empty token',
    'install_malformed',
    () => ({ token: '', key: acme!.secret, body: bodyFrom('acme') }),
  ],
  [
    'with a token twice',
    'install_malformed',
    () => ({ ...mine!, token: `${mine!.token}, ${mine!.token}`, body: bodyFrom('acme') }),
  ],
  [
    'with a token that is too long',
    'install_malformed',
    () => ({ ...mine!, token: mine!.token.padEnd(1_025, 'A'), body: bodyFrom('acme') }),
  ],
  [
    'with a token that was changed',
    'install_mac',
    () => ({
      ...mine!,
      token: toForged(mine!.token, 'pixel-2'),
      body: bodyFrom('acme', 'pixel-2'),
    }),
  ],
  [
    'with a changed body',
    'signature_invalid',
    () => ({ ...mine!, body: bodyFrom('acme'), key: 'k'.repeat(43) }),
  ],
]

/** The token with another device in it, under the old MAC. */
function toForged(token: string, deviceId: string): string {
  const [form, epoch, payload, mac] = token.split('.')
  const facts = JSON.parse(Buffer.from(payload!, 'base64url').toString())
  const changed = Buffer.from(JSON.stringify({ ...facts, d: deviceId })).toString('base64url')
  return [form, epoch, changed, mac].join('.')
}

/** An answer without what differs by request. */
const toPlain = ({ status, body }: Awaited<ReturnType<typeof send>>) => {
  const { request_id: _, received: __, signature_form: ___, ...rest } = body
  return { status, ...rest }
}

describe('a captured body, token or key', () => {
  it.each(cases)('%s gets the 401 of all others, counted as %s', async (_, reason, make) => {
    const { body, ...credentials } = make()
    const before = await edge.count('di_ingest_refused_total', { status: '401', reason })
    const stored = (await readElements(rig.nats)).length
    const answer = await sendWithToken(edge, body, credentials)
    const usual = await sendWithToken(edge, bodyFrom('acme'), { token: 'x', key: 'x' })
    expect(toPlain(answer)).toEqual(toPlain(usual))
    expect(answer.status).toBe(401)
    const own = reason === 'install_malformed' ? 2 : 1
    const after = await edge.count('di_ingest_refused_total', { status: '401', reason })
    expect(after - before).toBe(own)
    expect(await readElements(rig.nats)).toHaveLength(stored)
  })

  it('is accepted where all of it belongs together, and again as the same event', async () => {
    const body = bodyFrom('acme')
    const first = await sendWithToken(edge, body, mine!)
    const again = await sendWithToken(edge, body, mine!)
    expect([first.status, again.body]).toEqual([200, first.body])
  })

  it('is answered alike with evidence that proves nothing: one event, one answer', async () => {
    const body = bodyOf('acme', { device_id: 'pixel-1' })
    const first = await sendWithToken(edge, body, mine!)
    const stored = (await readElements(rig.nats)).at(-1)
    for (const header of [Buffer.alloc(70, 1).toString('base64'), 'AAAA', 'eyJh.eyJh.A.A.A']) {
      const again = await sendWithToken(edge, body, mine!, { 'x-service-attestation': header })
      expect([header, again.status, again.body]).toEqual([header, 200, first.body])
      const copy = (await readElements(rig.nats)).at(-1)
      for (const member of ['rasp_score', 'reasons', 'server_signals']) {
        expect(copy![member]).toEqual(stored![member])
      }
    }
    const before = (await readElements(rig.nats)).length
    for (const header of ['hello world!', '{}', 'AAAA, AAAA', 'x'.repeat(9_000), 'a.b']) {
      const refused = await sendWithToken(edge, body, mine!, { 'x-service-attestation': header })
      expect([refused.status, refused.body.code]).toEqual([400, 'malformed_request'])
      expect(refused.body.errors).toMatchObject([{ path: 'X-Service-Attestation' }])
    }
    expect(await readElements(rig.nats)).toHaveLength(before)
  })

  it('has a warning in a sandbox for evidence that proves nothing', async () => {
    const body = bodyOf('trial', { device_id: 'pixel-1' })
    const header = Buffer.alloc(70, 1).toString('base64')
    const { status, body: answer } = await sendWithToken(edge, body, ofSandbox!, {
      'x-service-attestation': header,
    })
    const { warnings } = answer as { warnings: Record<string, unknown>[] }
    expect([status, warnings[0]]).toMatchObject([
      200,
      { path: 'X-Service-Attestation', code: 'evidence_rejected' },
    ])
    expect(warnings[0]!.message).toContain('key_missing: The install was registered without')
  })

  it('is refused beside a batch, which a tenant’s backend signs', async () => {
    const batch = `{"tenant_id":"acme","events":[${bodyFrom('acme')}]}`
    const answer = await send(edge, batch, {
      path: '/v1/rasp/ingest/batch',
      headers: {
        'x-service-install': mine!.token,
        'x-service-signature': signBody(batch, mine!.key),
      },
    })
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({
      code: 'malformed_request',
      errors: [{ path: 'X-Service-Install', message: 'must not be sent with a batch' }],
    })
  })
})

describe('what the service says of the sender', () => {
  const findHead = async (body: string) => {
    const text = JSON.stringify(JSON.parse(body))
    const elements = await readElements(rig.nats)
    return elements.findLast((element) => JSON.stringify(element.body) === text)
  }

  it('is that the install key signed, and which install', async () => {
    const body = bodyFrom('acme')
    expect((await sendWithToken(edge, body, mine!)).status).toBe(200)
    expect(await findHead(body)).toMatchObject({
      server_signals: { attestation: { install_key: true } },
      install: { token_id: expect.stringMatching(/^[\w-]{22}$/), attested_key: null },
    })
  })

  it('is that there was no token, where the secret signed', async () => {
    const body = bodyFrom('acme')
    expect((await send(edge, body, { secret: acme!.secret })).status).toBe(200)
    const head = await findHead(body)
    expect(head).toMatchObject({ server_signals: { attestation: { missing: true } } })
    expect(head).not.toHaveProperty('install')
  })

  it('is that the token has expired, where the secret signed beside it', async () => {
    const body = bodyFrom('acme')
    const credentials = { token: expired!.token, key: acme!.secret }
    expect((await sendWithToken(edge, body, credentials)).status).toBe(200)
    const head = await findHead(body)
    expect(head!.server_signals).toEqual({ attestation: { stale: true } })
    expect(head).not.toHaveProperty('install')
  })

  it('cannot be written by the client', async () => {
    const signals = JSON.parse(bodyOf('acme')).signals
    const body = bodyOf('acme', {
      server_signals: { attestation: { install_key: true } },
      signals: { ...signals, attestation: { install_key: true, verified: true } },
    })
    expect((await send(edge, body, { secret: acme!.secret })).status).toBe(200)
    const head = await findHead(body)
    expect(head!.server_signals).toEqual({ attestation: { missing: true } })
  })
})

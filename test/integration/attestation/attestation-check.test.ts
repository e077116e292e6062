// Why evidence is rejected, over the admin API and `di attestation check --tenant`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import type { AttestationCheck } from '#shared/core/attestation/steps.ts'
import { openSerials, packSerials } from '#shared/core/installs/revoked-serials.ts'
import { explicit, octets } from '../../support/attestation/der.ts'
import { makeAssertion } from '../../support/attestation/make-app-attest.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'
import { createOperatorsRig, type OperatorsRig } from '../../support/http/operators-rig.ts'
import {
  androidApp,
  appleApp,
  hashBody,
  playKeys,
  testRoots,
  toAppleEvidence,
  toChainEvidence,
  toPlayToken,
} from '../../support/installs/evidence-fixtures.ts'
import { runDi } from '../../support/process/command-line.ts'

let rig: OperatorsRig
let revoked: string[] = []

beforeAll(async () => {
  rig = await createOperatorsRig({
    revokedSerials: () => openSerials(packSerials(revoked)),
    findRoots: (environment) => (environment === 'sandbox' ? testRoots : attestationRoots),
  })
  const token = rig.adminToken
  for (const body of [
    { tenant_id: 'acme', environment: 'sandbox' },
    { tenant_id: 'live-one', environment: 'live' },
    { tenant_id: 'other', environment: 'sandbox' },
  ]) {
    await rig.must(201, 'POST', '/tenants', { token, body })
  }
  for (const body of [{ ...androidApp, play_keys: playKeys }, appleApp]) {
    await rig.must(200, 'PUT', '/tenants/acme/apps', { token, body })
  }
})
afterAll(() => rig?.close())

const challenge = Buffer.alloc(40, 7)
const toFile = (content: string | Buffer) => Buffer.from(content).toString('base64')
const toRegistration = (evidence: object) =>
  JSON.stringify({
    tenant_id: 'acme',
    device_id: 'pixel-1',
    challenge: challenge.toString('base64url'),
    app: { platform: 'android', id: androidApp.id },
    evidence,
  })

async function check(body: object, tenant = 'acme'): Promise<AttestationCheck> {
  const path = `/tenants/${tenant}/attestation-check`
  const answer = await rig.must(200, 'POST', path, { token: rig.adminToken, body })
  return answer.body as unknown as AttestationCheck
}

it('judges a registration by its challenge and by the apps of the tenant', async () => {
  const evidence_base64 = toFile(toRegistration(toChainEvidence(challenge)))
  const verified = await check({ evidence_base64 })
  expect(verified).toMatchObject({ verdict: 'verified', reason: null, facts: { not_judged: [] } })
  expect(verified.steps).toContainEqual({ step: 'app', ok: true, detail: androidApp.id })
  // The same for a tenant that has named no app, and for a live one, which trusts no test roots.
  expect(await check({ evidence_base64 }, 'other')).toMatchObject({ reason: 'app_unknown' })
  expect(await check({ evidence_base64 }, 'live-one')).toMatchObject({ reason: 'untrusted_root' })
})

it('takes the evidence alone, a challenge beside it, and the status list in force', async () => {
  const evidence_base64 = toFile(JSON.stringify(toChainEvidence(challenge)))
  expect((await check({ evidence_base64 })).facts.not_judged).toEqual(['challenge'])
  const wrong = { evidence_base64, challenge: Buffer.alloc(40).toString('base64') }
  expect(await check(wrong)).toMatchObject({ reason: 'challenge_mismatch' })
  revoked = ['a1b2']
  expect(await check({ evidence_base64 })).toMatchObject({ reason: 'revoked' })
  revoked = []
})

it('opens Play tokens with the keys of the tenant, and checks objects of Apple', async () => {
  const token = await toPlayToken(challenge, Date.now())
  const play = toFile(toRegistration({ provider: 'play_integrity', token }))
  expect(await check({ evidence_base64: play })).toMatchObject({
    provider: 'play_integrity',
    verdict: 'verified',
  })
  expect(await check({ evidence_base64: play }, 'other')).toMatchObject({
    reason: 'play_keys_missing',
  })
  const body = Buffer.from('{"tenant_id":"acme"}')
  const forBody = await toPlayToken(hashBody(body), Date.now())
  const more = { evidence_base64: toFile(forBody), body_base64: toFile(body) }
  expect(await check(more)).toMatchObject({ verdict: 'verified' })
  const apple = toFile(toRegistration(toAppleEvidence(challenge, Date.now())))
  expect(await check({ evidence_base64: apple })).toMatchObject({
    provider: 'app_attest',
    verdict: 'verified',
  })
})

it('checks an assertion with the attested key and the body', async () => {
  const key = makeKey()
  const body = Buffer.from('{"tenant_id":"acme"}')
  const appId = `${appleApp.team}.${appleApp.id}`
  const assertion = makeAssertion({ appId, clientData: body, privateKey: key.privateKey })
  const request = {
    evidence_base64: toFile(assertion),
    body_base64: toFile(body),
    public_key_base64: toFile(toKeyInfo(key.publicKey)),
  }
  expect(await check(request)).toMatchObject({ verdict: 'verified', facts: { counter: 1 } })
  const { public_key_base64: _, ...without } = request
  const answer = await rig.must(400, 'POST', '/tenants/acme/attestation-check', {
    token: rig.adminToken,
    body: without,
  })
  expect(answer.body.errors).toMatchObject([{ path: '$.public_key_base64' }])
})

it('answers and audits no id of a phone', async () => {
  const ids = ['serial-4711', 'imei-358240051111110']
  const more = [
    explicit(713, octets(Buffer.from(ids[0]!))),
    explicit(714, octets(Buffer.from(ids[1]!))),
  ]
  const { cookie } = await rig.join('engineer', ['acme'])
  const body = { evidence_base64: toFile(toRegistration(toChainEvidence(challenge, { more }))) }
  const answer = await rig.must(200, 'POST', '/tenants/acme/attestation-check', { cookie, body })
  expect(answer.body).toMatchObject({ verdict: 'verified' })
  expect(answer.text).not.toContain('unique_id')
  for (const id of ids) expect(answer.text).not.toContain(id)
  const audit = await rig.must(200, 'GET', '/tenants/acme/audit', { token: rig.adminToken })
  expect(audit.body.data[0]).toMatchObject({
    action: 'attestation.checked',
    after: { provider: 'key_attestation', verdict: 'verified', reason: null, level: 'hardware' },
  })
})

it.each([
  ['no evidence', { evidence_base64: toFile('hello') }, '$.evidence_base64'],
  ['no base64', { evidence_base64: '?' }, '$.evidence_base64'],
  ['more than 128 KiB', { evidence_base64: toFile('a'.repeat(140_000)) }, '$.evidence_base64'],
  [
    'another provider than it says',
    { evidence_base64: toFile(JSON.stringify(toChainEvidence(challenge))), provider: 'app_attest' },
    '$.provider',
  ],
  [
    'a challenge that is no base64',
    { evidence_base64: toFile(JSON.stringify(toChainEvidence(challenge))), challenge: '?' },
    '$.challenge',
  ],
])('rejects %s with the field', async (_, body, path) => {
  const answer = await rig.must(400, 'POST', '/tenants/acme/attestation-check', {
    token: rig.adminToken,
    body,
  })
  expect(answer.body.errors).toMatchObject([{ path }])
})

it('is for engineers of the tenant', async () => {
  const body = { evidence_base64: toFile(toRegistration(toChainEvidence(challenge))) }
  const { cookie } = await rig.join('analyst', ['acme'])
  await rig.must(403, 'POST', '/tenants/acme/attestation-check', { cookie, body })
})

it('is what `di attestation check --tenant` prints, and `di tenants apps` changes what it says', async () => {
  const console = await rig.app.listen({ port: 0, host: '127.0.0.1' })
  const folder = mkdtempSync(join(tmpdir(), 'check-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const env = { CONSOLE_URL: console, ADMIN_TOKEN: rig.adminToken, INIT_CWD: folder }
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return name
  }
  const di = async (...args: string[]) => {
    const { status, stdout, stderr } = await runDi(args, env)
    return { status, text: `${stdout}${stderr}` }
  }
  const file = write('body.json', toRegistration(toChainEvidence(challenge)))
  const checkIt = () => di('attestation', 'check', file, '--tenant', 'other')
  expect((await checkIt()).text).toMatch(/^verdict +rejected: app_unknown$/m)

  const [signer] = androidApp.signers
  const app = ['--android', androidApp.id, '--signer', signer!.toUpperCase()]
  const keys = write('keys.json', JSON.stringify(playKeys))
  const added = await di('tenants', 'apps', 'add', 'other', ...app, '--play-keys', keys)
  expect(added.status).toBe(0)
  expect(added.text).toContain('Going back to keys that Google manages')
  expect(added.text).not.toContain(playKeys.decryption_key)
  const checked = await checkIt()
  expect(checked.text).toMatch(/^verdict +verified$/m)
  expect(checked.text).toMatch(/^ok +app +com\.example\.bank$/m)

  await di('tenants', 'apps', 'add', 'other', '--ios', 'com.example.bank', '--team', 'ABCDE12345')
  const listed = await di('tenants', 'apps', 'list', 'other', '--json')
  expect(JSON.parse(listed.text).data).toMatchObject([
    { platform: 'android', signers: [signer], play_keys: true },
    { platform: 'ios', team: 'ABCDE12345', development: false },
  ])
  const removed = await di('tenants', 'apps', 'remove', 'other', 'android', androidApp.id)
  expect(removed.text).toContain('No edge verifies evidence of the android app com.example.bank')
  expect((await checkIt()).text).toMatch(/^verdict +rejected: app_unknown$/m)

  for (const [args, message] of [
    [['--signer', signer!], 'Give one of --android PACKAGE and --ios BUNDLE.'],
    [['--android', 'a.b', '--ios', 'a.b'], 'Give one of --android PACKAGE and --ios BUNDLE.'],
    [['--android', 'a.b'], 'An app for Android needs --signer.'],
    [['--android', 'bank', '--signer', signer!], '$.id: must be a package such as'],
    [['--android', 'a.b', '--signer', 'ab'], '$.signers[0]: must be the SHA-256'],
    [['--android', 'a.b', '--signer', signer!, '--team', 'ABCDE12345'], 'are for --ios.'],
    [['--ios', 'a.b'], 'An app for iOS needs --team.'],
    [['--ios', 'a.b', '--team', 'x'], '$.team: must be the ten letters'],
    [['--ios', 'a.b', '--team', 'ABCDE12345', '--play-keys', keys], 'are for --android.'],
    [['--android', 'a.b', '--signer', signer!, '--play-keys', file], 'needs decryption_key'],
  ] as const) {
    const { status, text } = await di('tenants', 'apps', 'add', 'other', ...args)
    expect([status, text]).toEqual([1, expect.stringContaining(message)])
  }
  const own = await di('attestation', 'check', file, '--tenant', 'other', '--keys', keys)
  expect(own.text).toContain('With --tenant the console uses its own: leave --keys out')
  // Without a tenant the app is not judged, and the challenge of the registration is.
  const alone = await di('attestation', 'check', file)
  expect(alone.text).toMatch(/^not judged +app, revocation$/m)
})

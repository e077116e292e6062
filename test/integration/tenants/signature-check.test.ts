// The signature debugger over the admin API, with the secrets that a real rotation left.
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SignatureCheck } from '#shared/core/telemetry/signature-check.ts'
import { createOperatorsRig, type OperatorsRig } from '../../support/http/operators-rig.ts'
import { toBody } from '../../support/http/tenant-client.ts'

let rig: OperatorsRig
let secret: string

beforeAll(async () => {
  rig = await createOperatorsRig()
  const token = rig.adminToken
  const made = await rig.must(201, 'POST', '/tenants', { token, body: { tenant_id: 'acme' } })
  secret = (made.body as unknown as { hmac_secret: string }).hmac_secret
})
afterAll(() => rig?.close())

const body = toBody('acme')
const sign = (key: string, of = body) => createHmac('sha256', key).update(of).digest('base64')

async function check(request: object): Promise<SignatureCheck> {
  const of = { token: rig.adminToken, body: request }
  const answer = await rig.must(200, 'POST', '/tenants/acme/signature-check', of)
  return answer.body as unknown as SignatureCheck
}

it('distinguishes a valid signature from a stale one, without a secret in its answer', async () => {
  const signature = sign(secret)
  expect(await check({ body, signature })).toMatchObject({ valid: true, findings: [] })
  const body_base64 = Buffer.from(body).toString('base64')
  expect(await check({ body_base64, signature })).toMatchObject({ valid: true })

  const token = rig.adminToken
  const rotated = await rig.must(200, 'POST', '/tenants/acme/rotate', { token, body: {} })
  const next = (rotated.body as unknown as { hmac_secret: string }).hmac_secret
  const stale = await check({ body, signature })
  expect(stale).toMatchObject({ valid: false, findings: [{ code: 'previous_secret' }] })
  expect(await check({ body, signature: sign(next) })).toMatchObject({ valid: true })
  for (const hidden of [secret, next]) expect(JSON.stringify(stale)).not.toContain(hidden)
})

it('writes the operator and the result into the audit log, and nothing of the body', async () => {
  const { cookie } = await rig.join('engineer', ['acme'])
  const of = { cookie, body: { body, signature: 'not base64!' } }
  await rig.must(200, 'POST', '/tenants/acme/signature-check', of)
  const audit = await rig.must(200, 'GET', '/tenants/acme/audit', { token: rig.adminToken })
  const data = audit.body.data as { action: string; actor: string; after: unknown }[]
  expect(data[0]).toMatchObject({
    action: 'signature.checked',
    after: { valid: false, findings: ['not_base64'] },
  })
  expect(data[0]!.actor).toContain('@')
  expect(JSON.stringify(data)).not.toContain('device-1')
})

it.each([
  ['neither body', { signature: 'x' }],
  ['both', { body, body_base64: '', signature: 'x' }],
  ['a body that is no base64', { body_base64: '?', signature: 'x' }],
  ['no signature', { body }],
  ['a body far too large', { body: 'x'.repeat(200_000), signature: 'x' }],
])('rejects %s', async (_, request) => {
  const of = { token: rig.adminToken, body: request }
  await rig.must(400, 'POST', '/tenants/acme/signature-check', of)
})

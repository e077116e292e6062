// TOTP and recovery codes of operators on a real Postgres: each code works once.
import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import {
  createOperatorsRig,
  type Member,
  type OperatorsRig,
  password,
} from '../../support/http/operators-rig.ts'

const stepMs = 30_000
let rig: OperatorsRig

beforeAll(async () => {
  rig = await createOperatorsRig()
})
afterAll(() => rig?.close())

/** The code of an authenticator app, `steps` from now. */
function toCode(secret: string, steps = 0): string {
  const timestamp = rig.deps.wallMs() + steps * stepMs
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
}

async function stepUp(member: Member, body: object = { password }): Promise<Member> {
  const of = { cookie: member.cookie, body }
  const stepped = await rig.must(200, 'POST', '/session/step-up', of)
  return { ...member, cookie: stepped.setCookie!.value }
}

type Enrolled = Member & { secret: string; codes: string[] }

async function enrol(): Promise<Enrolled> {
  const member = await stepUp(await rig.join('analyst'))
  const { cookie } = member
  const setup = await rig.must(200, 'POST', '/session/totp', { cookie })
  const { secret } = setup.body as { secret: string }
  const body = { code: toCode(secret) }
  const confirmed = await rig.must(200, 'POST', '/session/totp/confirm', { cookie, body })
  // The confirming code is used.
  rig.advance(stepMs)
  return { ...member, secret, codes: confirmed.body.recovery_codes }
}

const rest = { address: '198.51.100.40' }

describe('TOTP', () => {
  it('is active once one of its codes was confirmed, which needs a step-up first', async () => {
    const member = await rig.join('analyst')
    const early = await rig.call('POST', '/session/totp', { cookie: member.cookie })
    expect(early.status).toBe(403)
    expect(early.body.code).toBe('step_up_required')
    const { cookie, email } = await stepUp(member)
    const setup = await rig.must(200, 'POST', '/session/totp', { cookie })
    expect(Secret.fromBase32(setup.body.secret).bytes).toHaveLength(20)
    const url = new URL(setup.body.otpauth_url)
    expect(url.protocol).toBe('otpauth:')
    expect(url.searchParams.get('secret')).toBe(setup.body.secret)
    expect(decodeURIComponent(url.pathname)).toContain(email)
    const wrong = { cookie, body: { code: '000000' } }
    expect((await rig.call('POST', '/session/totp/confirm', wrong)).status).toBe(403)
    expect((await rig.signIn(email, rest)).status).toBe(200)
    const right = { cookie, body: { code: toCode(setup.body.secret) } }
    const confirmed = await rig.must(200, 'POST', '/session/totp/confirm', right)
    expect(new Set(confirmed.body.recovery_codes).size).toBe(10)
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    expect(shown.body.operator.totp).toBe(true)
    expect((await rig.signIn(email, rest)).body.code).toBe('totp_required')
    expect((await rig.call('POST', '/session/totp', { cookie })).status).toBe(409)
  })

  it('requires a code only after the correct password', async () => {
    const { email, secret } = await enrol()
    const wrong = { email, password: 'wrong wrong wrong', code: toCode(secret) }
    const refused = await rig.call('POST', '/session', { body: wrong, ...rest })
    expect(refused.body.code).toBe('unauthorized')
    const missing = await rig.signIn(email, rest)
    expect(missing.status).toBe(401)
    expect(missing.body.code).toBe('totp_required')
    expect(missing.setCookie).toBeUndefined()
  })

  it('accepts each code once, also in two concurrent sign-ins', async () => {
    const { email, secret } = await enrol()
    const code = toCode(secret)
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => rig.signIn(email, { ...rest, code })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
    expect((await rig.signIn(email, { ...rest, code })).body.code).toBe('totp_required')
    // An earlier code counts as used.
    expect((await rig.signIn(email, { ...rest, code: toCode(secret, -1) })).status).toBe(401)
    rig.advance(stepMs)
    expect((await rig.signIn(email, { ...rest, code: toCode(secret) })).status).toBe(200)
  })

  it('accepts a code one step early or late, and no other', async () => {
    const { email, secret } = await enrol()
    for (const steps of [-3, -2, 2, 3]) {
      const answer = await rig.signIn(email, { ...rest, code: toCode(secret, steps) })
      expect(answer.status, `${steps} steps`).toBe(401)
    }
    expect((await rig.signIn(email, { ...rest, code: toCode(secret, 1) })).status).toBe(200)
  })

  it('slows guesses', async () => {
    const { email, secret } = await enrol()
    const codes = new Set([-1, 0, 1].map((steps) => toCode(secret, steps)))
    const guesses = Array.from({ length: 20 }, (_, n) => `${100_000 + n}`)
    const statuses: number[] = []
    for (const code of guesses.filter((guess) => !codes.has(guess)).slice(0, 12)) {
      const address: string = `203.0.113.${statuses.length}`
      statuses.push((await rig.signIn(email, { code, address })).status)
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses.at(-1)).toBe(429)
  })

  it('allows a step-up by a code, which is then used', async () => {
    const member = await enrol()
    const code = toCode(member.secret)
    const { cookie } = await stepUp(member, { code })
    const again = { cookie, body: { code } }
    expect((await rig.call('POST', '/session/step-up', again)).status).toBe(403)
    expect((await rig.signIn(member.email, { ...rest, code })).status).toBe(401)
  })

  it('is switched off after a step-up, with its recovery codes', async () => {
    const member = await enrol()
    const plain = await rig.openSession(member.operatorId)
    const early = await rig.call('DELETE', '/session/totp', { cookie: plain })
    expect(early.body.code).toBe('step_up_required')
    await rig.must(204, 'DELETE', '/session/totp', { cookie: member.cookie })
    expect((await rig.signIn(member.email, rest)).status).toBe(200)
    const { rows } = await rig.postgres.query(
      'select 1 from operator_recovery_codes where operator_id = $1',
      [member.operatorId],
    )
    expect(rows).toEqual([])
  })

  it('stores the secret sealed and the recovery codes as hashes', async () => {
    const { secret, codes } = await enrol()
    for (const table of ['operators', 'operator_recovery_codes', 'audit_log']) {
      const { rows } = await rig.postgres.query(`select * from ${table}`)
      const text = JSON.stringify(rows)
      for (const clear of [secret, ...codes]) expect(text).not.toContain(clear)
    }
  })
})

describe('MASTER_KEY', () => {
  it('can be rotated: TOTP secrets are sealed again, only the new key opens them', async () => {
    const { email, secret } = await enrol()
    const next = randomBytes(32).toString('base64')
    const both = await rig.createApp({ sealer: createSealer([next, rig.masterKey]) })
    const of = { app: both, token: rig.adminToken }
    const answer = await rig.must(200, 'POST', '/secrets/rewrap', of)
    expect(answer.body.rewrapped).toBeGreaterThan(0)
    expect(answer.body.remaining).toBe(0)
    expect((await rig.must(200, 'POST', '/secrets/rewrap', of)).body.rewrapped).toBe(0)
    const alone = await rig.createApp({ sealer: createSealer([next]) })
    const body = { email, password, code: toCode(secret) }
    await rig.must(200, 'POST', '/session', { app: alone, body, ...rest })
    // The other tests continue with the previous key.
    const back = await rig.createApp({ sealer: createSealer([rig.masterKey, next]) })
    await rig.must(200, 'POST', '/secrets/rewrap', { app: back, token: rig.adminToken })
  })
})

describe('recovery codes', () => {
  it('sign in once each, in any spelling, with an audit entry', async () => {
    const { email, codes } = await enrol()
    const typed = codes[0]!.toUpperCase().replaceAll('-', ' ')
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => rig.signIn(email, { ...rest, code: typed })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
    expect((await rig.signIn(email, { ...rest, code: codes[0]! })).status).toBe(401)
    expect((await rig.signIn(email, { ...rest, code: codes[1]! })).status).toBe(200)
    const used = (await rig.readAudit()).filter(
      ({ actor, action }) => actor === email && action === 'operator.recovery_code_used',
    )
    expect(used).toHaveLength(2)
  })

  it('of one operator do not work for another', async () => {
    const [one, two] = [await enrol(), await enrol()]
    expect((await rig.signIn(one.email, { ...rest, code: two.codes[0]! })).status).toBe(401)
    expect((await rig.signIn(two.email, { ...rest, code: two.codes[0]! })).status).toBe(200)
  })
})

describe('a required second factor', () => {
  const setRule = (
    of: { cookie: string } | { token: string },
    tenant: string | null,
    on: boolean,
  ) =>
    rig.call('PUT', `${tenant === null ? '' : `/tenants/${tenant}`}/second-factor`, {
      ...of,
      body: { required: on },
    })
  const look = async (cookie: string, path = '/tenants') => {
    const { status, body } = await rig.call('GET', path, { cookie })
    return status === 403 ? body.code : status
  }
  const signIn = async ({ email }: Member, code?: string) =>
    (await rig.signIn(email, { ...rest, ...(code === undefined ? {} : { code }) })).setCookie!.value
  const asToken = { token: '' }

  beforeAll(async () => {
    asToken.token = rig.adminToken
    for (const tenant_id of ['strict', 'lax']) {
      await rig.must(201, 'POST', '/tenants', { ...asToken, body: { tenant_id } })
    }
  })

  it('of a tenant covers who may see it, from the next sign-in on, until it is set up', async () => {
    const lax = await rig.join('viewer', ['lax'])
    const strict = await rig.join('viewer', ['strict'])
    const ofAll = await rig.join('viewer')
    rig.advance(1_000)
    expect((await setRule(asToken, 'strict', true)).status).toBe(200)
    const present = { ...asToken }
    const rule = await rig.must(200, 'GET', '/tenants/strict/second-factor', present)
    expect(rule.body).toMatchObject({ required: true, required_of_all: false })
    // Sessions that began before go on.
    for (const { cookie } of [lax, strict, ofAll]) expect(await look(cookie)).toBe(200)
    expect(await look(await signIn(lax))).toBe(200)
    expect(await look(await signIn(ofAll))).toBe('totp_setup_required')
    const cookie = await signIn(strict)
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    expect(shown.body).toMatchObject({ must_enrol: true })
    const closed = ['/tenants', '/sessions', '/tenants/strict/alerts', '/tenants/lax/alerts']
    for (const path of closed) expect(await look(cookie, path)).toBe('totp_setup_required')
    const password2 = { cookie, body: { current: password, password } }
    expect((await rig.call('PUT', '/session/password', password2)).body.code).toBe(
      'totp_setup_required',
    )
    // A password that was typed just now is enough to set it up.
    const setup = await rig.must(200, 'POST', '/session/totp', { cookie })
    const body = { code: toCode(setup.body.secret) }
    await rig.must(200, 'POST', '/session/totp/confirm', { cookie, body })
    expect((await rig.must(200, 'GET', '/session', { cookie })).body).toMatchObject({
      must_enrol: false,
    })
    expect(await look(cookie)).toBe(200)
    const stepped = await stepUp({ ...strict, cookie })
    const off = await rig.call('DELETE', '/session/totp', { cookie: stepped.cookie })
    expect([off.status, off.body.code]).toEqual([409, 'conflict'])
    expect((await setRule(asToken, 'strict', false)).status).toBe(200)
    expect((await rig.call('DELETE', '/session/totp', { cookie: stepped.cookie })).status).toBe(204)
    expect(await look(await signIn(ofAll))).toBe(200)
  })

  it('needs a step-up again to be set up once the sign-in is older than one', async () => {
    const late = await rig.join('viewer', ['strict'])
    await setRule(asToken, 'strict', true)
    const cookie = await signIn(late)
    rig.advance(10 * 60_000)
    const early = await rig.call('POST', '/session/totp', { cookie })
    expect(early.body.code).toBe('step_up_required')
    const stepped = await stepUp({ ...late, cookie })
    await rig.must(200, 'POST', '/session/totp', { cookie: stepped.cookie })
    await setRule(asToken, 'strict', false)
  })

  it('of the console covers all but single sign-on, and who makes the rule has one', async () => {
    const member = await stepUp(await rig.join('admin'))
    const { email, operatorId } = member
    const refused = await setRule(member, null, true)
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
    // Of a session through single sign-on, the provider has asked for it.
    const bySso = await rig.openSession(operatorId, { steppedUp: true, by: 'oidc' })
    expect((await setRule({ cookie: bySso }, null, true)).status).toBe(200)
    expect((await setRule({ cookie: bySso }, null, true)).status).toBe(200)
    rig.advance(1)
    expect(await look(await rig.openSession(operatorId, { by: 'oidc' }))).toBe(200)
    expect(await look(await rig.openSession(operatorId))).toBe('totp_setup_required')
    expect(await look(await rig.openSession(operatorId, { by: 'link' }))).toBe(
      'totp_setup_required',
    )
    const invited = await rig.join('viewer', ['lax'])
    expect(await look(invited.cookie)).toBe('totp_setup_required')
    expect((await rig.call('GET', '/tenants', asToken)).status).toBe(200)
    expect((await setRule(asToken, null, false)).status).toBe(200)
    expect(await look(invited.cookie)).toBe(200)
    const entries = (await rig.readAudit()).filter(({ action }) => action === 'second_factor.set')
    expect(entries.map(({ actor, after }) => ({ actor, after }))).toEqual([
      { actor: 'admin', after: { required: false } },
      { actor: email, after: { required: true } },
    ])
  })
})

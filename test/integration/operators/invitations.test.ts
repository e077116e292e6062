// Invitations, and administrators' changes of operators, on a real Postgres.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createOperatorsRig,
  type OperatorsRig,
  origin,
  password,
} from '../../support/http/operators-rig.ts'

const hourMs = 3_600_000
let rig: OperatorsRig

beforeAll(async () => {
  rig = await createOperatorsRig()
  for (const tenant_id of ['acme', 'globex']) {
    await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
  }
})
afterAll(() => rig?.close())

const byToken = (body: object) => ({ token: rig.adminToken, body })
const accept = (token: string, more: object = {}) =>
  rig.call('POST', `/invitations/${token}`, { body: { name: 'Ada', password, ...more } })

it.each([
  ['PATCH', '/operators/%00', { role: 'viewer' }],
  ['POST', '/operators/%00/reset', {}],
  ['DELETE', '/sessions/%00', undefined],
] as const)('%s %s is rejected: no database holds such an id', async (method, path, body) => {
  const { cookie } = await rig.join('admin')
  const stepUp = await rig.call('POST', '/session/step-up', { cookie, body: { password } })
  const answer = await rig.call(method, path, { cookie: stepUp.setCookie!.value, body })
  expect([400, 404], answer.text).toContain(answer.status)
})

describe('an invitation', () => {
  it('creates an account with its role and tenants, and signs in', async () => {
    const body = { email: ' Ada@Example.com', role: 'analyst', tenants: ['acme'], name: 'Ada L.' }
    const invited = await rig.must(201, 'POST', '/operators/invitations', byToken(body))
    const { url, expires_at } = invited.body
    expect(url).toMatch(/^https:\/\/console\.example\/invite#[\w-]{43}$/)
    expect(Date.parse(expires_at) - rig.deps.wallMs()).toBeGreaterThan(167 * hourMs)
    const token = url.split('#')[1]!
    const shown = await rig.must(200, 'GET', `/invitations/${token}`)
    expect(shown.body).toEqual({
      email: 'ada@example.com',
      role: 'analyst',
      reset: false,
      expires_at,
    })
    const joined = await accept(token, { name: '' })
    expect(joined.status, joined.text).toBe(200)
    expect(joined.body.operator).toMatchObject({
      email: 'ada@example.com',
      name: 'Ada L.',
      role: 'analyst',
      tenants: ['acme'],
    })
    await rig.must(200, 'GET', '/session', { cookie: joined.setCookie!.value })
  })

  it('keeps the path of PUBLIC_URL in its link', async () => {
    const app = await rig.createApp({ publicUrl: () => `${origin}/fraud/console/` })
    const body = { email: 'prefix@example.com', role: 'viewer' }
    const invited = await rig.must(201, 'POST', '/operators/invitations', { ...byToken(body), app })
    expect(invited.body.url).toMatch(/^https:\/\/console\.example\/fraud\/console\/invite#/)
  })

  it('for one email created several times at once leaves the last one open', async () => {
    const body = { email: 'often@example.com', role: 'viewer' }
    const invite = () => rig.call('POST', '/operators/invitations', byToken(body))
    const answers = await Promise.all(Array.from({ length: 8 }, invite))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201))
    const tokens = answers.map((answer) => answer.body.url.split('#')[1] as string)
    const shown = await Promise.all(tokens.map((token) => rig.call('GET', `/invitations/${token}`)))
    expect(shown.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  it('works once, also for two concurrent uses', async () => {
    const { token } = await rig.invite('viewer')
    const answers = await Promise.all([accept(token), accept(token), accept(token)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404])
    expect((await accept(token)).body.code).toBe('invitation_not_found')
    expect((await rig.call('GET', `/invitations/${token}`)).status).toBe(404)
  })

  it('stays open when the password is rejected', async () => {
    const { token } = await rig.invite('viewer')
    for (const [weak, why] of [
      ['short', 'must have at least 12 characters'],
      ['qwertyuiop123', 'is one of the most common passwords'],
    ]) {
      const refused = await accept(token, { password: weak })
      expect(refused.status).toBe(400)
      expect(refused.body.errors).toEqual([{ path: '$.password', message: why }])
    }
    expect((await accept(token)).status).toBe(200)
  })

  it('ends by time and by a newer one; unknown, used and expired ones look alike', async () => {
    const body = { email: 'twice@example.com', role: 'viewer', valid_hours: 24 }
    const send = async () => {
      const answer = await rig.must(201, 'POST', '/operators/invitations', byToken(body))
      return answer.body.url.split('#')[1] as string
    }
    const first = await send()
    const second = await send()
    const answers = [await accept(first), await accept('A'.repeat(43))]
    await rig.must(200, 'GET', `/invitations/${second}`)
    rig.advance(24 * hourMs + 1)
    answers.push(await accept(second))
    const bodies = answers.map(({ body: { request_id: _, ...rest } }) => rest)
    for (const one of bodies) expect(one).toEqual(bodies[0])
    const { data } = (
      await rig.must(200, 'GET', '/operators/invitations', { token: rig.adminToken })
    ).body
    const states = data.filter((one) => one.email === body.email)
    expect(states.map((one) => one.state)).toEqual(['expired', 'revoked'])
    expect(JSON.stringify(data)).not.toContain(second)
  })

  it('is rejected for an existing operator and for an unknown tenant', async () => {
    const { email } = await rig.join('viewer')
    const again = await rig.call(
      'POST',
      '/operators/invitations',
      byToken({ email, role: 'admin' }),
    )
    expect(again.status).toBe(409)
    expect(again.body.code).toBe('operator_exists')
    const body = { email: 'lost@example.com', role: 'viewer', tenants: ['acme', 'initech'] }
    const lost = await rig.call('POST', '/operators/invitations', byToken(body))
    expect(lost.status).toBe(404)
    expect(lost.body.detail).toContain('initech')
    for (const bad of ['no email', 'a@b@c', 'a@b\0.c', `${'x'.repeat(300)}@y.z`]) {
      const refused = { email: bad, role: 'viewer' }
      const answer = await rig.call('POST', '/operators/invitations', byToken(refused))
      expect(answer.status, bad).toBe(400)
    }
  })

  it('cannot be guessed many times from one address', async () => {
    const statuses = []
    for (let n = 0; n < 40; n++) {
      const token = `${n}`.padStart(43, 'x')
      const answer = await rig.call('GET', `/invitations/${token}`, { address: '203.0.113.77' })
      statuses.push(answer.status)
    }
    expect(statuses[0]).toBe(404)
    expect(statuses.at(-1)).toBe(429)
  })
})

describe('administrators', () => {
  const change = (operatorId: string, body: object) =>
    rig.call('PATCH', `/operators/${operatorId}`, byToken(body))

  it('change role, tenants and name, with immediate effect on open sessions', async () => {
    const { operatorId, cookie } = await rig.join('viewer')
    const changed = await change(operatorId, { role: 'engineer', tenants: ['acme'], name: 'Grace' })
    expect(changed.status, changed.text).toBe(200)
    expect(changed.body).toMatchObject({ role: 'engineer', tenants: ['acme'], name: 'Grace' })
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    expect(shown.body.operator).toMatchObject({ role: 'engineer', tenants: ['acme'] })
    await rig.must(404, 'GET', '/tenants/globex', { cookie })
    expect((await change('opr_nobody', { role: 'admin' })).body.code).toBe('operator_not_found')
    expect((await change(operatorId, { tenants: ['initech'] })).status).toBe(404)
    expect((await change(operatorId, { tenants: [] })).status).toBe(400)
    const entry = (await rig.readAudit()).find(({ action }) => action === 'operator.changed')
    expect(entry).toMatchObject({
      actor: 'admin',
      before: { role: 'viewer', tenants: 'all' },
      after: { role: 'engineer', tenants: ['acme'], name: 'Grace' },
    })
  })

  it('always keep one active administrator of all tenants', async () => {
    const [one, two] = [await rig.join('admin'), await rig.join('admin')]
    await rig.join('admin', ['acme'])
    const { data } = (await rig.must(200, 'GET', '/operators', { token: rig.adminToken })).body
    const others = data.filter(
      (of) =>
        of.role === 'admin' &&
        of.tenants === 'all' &&
        ![one.operatorId, two.operatorId].includes(of.operator_id),
    )
    for (const { operator_id } of others) await change(operator_id, { role: 'viewer' })
    // Concurrently: each alone would be allowed.
    const answers = await Promise.all([
      change(one.operatorId, { role: 'viewer' }),
      change(two.operatorId, { disabled: true }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)!.body.code).toBe('last_admin')
    const last = answers[0]!.status === 409 ? one : two
    for (const body of [{ role: 'engineer' }, { disabled: true }, { tenants: ['acme'] }]) {
      expect((await change(last.operatorId, body)).body.code).toBe('last_admin')
    }
    expect((await change(last.operatorId, { name: 'The last one' })).status).toBe(200)
  })

  it('need a step-up for operators, and are named in the audit log', async () => {
    const admin = await rig.join('admin')
    const plain = { cookie: admin.cookie, body: { email: 'new@example.com', role: 'viewer' } }
    const early = await rig.call('POST', '/operators/invitations', plain)
    expect(early.body.code).toBe('step_up_required')
    const cookie = await rig.openSession(admin.operatorId, { steppedUp: true })
    await rig.must(201, 'POST', '/operators/invitations', { ...plain, cookie })
    rig.advance(61_000)
    const late = await rig.call('POST', '/operators/invitations', { ...plain, cookie })
    expect(late.body.code).toBe('step_up_required')
    const invited = (await rig.readAudit()).filter(
      ({ actor, action }) => actor === admin.email && action === 'operator.invited',
    )
    expect(invited).toHaveLength(1)
  })
})

describe('a withdrawn invitation', () => {
  it('opens nothing, is shown as revoked and audited, and cannot be withdrawn twice', async () => {
    const admin = await rig.join('admin')
    const cookie = await rig.openSession(admin.operatorId, { steppedUp: true })
    const body = { email: 'withdrawn@example.com', role: 'viewer' }
    const made = await rig.must(201, 'POST', '/operators/invitations', { cookie, body })
    const list = async () => {
      const { body: listed } = await rig.must(200, 'GET', '/operators/invitations', { cookie })
      return listed.data as unknown as { invitation_id: string; email: string; state: string }[]
    }
    const findOwn = async () => (await list()).find(({ email }) => email === body.email)!
    const path = '/operators/invitations/withdraw'
    const wanted = { body: { invitation_id: (await findOwn()).invitation_id } }
    const viewer = await rig.join('viewer')
    expect((await rig.call('POST', path, { ...wanted, cookie: viewer.cookie })).status).toBe(403)
    expect((await rig.call('POST', path, { ...wanted, cookie })).status).toBe(200)
    const token = made.body.url.split('#')[1]!
    const opened = await rig.call('GET', `/invitations/${token}`)
    expect(opened.body.code).toBe('invitation_not_found')
    const again = await rig.call('POST', path, { ...wanted, cookie })
    expect(again.body.code).toBe('invitation_not_found')
    expect((await findOwn()).state).toBe('revoked')
    const entries = (await rig.readAudit()).filter(
      ({ actor, action }) => actor === admin.email && action === 'operator.invitation_withdrawn',
    )
    expect(entries).toHaveLength(1)
  })
})

describe('a lost password', () => {
  const startReset = (operatorId: string) =>
    rig.call('POST', `/operators/${operatorId}/reset`, { token: rig.adminToken })

  it('is replaced by a link that works once and ends all earlier sessions', async () => {
    const { email, operatorId, cookie } = await rig.join('engineer', ['acme'])
    const started = await startReset(operatorId)
    expect(started.status, started.text).toBe(201)
    await rig.must(200, 'GET', '/session', { cookie })
    const token = started.body.url.split('#')[1]!
    const next = 'a sentence for the second time'
    const answer = await accept(token, { name: 'Mallory', password: next })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.operator).toMatchObject({
      operator_id: operatorId,
      email,
      name: 'The engineer',
      role: 'engineer',
      tenants: ['acme'],
      totp: false,
    })
    await rig.must(401, 'GET', '/session', { cookie })
    expect((await accept(token)).status).toBe(404)
    expect((await rig.signIn(email)).status).toBe(401)
    await rig.must(200, 'POST', '/session', { body: { email, password: next } })
    const actions = (await rig.readAudit()).map(({ actor, action }) => `${actor} ${action}`)
    expect(actions).toContain('admin operator.reset_started')
    expect(actions).toContain(`${email} operator.reset`)
  })

  it('cannot be used by a disabled operator', async () => {
    const { operatorId } = await rig.join('engineer')
    const started = await startReset(operatorId)
    const body = { disabled: true }
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, byToken(body))
    expect((await accept(started.body.url.split('#')[1]!)).status).toBe(404)
    expect((await startReset(operatorId)).status).toBe(409)
    expect((await startReset('opr_nobody')).status).toBe(404)
  })
})

describe('the audit log', () => {
  it('has an operator’s actions under their email', async () => {
    const engineer = await rig.join('engineer')
    const { cookie } = engineer
    const body = { url: 'https://receiver.example/hook' }
    await rig.must(200, 'PUT', '/tenants/acme/webhook', { cookie, body })
    await rig.must(200, 'POST', '/session/step-up', { cookie, body: { password } })
    const ofTenant = await rig.must(200, 'GET', '/tenants/acme/audit', { token: rig.adminToken })
    expect(ofTenant.body.data[0]).toMatchObject({ actor: engineer.email, action: 'webhook.set' })
    const own = (await rig.readAudit()).filter(({ actor }) => actor === engineer.email)
    expect(own.map(({ action }) => action)).toEqual(['operator.stepped_up', 'operator.joined'])
  })
})

// Sessions of operators on a real Postgres: how they start, last and end, and that other sites
// cannot use them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tokenBytes, toToken } from '#shared/core/operators/operator-credentials.ts'
import { removeExpiredSessions } from '#shared/io/operators/session-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { testLog } from '../../support/http/console-rig.ts'
import {
  cookieName,
  createOperatorsRig,
  type Member,
  type OperatorsRig,
  origin,
  password,
} from '../../support/http/operators-rig.ts'
import { sumOf } from '../../support/process/read-metric.ts'

const minuteMs = 60_000
let rig: OperatorsRig

beforeAll(async () => {
  rig = await createOperatorsRig()
})
afterAll(() => rig?.close())

const isAlive = async (cookie: string) =>
  (await rig.call('GET', '/session', { cookie })).status === 200

/** Without the headers that differ in every answer. */
function toComparable(headers: Record<string, unknown>) {
  const { 'x-request-id': _, date: __, ...rest } = headers
  return rest
}

describe('a sign-in', () => {
  it('sets a cookie that scripts and other sites cannot use', async () => {
    const { email } = await rig.join('viewer')
    const signedIn = await rig.signIn(email)
    expect(signedIn.status, signedIn.text).toBe(200)
    const { setCookie } = signedIn
    expect(setCookie).toMatchObject({
      name: cookieName,
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'Strict',
    })
    expect(setCookie).not.toHaveProperty('domain')
    const shown = await rig.must(200, 'GET', '/session', { cookie: setCookie!.value })
    expect(shown.body).toEqual(signedIn.body)
    expect(shown.body).toMatchObject({
      operator: { email, name: 'The viewer', role: 'viewer', tenants: 'all', totp: false },
      session: { step_up_until: null },
    })
    const { created_at, expires_at, idle_expires_at } = shown.body.session
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(720 * minuteMs)
    expect(Date.parse(idle_expires_at) - Date.parse(created_at)).toBe(60 * minuteMs)
    expect(shown.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
    })
  })

  it('accepts an email in any case and with spaces around it', async () => {
    const { email } = await rig.join('viewer')
    expect((await rig.signIn(` ${email.toUpperCase()} `)).status).toBe(200)
  })

  it('stores no token and no password in clear text', async () => {
    const { email, cookie } = await rig.join('viewer')
    const { token } = await rig.invite('viewer')
    for (const table of ['operators', 'operator_sessions', 'operator_invitations', 'audit_log']) {
      const { rows } = await rig.postgres.query(`select * from ${table}`)
      const stored = JSON.stringify(rows)
      for (const secret of [cookie, token, password]) expect(stored).not.toContain(secret)
    }
    const { rows } = await rig.postgres.query<{ password_hash: string }>(
      'select password_hash from operators where email = $1',
      [email],
    )
    expect(rows[0]!.password_hash).toMatch(/^\$argon2id\$v=19\$/)
  })

  it('gets equal answers for an unknown, a disabled account and a wrong password', async () => {
    const { email } = await rig.join('viewer')
    const { email: gone, operatorId } = await rig.join('viewer')
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, {
      token: rig.adminToken,
      body: { disabled: true },
    })
    const tries = [
      { email, password: 'not the password at all' },
      { email: 'stranger@example.com', password },
      { email: gone, password },
      { email: '\0', password },
      { email: '', password: '' },
    ]
    const answers = []
    for (const body of tries) answers.push(await rig.call('POST', '/session', { body }))
    const bodies = answers.map(({ body: { request_id: _, ...body } }) => body)
    for (const body of bodies) expect(body).toEqual(bodies[0])
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(answer.setCookie).toBeUndefined()
      expect(toComparable(answer.headers)).toEqual(toComparable(answers[0]!.headers))
    }
  })

  it('computes one hash, whether the account exists or not', async () => {
    const verified: (string | null)[] = []
    const { passwords } = rig.deps
    const app = await rig.createApp({
      passwords: {
        ...passwords,
        verify: (typed, stored, of) => {
          verified.push(stored === null ? null : 'a hash')
          return passwords.verify(typed, stored, of)
        },
      },
    })
    const { email, operatorId } = await rig.join('viewer')
    const tryBoth = async () => {
      for (const name of [email, 'nobody@example.com']) {
        const body = { email: name, password: 'wrong wrong wrong' }
        await rig.must(401, 'POST', '/session', { app, body })
      }
    }
    await tryBoth()
    const body = { disabled: true }
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, { token: rig.adminToken, body })
    await tryBoth()
    expect(verified).toEqual(['a hash', null, null, null])
  })

  it('is slowed per account from any address, except for one that signed in before', async () => {
    const { email } = await rig.join('viewer')
    const home = '198.51.100.9'
    expect((await rig.signIn(email, { address: home })).status).toBe(200)
    const wrong = (n: number) =>
      rig.call('POST', '/session', {
        body: { email, password: 'wrong wrong wrong' },
        address: `203.0.113.${n}`,
      })
    const statuses = []
    for (let n = 0; n < 14; n++) statuses.push((await wrong(n)).status)
    expect(statuses.filter((status) => status === 401).length).toBe(10)
    const last = await wrong(99)
    expect(last.status).toBe(429)
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(30)
    expect(last.body.code).toBe('rate_limited')
    // An unknown account is slowed equally.
    const ghost = []
    for (let n = 0; n < 11; n++) {
      const body = { email: 'ghost@example.com', password: 'wrong wrong wrong' }
      ghost.push(await rig.call('POST', '/session', { body, address: `203.0.113.${100 + n}` }))
    }
    expect(ghost.map(({ status }) => status)).toEqual([...Array(10).fill(401), 429])
    expect((await rig.signIn(email, { address: '203.0.113.200' })).status).toBe(429)
    expect((await rig.signIn(email, { address: home })).status).toBe(200)
    rig.advance(61_000)
    expect((await rig.signIn(email, { address: '203.0.113.200' })).status).toBe(200)
  })

  it('is slowed per address over all accounts', async () => {
    const statuses = []
    for (let n = 0; n < 34; n++) {
      const body = { email: `any-${n}@example.com`, password: 'wrong wrong wrong' }
      statuses.push((await rig.call('POST', '/session', { body, address: '2001:db8::1' })).status)
    }
    expect(statuses.at(-1)).toBe(429)
    expect(statuses.filter((status) => status === 401).length).toBeLessThan(33)
    // Other addresses of the same network count as the same client.
    const body = { email: 'any@example.com', password: 'wrong wrong wrong' }
    const beside = await rig.call('POST', '/session', { body, address: '2001:db8::2' })
    expect(beside.status).toBe(429)
  })

  it('is slowed per address behind a proxy that writes the port of each connection', async () => {
    const app = await rig.createApp({ auditEveryMs: 20 }, ['10.0.0.1'])
    const guess = async (client: string, n: number) => {
      const body = { email: `port-${n}@example.com`, password: 'wrong wrong wrong' }
      const headers = { 'x-forwarded-for': client }
      return (await rig.call('POST', '/session', { app, body, headers, address: '10.0.0.1' }))
        .status
    }
    for (const [address, same] of [
      ['203.0.113.230', '[::ffff:203.0.113.230]:51000'],
      ['[2001:db8:9::1]', '2001:DB8:9:0:0:0:0:2'],
    ] as const) {
      const statuses = []
      for (let n = 0; n < 34; n++) statuses.push(await guess(`${address}:${50_000 + n}`, n))
      expect(statuses.at(-1)).toBe(429)
      expect(await guess(same, 99)).toBe(429)
    }
    expect(await guess('203.0.113.231:50000', 99)).toBe(401)
    await app.close()
    const text = JSON.stringify(await rig.readAudit())
    expect(text).toContain('"203.0.113.230"')
    expect(text).not.toContain('203.0.113.230:')
  })

  it('leaves rejections in the audit log, summed up and without text from strangers', async () => {
    const app = await rig.createApp({ auditEveryMs: 20 })
    const { email } = await rig.join('viewer')
    for (const name of [email, 'my-own-password']) {
      const body = { email: name, password: 'wrong wrong wrong' }
      await rig.call('POST', '/session', { app, body, address: '198.51.100.50' })
    }
    await app.close()
    const rows = (await rig.readAudit()).filter(
      ({ action }) => action === 'operator.sign_in_refused',
    )
    // Under the name of the account; a name without an account is not repeated.
    expect(rows.map(({ actor }) => actor)).toEqual(expect.arrayContaining([email, 'unknown']))
    const text = JSON.stringify(rows)
    expect(text).toContain(email)
    expect(text).toContain('198.51.100.50')
    expect(text).not.toContain('my-own-password')
  })
})

describe('the metrics', () => {
  it('count sign-ins by outcome', async () => {
    const metrics = createMetrics('console')
    const app = await createConsoleApp(rig.deps, { log: testLog, metrics })
    const { email } = await rig.join('viewer')
    const headers = { origin, 'content-type': 'application/json' }
    for (const typed of [password, 'wrong wrong wrong', 'wrong once again']) {
      const payload = JSON.stringify({ email, password: typed })
      await app.inject({ method: 'POST', url: '/admin/v1/session', headers, payload })
    }
    const text = await metrics.registry.metrics()
    expect(sumOf(text, 'di_console_sign_ins_total', { outcome: 'signed_in' })).toBe(1)
    expect(sumOf(text, 'di_console_sign_ins_total', { outcome: 'unauthorized' })).toBe(2)
    await app.close()
  })
})

describe('a session', () => {
  let member: Member
  beforeAll(async () => {
    member = await rig.join('viewer')
  })

  it('ends an hour after its last use', async () => {
    const cookie = await rig.openSession(member.operatorId)
    for (let n = 0; n < 3; n++) {
      rig.advance(55 * minuteMs)
      expect(await isAlive(cookie)).toBe(true)
    }
    rig.advance(60 * minuteMs + 1)
    expect(await isAlive(cookie)).toBe(false)
  })

  it('ends after twelve hours, even in continuous use', async () => {
    const cookie = await rig.openSession(member.operatorId)
    for (let n = 0; n < 14; n++) {
      rig.advance(50 * minuteMs)
      expect(await isAlive(cookie)).toBe(true)
    }
    rig.advance(20 * minuteMs)
    expect(await isAlive(cookie)).toBe(false)
    // Retention removes expired rows in small steps, and no others.
    const alive = await rig.openSession(member.operatorId)
    const nowMs = rig.deps.wallMs()
    expect(await removeExpiredSessions(rig.postgres, nowMs, 2)).toBe(2)
    await removeExpiredSessions(rig.postgres, nowMs, 1_000)
    expect(await isAlive(alive)).toBe(true)
    const { rows } = await rig.postgres.query<{ created_at: Date }>(
      'select created_at from operator_sessions',
    )
    for (const row of rows) {
      expect(rig.deps.wallMs() - row.created_at.getTime()).toBeLessThan(720 * minuteMs)
    }
  })

  it('ends by signing out, for this browser only', async () => {
    const [one, two] = await Promise.all([
      rig.openSession(member.operatorId),
      rig.openSession(member.operatorId),
    ])
    const out = await rig.must(204, 'DELETE', '/session', { cookie: one })
    expect(out.setCookie).toMatchObject({ name: cookieName, value: '' })
    expect(await isAlive(one)).toBe(false)
    expect(await isAlive(two)).toBe(true)
  })

  it('gets a new token at sign-in, with any earlier cookie', async () => {
    const planted = 'A'.repeat(43)
    const body = { email: member.email, password }
    const signedIn = await rig.must(200, 'POST', '/session', {
      body,
      cookie: planted,
      address: '198.51.100.21',
    })
    expect(signedIn.setCookie!.value).toMatch(/^[\w-]{43}$/)
    expect(signedIn.setCookie!.value).not.toBe(planted)
    expect(await isAlive(planted)).toBe(false)
  })

  it('gets a new token at step-up, and the old one is invalid', async () => {
    const { cookie } = await rig.join('viewer')
    const stepped = await rig.must(200, 'POST', '/session/step-up', { cookie, body: { password } })
    const fresh = stepped.setCookie!.value
    expect(fresh).not.toBe(cookie)
    expect(await isAlive(cookie)).toBe(false)
    const shown = await rig.must(200, 'GET', '/session', { cookie: fresh })
    const untilMs = Date.parse(shown.body.session.step_up_until)
    expect(untilMs - rig.deps.wallMs()).toBeGreaterThan(9 * minuteMs)
    expect(untilMs - rig.deps.wallMs()).toBeLessThanOrEqual(10 * minuteMs)
    expect(shown.body.session.session_id).toBe(stepped.body.session.session_id)
  })

  it('is found at once while strangers send hundreds of made-up cookies', async () => {
    const { operatorId } = await rig.join('viewer')
    const app = await rig.createApp({})
    const guesses = Array.from({ length: 400 }, (_, n) => {
      const cookie = toToken(Buffer.alloc(tokenBytes, `guess ${n}`))
      return rig.call('GET', '/session', { app, cookie, address: '203.0.115.1' })
    })
    // A session that this console has not seen yet: from the same address, and from another one.
    const cookie = await rig.openSession(operatorId)
    for (const address of ['203.0.115.1', '203.0.115.2']) {
      expect((await rig.call('GET', '/session', { app, cookie, address })).status).toBe(200)
    }
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([401]))
  })

  it.each([
    ['the session', 'DELETE', '/session', undefined],
    ['the account', 'PATCH', '/operators/:id', { disabled: true }],
    ['the right to the tenant', 'PATCH', '/operators/:id', { tenants: ['elsewhere'] }],
  ])('ends its streams of alerts together with %s', async (_, method, path, body) => {
    for (const tenant_id of ['streamed', 'elsewhere']) {
      await rig.call('POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
    }
    const { operatorId, cookie } = await rig.join('viewer', ['streamed'])
    const app = await rig.createApp({})
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const open = (headers: Record<string, string>) =>
      fetch(`${url}/admin/v1/tenants/streamed/alerts/stream`, { headers })
    const others = await open({ authorization: `Bearer ${rig.adminToken}` })
    const own = await open({ cookie: `${cookieName}=${cookie}` })
    expect([own.status, others.status]).toEqual([200, 200])
    const of = method === 'DELETE' ? { cookie } : { token: rig.adminToken, body }
    const answer = await rig.call(method, path.replace(':id', operatorId), of)
    expect(answer.status).toBeLessThan(300)
    expect(await own.text()).toMatch(/event: ready/)
    const stillOpen = others.body!.getReader()
    expect((await stillOpen.read()).done).toBe(false)
    await stillOpen.cancel()
  })

  it('can step up while others guess the password from many addresses', async () => {
    const { email, cookie } = await rig.join('viewer')
    for (let n = 0; n < 12; n++) {
      const body = { email, password: 'wrong wrong wrong' }
      await rig.call('POST', '/session', { body, address: `203.0.114.${n}` })
    }
    expect((await rig.signIn(email, { address: '203.0.114.200' })).status).toBe(429)
    await rig.must(200, 'POST', '/session/step-up', { cookie, body: { password } })
  })

  it('is no way to many guesses from many addresses, and the operator can step up meanwhile', async () => {
    const { email } = await rig.join('viewer')
    const { value: cookie } = (await rig.signIn(email, { address: '198.51.100.20' })).setCookie!
    const metrics = createMetrics('console')
    const app = await createConsoleApp(rig.deps, { log: testLog, metrics })
    const home = '198.51.100.20'
    await rig.must(200, 'POST', '/session', { app, address: home, body: { email, password } })
    const statuses: number[] = []
    for (let n = 0; n < 25; n++) {
      const address = `203.0.116.${n}`
      const body = { password: 'wrong wrong wrong' }
      const answer = await rig.call('POST', '/session/step-up', { app, cookie, body, address })
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([...Array(20).fill(403), ...Array(5).fill(429)])
    const limited = await metrics.registry.metrics()
    expect(sumOf(limited, 'di_console_attempts_limited_total', { by: 'operator' })).toBe(5)
    const own = { app, cookie, body: { password }, address: home }
    await rig.must(200, 'POST', '/session/step-up', own)
    await app.close()
  })

  it('does not step up by a wrong password, and slows such attempts', async () => {
    const { cookie } = await rig.join('viewer')
    const statuses = []
    for (let n = 0; n < 11; n++) {
      const answer = await rig.call('POST', '/session/step-up', {
        cookie,
        body: { password: 'wrong wrong wrong' },
      })
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([...Array(10).fill(403), 429])
    expect((await rig.call('POST', '/session/step-up', { cookie, body: {} })).status).toBe(400)
    expect(await isAlive(cookie)).toBe(true)
  })

  it('ends with all others of a disabled account, and no new one begins', async () => {
    const { email, operatorId, cookie } = await rig.join('engineer')
    const other = await rig.openSession(operatorId)
    const of = { token: rig.adminToken }
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, { ...of, body: { disabled: true } })
    expect(await isAlive(cookie)).toBe(false)
    expect(await isAlive(other)).toBe(false)
    expect((await rig.signIn(email, { address: '198.51.100.22' })).status).toBe(401)
    // A row that was inserted directly is invalid, too.
    expect(await isAlive(await rig.openSession(operatorId))).toBe(false)
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, { ...of, body: { disabled: false } })
    expect(await isAlive(cookie)).toBe(false)
    expect((await rig.signIn(email, { address: '198.51.100.22' })).status).toBe(200)
  })

  it('ends when the password changes, except the one that changed it', async () => {
    const { email, operatorId, cookie } = await rig.join('viewer')
    const other = await rig.openSession(operatorId)
    const change = (body: object, with_: string) =>
      rig.call('PUT', '/session/password', { cookie: with_, body })
    const next = 'another sentence of the same person'
    expect((await change({ current: 'wrong wrong wrong', password: next }, cookie)).status).toBe(
      403,
    )
    const common = await change({ current: password, password: 'Password2024!' }, cookie)
    expect(common.status).toBe(400)
    expect(common.body.errors).toEqual([
      { path: '$.password', message: 'is one of the most common passwords' },
    ])
    const changed = await change({ current: password, password: next }, cookie)
    expect(changed.status, changed.text).toBe(200)
    expect(await isAlive(cookie)).toBe(false)
    expect(await isAlive(other)).toBe(false)
    expect(await isAlive(changed.setCookie!.value)).toBe(true)
    expect((await rig.signIn(email, { address: '198.51.100.23' })).status).toBe(401)
    const body = { email, password: next }
    await rig.must(200, 'POST', '/session', { body, address: '198.51.100.23' })
  })

  it('is listed and ended by its owner and by administrators only', async () => {
    const owner = await rig.join('analyst')
    const peer = await rig.join('engineer')
    const admin = await rig.join('admin')
    const scoped = await rig.join('admin', [await createTenant()])
    const listed = await rig.must(200, 'GET', '/sessions', { cookie: owner.cookie })
    expect(listed.body.data).toHaveLength(1)
    const [session] = listed.body.data
    expect(session).toMatchObject({ operator_id: owner.operatorId, current: true })
    const path = `/sessions?operator_id=${owner.operatorId}`
    await rig.must(403, 'GET', path, { cookie: peer.cookie })
    await rig.must(403, 'GET', path, { cookie: scoped.cookie })
    const seen = await rig.must(200, 'GET', path, { cookie: admin.cookie })
    expect(seen.body.data).toEqual([{ ...session, current: false }])
    const of = `/sessions/${session!.session_id}`
    await rig.must(404, 'DELETE', of, { cookie: peer.cookie })
    await rig.must(404, 'DELETE', of, { cookie: scoped.cookie })
    await rig.must(204, 'DELETE', of, { cookie: admin.cookie })
    expect(await isAlive(owner.cookie)).toBe(false)
  })

  it('is one of at most twenty per operator', async () => {
    const { operatorId, cookie } = await rig.join('viewer')
    rig.advance(1_000)
    const later = []
    for (let n = 0; n < 20; n++) later.push(await rig.openSession(operatorId))
    expect(await isAlive(cookie)).toBe(false)
    for (const one of later) expect(await isAlive(one)).toBe(true)
  })

  it('is never created from the admin token', async () => {
    for (const path of ['/session', '/sessions']) {
      await rig.must(401, 'GET', path, { token: rig.adminToken })
    }
    const body = { password: rig.adminToken }
    const of = { token: rig.adminToken, body }
    expect((await rig.must(401, 'POST', '/session/step-up', of)).setCookie).toBeUndefined()
  })
})

async function createTenant(): Promise<string> {
  const tenant_id = `tenant-${Math.floor(performance.now() * 1_000)}`
  await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
  return tenant_id
}

describe('requests from other sites', () => {
  let cookie: string
  beforeAll(async () => {
    cookie = (await rig.join('admin')).cookie
  })
  const signOut = (headers: Record<string, string | undefined>) =>
    rig.call('DELETE', '/session', { cookie, headers })

  it('are rejected without the right Origin, and the answer names PUBLIC_URL', async () => {
    for (const wrong of [
      undefined,
      'null',
      'https://evil.example',
      'http://console.example',
      'https://console.example:8443',
      'https://console.example.evil.example',
    ]) {
      const answer = await signOut({ origin: wrong })
      expect(answer.status, wrong ?? 'none').toBe(403)
      expect(answer.body.code).toBe('origin_refused')
      expect(answer.body.detail).toContain(`PUBLIC_URL is ${origin}`)
    }
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect((await signOut({ 'sec-fetch-site': site })).body.code).toBe('origin_refused')
    }
    expect(await isAlive(cookie)).toBe(true)
    expect((await signOut({ 'sec-fetch-site': 'same-origin' })).status).toBe(204)
  })

  it('cannot sign a browser in', async () => {
    const { email } = await rig.join('viewer')
    const { token } = await rig.invite('viewer')
    const headers = { origin: 'https://evil.example' }
    const body = { email, password }
    const signIn = await rig.call('POST', '/session', { body, headers, address: '198.51.100.30' })
    expect(signIn.body.code).toBe('origin_refused')
    const accept = await rig.call('POST', `/invitations/${token}`, {
      body: { name: 'Eve', password },
      headers,
    })
    expect(accept.body.code).toBe('origin_refused')
  })

  it('are rejected as forms, which browsers send without a preflight', async () => {
    const member = await rig.join('admin')
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=x',
    ]) {
      const answer = await rig.call('POST', '/tenants', {
        cookie: member.cookie,
        body: '{"tenant_id":"by-a-form"}',
        headers: { 'content-type': type },
      })
      expect(answer.status, type).toBe(415)
    }
    await rig.must(404, 'GET', '/tenants/by-a-form', { cookie: member.cookie })
  })

  it('need no Origin with the admin token, which no browser sends by itself', async () => {
    const of = { token: rig.adminToken, headers: { origin: undefined } }
    await rig.must(201, 'POST', '/tenants', { ...of, body: { tenant_id: 'by-a-script' } })
  })
})

describe('plain http', () => {
  it('is rejected away from localhost, with the reason', async () => {
    const app = await rig.createApp({ publicUrl: () => 'http://console.example' })
    const { email } = await rig.join('viewer')
    const { token } = await rig.invite('viewer')
    const headers = { origin: 'http://console.example' }
    const answers = [
      await rig.call('POST', '/session', { app, headers, body: { email, password } }),
      await rig.call('POST', `/invitations/${token}`, {
        app,
        headers,
        body: { name: 'Ada', password },
      }),
    ]
    for (const answer of answers) {
      expect(answer.status).toBe(403)
      expect(answer.body.code).toBe('insecure_origin')
      expect(answer.body.detail).toContain('PUBLIC_URL is http://console.example')
      expect(answer.setCookie).toBeUndefined()
    }
  })

  it('works on localhost, with a cookie of another name', async () => {
    const { email } = await rig.join('viewer')
    for (const url of ['http://127.0.0.1:8082', 'http://localhost:9000', 'http://[::1]:8082']) {
      const app = await rig.createApp({ publicUrl: () => url })
      const headers = { origin: url }
      const of = { app, headers, body: { email, password }, address: '198.51.100.31' }
      const signedIn = await rig.must(200, 'POST', '/session', of)
      expect(signedIn.setCookie).toMatchObject({ name: 'di_session', httpOnly: true, path: '/' })
      expect(signedIn.setCookie).not.toHaveProperty('secure')
      const cookie = `di_session=${signedIn.setCookie!.value}`
      expect((await rig.call('GET', '/session', { app, headers: { cookie } })).status).toBe(200)
    }
  })
})

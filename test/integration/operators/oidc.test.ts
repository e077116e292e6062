// Signing in through a real identity provider on this machine: access, use of the provider's
// answer, step-up, and behaviour during an outage of the provider.
import { hash, randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  oidcSecretBytes,
  toAttemptCookie,
  toOidcChecks,
} from '#shared/core/operators/oidc-attempt.ts'
import { createOidcClient, type OidcSettings } from '#shared/io/operators/oidc-client.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { testLog } from '../../support/http/console-rig.ts'
import {
  type Identity,
  startProvider,
  type TestProvider,
  visitProvider,
} from '../../support/http/oidc-provider.ts'
import {
  type Answer,
  type Call,
  cookieName,
  createOperatorsRig,
  type OperatorsRig,
  origin,
  password,
} from '../../support/http/operators-rig.ts'
import { sumOf } from '../../support/process/read-metric.ts'

const redirectUri = `${origin}/oidc`
const attemptName = '__Host-di_attempt'
let rig: OperatorsRig
let provider: TestProvider
let people = 0
/** Each call from its own address: other tests cover the limits. */
const address = () => `10.9.${++people >> 8}.${people & 255}`

const toClient = (of: TestProvider, more: Partial<OidcSettings> = {}) => {
  const { issuer, clientId, clientSecret } = of
  return createOidcClient({ issuer, clientId, clientSecret, ...more })
}
/** A console whose log is read, with the reasons of refusals. */
async function createLogged(more: Partial<ConsoleDeps> = {}) {
  const reasons: string[] = []
  const write = (line: string) => {
    const { reason } = JSON.parse(line) as { reason?: string }
    if (reason !== undefined) reasons.push(reason)
  }
  const app = await rig.createApp({ log: pino({ level: 'warn' }, { write }) as Log, ...more })
  return { app, reasons }
}

beforeAll(async () => {
  provider = await startProvider({ redirectUri })
  rig = await createOperatorsRig({ oidc: toClient(provider) })
})
afterAll(async () => {
  await rig?.close()
  await provider?.stop()
})
beforeEach(() => {
  provider.person = null
  provider.claims = (claims) => claims
})

const newPerson = () => `person-${++people}`
const identityOf = (sub: string, email = `${sub}@example.com`, email_verified = true) => ({
  sub,
  email,
  email_verified,
})

async function inviteAt(email: string): Promise<void> {
  const body = { email, role: 'viewer' }
  await rig.must(201, 'POST', '/operators/invitations', { token: rig.adminToken, body })
}

/** The value of a cookie that an answer sets. */
const readCookie = (answer: Answer, name: string): string | undefined =>
  [answer.headers['set-cookie']]
    .flat()
    .map((text) => /^([^=]+)=([^;]*)/.exec(String(text)))
    .find((match) => match?.[1] === name)?.[2]

type Begun = { attempt: string; query: string; url: URL }

/** An attempt whose bytes differ: the last character may carry bits that mean nothing. */
const anotherAttempt = (attempt: string) =>
  attempt.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))

/** Begins an attempt and goes to the provider and back. */
async function begin(path = '/session/oidc', of: Call = {}): Promise<Begun> {
  const begun = await rig.must(200, 'POST', path, { address: address(), ...of, body: {} })
  const url = new URL(begun.body.url)
  const query = await visitProvider(url.href, redirectUri)
  return { attempt: readCookie(begun, attemptName)!, query, url }
}

/** Sends the provider's answer to the console. */
const handIn = (
  { attempt, query }: Pick<Begun, 'attempt' | 'query'>,
  { path = '/session/oidc/return', cookie, app }: Call & { path?: string } = {},
) =>
  rig.call('POST', path, {
    address: address(),
    body: { query },
    ...(app === undefined ? {} : { app }),
    headers: {
      cookie: [
        ...(attempt === '' ? [] : [`${attemptName}=${attempt}`]),
        ...(cookie === undefined ? [] : [`${cookieName}=${cookie}`]),
      ].join('; '),
    },
  })

const signIn = async (identity: Identity, of: Call = {}) => {
  provider.person = { identity }
  return handIn(await begin('/session/oidc', of), of)
}

/** A person with an account that was created through the provider. */
async function join(): Promise<{ sub: string; email: string; cookie: string; operatorId: string }> {
  const sub = newPerson()
  const { email } = identityOf(sub)
  await inviteAt(email)
  const joined = await signIn(identityOf(sub))
  expect(joined.status, joined.text).toBe(200)
  const operatorId = joined.body.operator.operator_id
  return { sub, email, operatorId, cookie: joined.setCookie!.value }
}

const findOperator = async (email: string) =>
  (await rig.must(200, 'GET', '/operators', { token: rig.adminToken })).body.data.find(
    (one) => one.email === email,
  )

describe('a sign-in through the identity provider', () => {
  it('sends the browser there with PKCE, state and nonce, new each time', async () => {
    const ways = await rig.must(200, 'GET', '/session/ways')
    expect(ways.body).toEqual({ passwords: true, oidc: { issuer: provider.issuer } })
    provider.person = { identity: identityOf('anyone') }
    const [first, second] = [await begin(), await begin()]
    const of = ({ url }: Begun, name: string) => url.searchParams.get(name)
    expect(first.url.origin).toBe(provider.issuer)
    expect(of(first, 'redirect_uri')).toBe(redirectUri)
    expect(of(first, 'response_type')).toBe('code')
    expect(of(first, 'code_challenge_method')).toBe('S256')
    for (const name of ['code_challenge', 'state', 'nonce']) {
      expect(of(first, name), name).toMatch(/^(?:in\.)?[\w-]{43}$/)
      expect(of(first, name), name).not.toBe(of(second, name))
    }
    expect(first.url.href).not.toContain(first.attempt.split('.')[1])
  })

  it('creates the account of an invited person, without a password', async () => {
    const { sub, email, cookie, operatorId } = await join()
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    expect(shown.body).toMatchObject({
      operator: { email, password: false, oidc: true },
      session: { signed_in_by: 'oidc' },
      step_up_by: ['oidc'],
    })
    const again = await signIn(identityOf(sub))
    expect(again.body.operator.operator_id).toBe(operatorId)
    expect((await rig.signIn(email, { address: address() })).status).toBe(401)
    const done = (await rig.readAudit()).filter(({ actor }) => actor === email)
    expect(done.map(({ action }) => action)).toEqual([
      'operator.signed_in',
      'operator.joined',
      'operator.oidc_bound',
    ])
    expect(done[0]!.after).toMatchObject({ by: 'oidc' })
    expect(done[2]!.after).toEqual({ issuer: provider.issuer, subject: sub })
  })

  it('finds an account by its verified email once, and by the subject from then on', async () => {
    const { email, operatorId } = await rig.join('engineer')
    const sub = newPerson()
    expect((await signIn(identityOf(sub, email.toUpperCase()))).status).toBe(200)
    const renamed = await signIn(identityOf(sub, 'renamed@example.com', false))
    expect(renamed.body.operator.operator_id).toBe(operatorId)
    // The provider has given the address to another person: that is not the account.
    const other = await signIn(identityOf(newPerson(), email))
    expect(other.status).toBe(403)
    expect((await rig.signIn(email, { address: address() })).status).toBe(200)
  })

  it('takes no other address for the verified one', async () => {
    const email = `kim-${newPerson()}@example.com`
    await inviteAt(email)
    // The Kelvin sign, whose lower case is the letter k.
    const lookalike = identityOf(newPerson(), email.replace('k', '\u212a'))
    expect((await signIn(lookalike)).status).toBe(403)
    expect((await signIn(identityOf(newPerson(), email))).status).toBe(200)
  })

  it('accepts the email of the signed answer as well', async () => {
    const inToken = await startProvider({ redirectUri, inToken: true })
    const app = await rig.createApp({ oidc: toClient(inToken) })
    const { email } = await rig.join('viewer')
    inToken.person = { identity: identityOf(newPerson(), email) }
    expect((await handIn(await begin('/session/oidc', { app }), { app })).status).toBe(200)
    expect(inToken.requests).not.toContain('/me')
    await inToken.stop()
  })

  it('gets equal rejections without account and when disabled', async () => {
    const { email: unverified } = await rig.join('viewer')
    const { email: disabled, operatorId } = await rig.join('viewer')
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, {
      token: rig.adminToken,
      body: { disabled: true },
    })
    const metrics = createMetrics('console')
    const app = await createConsoleApp({ ...rig.deps, auditEveryMs: 20 }, { log: testLog, metrics })
    const answers = [
      await signIn(identityOf(newPerson()), { app }),
      await signIn(identityOf(newPerson(), unverified, false), { app }),
      await signIn(identityOf(newPerson(), disabled), { app }),
      await signIn({ sub: newPerson() } as never, { app }),
    ]
    const bodies = answers.map(({ body: { request_id: _, ...body } }) => body)
    for (const answer of answers) {
      expect(answer.status).toBe(403)
      expect(answer.setCookie).toBeUndefined()
    }
    const [stranger, ofUnverified, ofDisabled, withoutEmail] = bodies
    expect(ofDisabled).toEqual(stranger)
    expect(ofUnverified?.detail).toContain('is not verified')
    expect(withoutEmail?.detail).toContain('does not say your email address')
    for (const email of [unverified, disabled]) {
      expect(await findOperator(email)).toMatchObject({ oidc: false })
    }
    const text = await metrics.registry.metrics()
    expect(sumOf(text, 'di_console_sign_ins_total', { outcome: 'oidc_forbidden' })).toBe(4)
    await app.close()
    const refused = (await rig.readAudit()).filter(
      ({ action }) => action === 'operator.sign_in_refused',
    )
    expect(refused.map(({ actor }) => actor)).toEqual(expect.arrayContaining([disabled, 'unknown']))
  })

  it('shows the provider’s message when the person cancels', async () => {
    provider.person = null
    const answer = await handIn(await begin())
    expect([answer.status, answer.body.detail]).toEqual([
      403,
      'The identity provider answered access_denied. Begin again.',
    ])
  })
})

describe('an email that the provider', () => {
  it('gives in its signed answer is verified by its user information, for the same email', async () => {
    const { email } = await rig.join('viewer')
    const sub = newPerson()
    // The signed answer has the email alone; the user information has both.
    provider.claims = (claims) => ({ ...claims, email })
    const other = await signIn(identityOf(sub, 'other@example.com'))
    expect([other.status, other.body.detail]).toEqual([
      403,
      expect.stringContaining('does not say whether your email address is verified'),
    ])
    expect((await signIn(identityOf(sub, email, false))).body.detail).toContain('is not verified')
    expect((await signIn(identityOf(sub, email))).status).toBe(200)
  })

  it.each([
    ['leaves without a word', undefined],
    ['calls verified in a text', 'true'],
  ])('%s counts only where its issuer is trusted by name', async (_, said) => {
    const { email } = await rig.join('viewer')
    const sub = newPerson()
    const identity = { sub, email, ...(said === undefined ? {} : { email_verified: said }) }
    provider.claims = (claims) => ({ ...claims, ...identity })
    const refused = await signIn(identity)
    expect([refused.status, refused.body.detail]).toEqual([
      403,
      expect.stringContaining('OIDC_TRUST_EMAILS_OF'),
    ])
    const oidc = toClient(provider, { trustsEmails: true })
    const { app, reasons } = await createLogged({ oidc })
    for (const no of [false, 'false']) {
      const unverified = { ...identity, email_verified: no }
      provider.claims = (claims) => ({ ...claims, ...unverified })
      expect((await signIn(unverified, { app })).status).toBe(403)
    }
    expect(reasons).toEqual(['email_unverified', 'email_unverified'])
    provider.claims = (claims) => ({ ...claims, ...identity })
    expect((await signIn(identity, { app })).status).toBe(200)
  })
})

describe('each cause of a refusal', () => {
  it('has its own words, and its own code in the log', async () => {
    const { app, reasons } = await createLogged()
    const { sub } = await join()
    provider.person = { identity: identityOf(sub) }
    const found: string[] = []
    const refuse = async (begun: Pick<Begun, 'attempt' | 'query'>) => {
      const answer = await handIn(begun, { app })
      expect(answer.status, answer.text).toBe(403)
      found.push(answer.body.detail)
    }
    const wrong = async (change: (claims: Record<string, unknown>) => Record<string, unknown>) => {
      provider.claims = change
      await refuse(await begin())
      provider.claims = (claims) => claims
    }
    const seconds = Math.floor(Date.now() / 1_000)
    await wrong((claims) => ({ ...claims, iat: seconds - 9_000, exp: seconds - 5_000 }))
    await wrong((claims) => ({ ...claims, nonce: 'another' }))
    const spent = await begin()
    expect((await handIn(spent)).status).toBe(200)
    // Another console does not know that it was used: the provider does.
    await refuse(spent)
    await refuse(spent)
    const [one, other] = [await begin(), await begin()]
    await refuse({ attempt: one.attempt, query: other.query })
    await refuse({ attempt: '', query: other.query })
    await refuse({ attempt: anotherAttempt(other.attempt), query: other.query })
    provider.person = null
    await refuse(await begin())
    provider.person = { identity: identityOf(newPerson()) }
    await refuse(await begin())
    expect(reasons).toEqual([
      ...['clock', 'claim_mismatch', 'code_refused', 'attempt_used', 'state_mismatch'],
      ...['attempt_missing', 'attempt_other', 'provider_access_denied', 'no_account'],
    ])
    expect(new Set(found).size).toBe(found.length)
  })
})

describe('a provider that does not say when someone proved who they are', () => {
  const withoutTime = ({ auth_time: _, ...claims }: Record<string, unknown>) => claims

  it('cannot confirm a step-up, and the answer says why and what to do', async () => {
    const { app, reasons } = await createLogged()
    const { sub, cookie } = await join()
    provider.person = { identity: identityOf(sub) }
    provider.claims = withoutTime
    const begun = await begin('/session/step-up/oidc', { cookie, app })
    const answer = await handIn(begun, { path: '/session/step-up/oidc/return', cookie, app })
    expect([answer.status, answer.body.code]).toEqual([403, 'step_up_refused'])
    expect(answer.body.detail).toContain('auth_time')
    expect(answer.body.detail).toContain('OIDC_STEP_UP=totp')
    expect(reasons).toEqual(['no_auth_time'])
  })

  it('leaves it to codes, which are set up right after the sign-in and no later', async () => {
    const app = await rig.createApp({ oidc: toClient(provider, { stepsUp: false }) })
    const { sub, cookie: elsewhere } = await join()
    // Where the provider confirms, it must.
    const path = '/session/totp'
    expect((await rig.call('POST', path, { cookie: elsewhere })).body.code).toBe('step_up_required')
    provider.claims = withoutTime
    const signedIn = await signIn(identityOf(sub), { app })
    expect(signedIn.body).toMatchObject({ step_up_by: [] })
    const cookie = signedIn.setCookie!.value
    const begun = await rig.call('POST', '/session/step-up/oidc', { app, cookie, body: {} })
    expect([begun.status, begun.body.code]).toEqual([403, 'step_up_refused'])
    // Not by a session that began otherwise, and not later.
    const { operator } = signedIn.body
    const other = await rig.openSession(operator.operator_id)
    expect((await rig.call('POST', path, { app, cookie: other })).body.code).toBe(
      'step_up_required',
    )
    const later = await rig.createApp({
      oidc: toClient(provider, { stepsUp: false }),
      wallMs: () => rig.deps.wallMs() + 600_000,
    })
    const late = await rig.call('POST', path, { app: later, cookie })
    expect(late.body.code).toBe('step_up_required')

    const { body } = await rig.must(200, 'POST', path, { app, cookie })
    const codeAt = (steps: number) =>
      new TOTP({ secret: Secret.fromBase32(body.secret) }).generate({
        timestamp: rig.deps.wallMs() + steps * 30_000,
      })
    const confirm = { app, cookie, body: { code: codeAt(0) } }
    await rig.must(200, 'POST', '/session/totp/confirm', confirm)
    const shown = await rig.must(200, 'GET', '/session', { app, cookie })
    expect(shown.body).toMatchObject({ step_up_by: ['code'], session: { step_up_until: null } })
    // It is a step-up that takes it off again.
    expect((await rig.call('DELETE', path, { app, cookie })).body.code).toBe('step_up_required')
    const proof = { app, cookie, body: { code: codeAt(1) } }
    const stepped = await rig.must(200, 'POST', '/session/step-up', proof)
    await rig.must(204, 'DELETE', path, { app, cookie: stepped.setCookie!.value })
  })
})

describe('the provider’s answer', () => {
  const redeemed = () => provider.requests.filter((path) => path === '/token').length

  it('works in the browser that began, and in no other', async () => {
    const { sub } = await join()
    provider.person = { identity: identityOf(sub) }
    const [theirs, own] = [await begin(), await begin()]
    const before = redeemed()
    // A link with an attacker's code: it would sign the victim in as the attacker.
    const crossed = await handIn({ attempt: own.attempt, query: theirs.query })
    expect(crossed.status).toBe(403)
    expect((await handIn({ attempt: '', query: theirs.query })).status).toBe(403)
    const unstated = theirs.query.replace(/state=[^&]*/, '')
    expect((await handIn({ attempt: (await begin()).attempt, query: unstated })).status).toBe(403)
    // Rejected by the state alone, before the code was redeemed.
    expect(redeemed()).toBe(before)
    expect((await handIn(theirs)).status).toBe(200)
  })

  it('works once, and its cookie is removed', async () => {
    const { sub } = await join()
    provider.person = { identity: identityOf(sub) }
    const begun = await begin()
    const first = await handIn(begun)
    expect(first.status).toBe(200)
    expect(readCookie(first, attemptName)).toBe('')
    const before = redeemed()
    expect((await handIn(begun)).status).toBe(403)
    expect(redeemed()).toBe(before)
  })

  it('works for ten minutes', async () => {
    const { sub } = await join()
    provider.person = { identity: identityOf(sub) }
    const begun = await begin()
    const app = await rig.createApp({ wallMs: () => rig.deps.wallMs() + 600_000 })
    expect((await handIn(begun, { app })).status).toBe(403)
    const [time, secret] = begun.attempt.split('.') as [string, string]
    const later = (Number.parseInt(time, 36) + 600_000).toString(36)
    const longer = { ...begun, attempt: `${later}.${secret}` }
    expect((await handIn(longer, { app })).status).toBe(403)
  })

  it('is accepted only from our own pages, and never redirects to a given address', async () => {
    provider.person = { identity: identityOf('anyone') }
    const { attempt, query } = await begin()
    const headers = { cookie: `${attemptName}=${attempt}` }
    const foreign = await rig.call('POST', '/session/oidc/return', {
      body: { query },
      headers: { ...headers, origin: 'https://elsewhere.example' },
    })
    expect(foreign.body.code).toBe('origin_refused')
    for (const path of ['/session/oidc', '/session/oidc/return']) {
      const body = { query, return_to: 'https://elsewhere.example' }
      expect((await rig.call('POST', path, { body, headers })).status).toBe(400)
    }
  })
})

describe('a step-up through the identity provider', () => {
  const stepUp = (cookie: string) => begin('/session/step-up/oidc', { cookie })
  const finish = (begun: Begun, cookie: string) =>
    handIn(begun, { path: '/session/step-up/oidc/return', cookie })

  it('requires a fresh check, and gives the session a new token', async () => {
    const { sub, cookie, email } = await join()
    provider.person = { identity: identityOf(sub) }
    const begun = await stepUp(cookie)
    expect(begun.url.searchParams.get('prompt')).toBe('login')
    expect(begun.url.searchParams.get('max_age')).toBe('0')
    const stepped = await finish(begun, cookie)
    expect(stepped.status, stepped.text).toBe(200)
    expect(stepped.body.session.step_up_until).not.toBeNull()
    expect((await rig.call('GET', '/session', { cookie })).status).toBe(401)
    const next = stepped.setCookie!.value
    await rig.must(200, 'POST', '/session/totp', { cookie: next })
    const [last] = (await rig.readAudit()).filter(({ actor }) => actor === email)
    expect(last).toMatchObject({ action: 'operator.stepped_up', after: { by: 'oidc' } })
  })

  it('is rejected for another identity, and without a fresh check', async () => {
    const { sub, cookie } = await join()
    const other = await join()
    provider.person = { identity: identityOf(other.sub) }
    const crossed = await finish(await stepUp(cookie), cookie)
    expect([crossed.status, crossed.body.code]).toEqual([403, 'step_up_refused'])
    provider.person = { identity: identityOf(sub), signedInSecondsAgo: 120 }
    const stale = await finish(await stepUp(cookie), cookie)
    expect([stale.status, stale.body.code]).toEqual([403, 'step_up_refused'])
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    expect(shown.body.session.step_up_until).toBeNull()
  })

  it('begins at the console alone: a made-up attempt is no fresh check', async () => {
    const { sub, cookie } = await join()
    provider.person = { identity: identityOf(sub), signedInSecondsAgo: 120 }
    const shown = await rig.must(200, 'GET', '/session', { cookie })
    const attempt = { secret: randomBytes(oidcSecretBytes), begunAtMs: Date.now() - 300_000 }
    const made = toOidcChecks(attempt, 'up', shown.body.session.session_id)
    const { url, attempt: genuine } = await stepUp(cookie)
    url.searchParams.set('state', made.state)
    url.searchParams.set('nonce', made.nonce)
    url.searchParams.set('code_challenge', hash('sha256', made.verifier, 'base64url'))
    url.searchParams.delete('prompt')
    url.searchParams.set('max_age', '600')
    const proof = genuine.split('.').slice(2)
    for (const forged of [[], ['p1', 'x', 'y'], proof]) {
      const query = await visitProvider(url.href, redirectUri)
      const text = [toAttemptCookie(attempt), ...forged].join('.')
      expect((await finish({ attempt: text, query, url }, cookie)).status).toBe(403)
    }
    const after = await rig.must(200, 'GET', '/session', { cookie })
    expect(after.body.session.step_up_until).toBeNull()
  })

  it('is limited per operator, whatever strangers try at the same address', async () => {
    const { sub, cookie } = await join()
    provider.person = { identity: identityOf(sub) }
    const office = { address: address() }
    const guess = () => rig.call('GET', `/invitations/${'x'.repeat(43)}`, office)
    let guesses = 0
    while ((await guess()).status !== 429) expect(++guesses).toBeLessThan(100)
    const path = '/session/step-up/oidc'
    const statuses = []
    for (let at = 0; at < 12; at++) {
      statuses.push((await rig.call('POST', path, { cookie, ...office, body: {} })).status)
    }
    expect(statuses).toEqual([...Array(10).fill(200), 429, 429])
  })

  it('belongs to the session that began it, and a sign-in does not count', async () => {
    const { sub, cookie, operatorId } = await join()
    provider.person = { identity: identityOf(sub) }
    const second = await rig.openSession(operatorId)
    expect((await finish(await stepUp(cookie), second)).status).toBe(403)
    expect((await finish(await begin(), cookie)).status).toBe(403)
    expect((await handIn(await stepUp(cookie))).status).toBe(403)
  })
})

describe('during an outage of the identity provider', () => {
  it('the reason is shown, and passwords work', async () => {
    const { email } = await rig.join('viewer')
    const away = await startProvider({ redirectUri })
    await away.stop()
    let atMs = 0
    const app = await rig.createApp({ oidc: toClient(away, { monotonicMs: () => atMs }) })
    const answer = await rig.call('POST', '/session/oidc', { app, body: {}, address: address() })
    expect([answer.status, answer.body.detail]).toEqual([
      503,
      `The identity provider ${away.issuer} refuses the connection. ` +
        'Sign in with your password instead.',
    ])
    const body = { email, password }
    expect((await rig.call('POST', '/session', { app, body, address: address() })).status).toBe(200)
    await away.start()
    const begin = async () => {
      const call = { app, body: {}, address: address() }
      return (await rig.call('POST', '/session/oidc', call)).status
    }
    // An outage is remembered for ten seconds, and so is an answer.
    expect(await begin()).toBe(503)
    atMs = 10_000
    expect([await begin(), await begin(), await begin()]).toEqual([200, 200, 200])
    const metadata = away.requests.filter((path) => path.startsWith('/.well-known'))
    expect(metadata).toHaveLength(1)
    // Cached metadata is no reason to redirect a browser to it.
    await away.stop()
    atMs = 20_000
    expect(await begin()).toBe(503)
  })

  it('a wrong client secret is reported as such', async () => {
    const app = await rig.createApp({
      oidc: toClient(provider, { clientSecret: 'not the secret' }),
    })
    provider.person = { identity: identityOf('anyone') }
    const answer = await handIn(await begin('/session/oidc', { app }), { app })
    expect(answer.status).toBe(503)
    expect(answer.body.detail).toContain('does not take the client id and secret')
  })
})

describe('with OIDC_ONLY', () => {
  const only = () => rig.createApp({ passwordsOff: true })

  it('no password signs in, joins or changes anything', async () => {
    const app = await only()
    const { email, operatorId } = await rig.join('viewer')
    const cookie = await rig.openSession(operatorId)
    const ways = await rig.must(200, 'GET', '/session/ways', { app })
    expect(ways.body).toMatchObject({ passwords: false })
    const tries = [
      { email, password },
      { email, password: 'wrong wrong wrong' },
      { email: 'stranger@example.com', password },
    ]
    for (const body of tries) {
      const answer = await rig.call('POST', '/session', { app, body, address: address() })
      expect([answer.status, answer.setCookie]).toEqual([403, undefined])
    }
    const { token } = await rig.invite('viewer')
    const joining = { app, body: { name: 'N', password }, address: address() }
    expect((await rig.call('POST', `/invitations/${token}`, joining)).status).toBe(403)
    const change = { current: password, password: 'another sentence of this person' }
    const of = { app, cookie, address: address() }
    expect((await rig.call('PUT', '/session/password', { ...of, body: change })).status).toBe(403)
    const step = await rig.call('POST', '/session/step-up', { ...of, body: { password } })
    expect(step.body.code).toBe('step_up_refused')
    expect((await rig.must(200, 'GET', '/session', of)).body).toMatchObject({ step_up_by: [] })
  })

  it('a link made on the machine works, also during an outage of the provider', async () => {
    const away = await startProvider({ redirectUri })
    await away.stop()
    const app = await rig.createApp({ passwordsOff: true, oidc: toClient(away) })
    const { sub, email, operatorId, cookie: before } = await join()
    const begun = await rig.call('POST', '/session/oidc', { app, body: {}, address: address() })
    expect(begun.body.detail).toContain('di operators reset EMAIL')
    const path = `/operators/${operatorId}/reset`
    const link = await rig.must(201, 'POST', path, { app, token: rig.adminToken })
    const body = { name: 'N', password: 'in an emergency only this' }
    const token = link.body.url.split('#')[1]
    const entered = await rig.must(200, 'POST', `/invitations/${token}`, {
      app,
      body,
      address: address(),
    })
    expect((await rig.call('GET', '/session', { cookie: before })).status).toBe(401)
    const cookie = entered.setCookie!.value
    expect(entered.body).toMatchObject({ step_up_by: ['password'] })
    const proof = { password: body.password }
    const stepped = await rig.must(200, 'POST', '/session/step-up', { app, cookie, body: proof })
    await rig.must(200, 'POST', '/session/totp', { app, cookie: stepped.setCookie!.value })
    const byPassword = { app, body: { email, ...proof }, address: address() }
    expect((await rig.call('POST', '/session', byPassword)).status).toBe(403)
    // Once it is back, the verified email binds the account again.
    expect((await signIn(identityOf(`${sub}-again`, email))).status).toBe(200)
  })
})

it('without a provider no attempt can begin', async () => {
  const app = await rig.createApp({ oidc: null })
  expect((await rig.must(200, 'GET', '/session/ways', { app })).body).toMatchObject({ oidc: null })
  expect((await rig.call('POST', '/session/oidc', { app, body: {} })).status).toBe(404)
})

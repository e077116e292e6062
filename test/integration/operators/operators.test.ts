// People's access to the console against real Postgres: invitations, sign-in, sessions, second
// factor and roles.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { startNats, type TestNats } from '../../support/servers/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const adminToken = randomBytes(32).toString('base64url')
const origin = 'https://console.example'
const password = 'a sentence nobody else types'
let servers: { postgres: TestPostgres; nats: TestNats }
let rig: ConsoleRig
let deps: ConsoleDeps
let app: FastifyInstance
/** The clocks of the console; tests move them. */
const aheadMs = 0

beforeAll(async () => {
  const [postgres, nats] = await Promise.all([startPostgres(), startNats()])
  servers = { postgres, nats }
  rig = await createConsoleRig(servers)
  deps = {
    ...rig.deps,
    adminToken,
    slowedMs: 10,
    projection: rig.projection,
    setDisposition: createAlertStore(rig.postgres).setDisposition,
    listUnknownSignals: async () => [],
    countLeftOut: async () => ({ events: 0, values: 0 }),
    publicUrl: () => `${origin}/console/`,
    wallMs: () => Date.now() + aheadMs,
    nowMs: () => performance.now() + aheadMs,
  }
  app = await createConsoleApp(deps, { log: testLog, metrics: createMetrics('console') })
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})

type Call = {
  body?: unknown
  token?: string
  cookie?: string | undefined
  headers?: Record<string, string | undefined>
  address?: string
}

async function call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, of: Call) {
  const { body, token, cookie, address = '192.0.2.7' } = of
  const headers: Record<string, string | undefined> = {
    origin,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(cookie === undefined ? {} : { cookie: `__Host-di_session=${cookie}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...of.headers,
  }
  const answer = await app.inject({
    method,
    url: `/admin/v1${path}`,
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value)),
    remoteAddress: address,
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  })
  const sent = answer.cookies.find(({ name }) => name === '__Host-di_session')
  return {
    status: answer.statusCode,
    body: answer.payload === '' ? null : answer.json(),
    headers: answer.headers,
    cookie: sent?.value,
    setCookie: sent,
  }
}

let made = 0

/** A new operator with a session. */
async function join(role: string, tenants: 'all' | string[] = 'all') {
  const email = `${role}-${made++}@example.com`
  const invited = await call('POST', '/operators/invitations', {
    token: adminToken,
    body: { email, role, tenants },
  })
  expect(invited.status, JSON.stringify(invited.body)).toBe(201)
  const token = (invited.body.url as string).split('#')[1]!
  const joined = await call('POST', `/invitations/${token}`, { body: { name: 'Ada', password } })
  expect(joined.status, JSON.stringify(joined.body)).toBe(200)
  const { operator_id: operatorId } = joined.body.operator as { operator_id: string }
  return { email, operatorId, cookie: joined.cookie!, invited, joined }
}

describe('signing in', () => {
  it('gives a session by a cookie that scripts and other sites cannot use', async () => {
    const { email, invited } = await join('viewer')
    expect(invited.body.url).toMatch(/^https:\/\/console\.example\/console\/invite#[\w-]{43}$/)
    const signedIn = await call('POST', '/session', { body: { email, password } })
    expect(signedIn.status).toBe(200)
    expect(signedIn.setCookie).toMatchObject({
      name: '__Host-di_session',
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'Strict',
    })
    expect(signedIn.setCookie).not.toHaveProperty('domain')
    const shown = await call('GET', '/session', { cookie: signedIn.cookie })
    expect(shown.status).toBe(200)
    expect(shown.body).toEqual(signedIn.body)
    expect(shown.body).toMatchObject({
      operator: { email, name: 'Ada', role: 'viewer', tenants: 'all', totp: false },
      session: { step_up_until: null },
    })
    expect(shown.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
  })

  it('signs out', async () => {
    const { cookie } = await join('viewer')
    const out = await call('DELETE', '/session', { cookie })
    expect(out.status).toBe(204)
    expect(out.setCookie).toMatchObject({ value: '' })
    expect((await call('GET', '/session', { cookie })).status).toBe(401)
  })
})

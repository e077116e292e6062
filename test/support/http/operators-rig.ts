// A console for tests of operators' access: its app on real Postgres, clocks that tests move, and
// calls as a browser makes them.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import {
  hashToken,
  operatorIdBytes,
  tokenBytes,
  toOperatorsId,
  toToken,
} from '#shared/core/operators/operator-credentials.ts'
import type { Role } from '#shared/core/operators/roles.ts'
import { createPasswordHasher } from '#shared/io/operators/password-hash.ts'
import { insertSession, type SignedInBy } from '#shared/io/operators/session-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { startNats } from '../servers/nats/nats-server.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { createConsoleRig, type TestEdge, testLog } from './console-rig.ts'

export const cookieName = '__Host-di_session'
export const origin = 'https://console.example'
export const password = 'a sentence that only this person types'

export type Call = {
  body?: unknown
  /** A bearer token. */
  token?: string
  /** A session token. */
  cookie?: string | undefined
  /** Undefined omits a header that is sent by default. */
  headers?: Record<string, string | undefined>
  address?: string
  app?: FastifyInstance
}

/** An entry of a list: an operator, a session, an invitation, a tenant or an audit entry. */
export type Entry = {
  operator_id: string
  email: string
  role: string
  tenants: unknown
  session_id: string
  state: string
  tenant_id: string
  actor: string
  action: string
  before: unknown
  after: unknown
}

/** The members of all answers that tests read; each answer has some. */
export type Body = {
  code: string
  detail: string
  errors: unknown
  request_id: string
  operator: { operator_id: string; totp: boolean }
  session: Record<
    'session_id' | 'created_at' | 'expires_at' | 'idle_expires_at' | 'step_up_until',
    string
  >
  url: string
  expires_at: string
  secret: string
  otpauth_url: string
  recovery_codes: string[]
  rewrapped: number
  remaining: number
  total: number
  data: Entry[]
}

export type Answer = {
  status: number
  /** Null when the answer has no body. */
  body: Body
  text: string
  headers: Record<string, unknown>
  /** The session's cookie, when it was set. */
  setCookie: { name: string; value: string } | undefined
}

export type Member = { email: string; operatorId: string; cookie: string }

export type OperatorsRig = {
  adminToken: string
  masterKey: string
  app: FastifyInstance
  deps: ConsoleDeps
  postgres: Postgres
  /** Moves both clocks of the console forward. */
  advance: (ms: number) => void
  call: (method: string, path: string, of?: Call) => Promise<Answer>
  /** Calls as `call`, and fails the test on another status. */
  must: (status: number, method: string, path: string, of?: Call) => Promise<Answer>
  invite: (role: Role, tenants?: 'all' | string[]) => Promise<{ email: string; token: string }>
  /** An account that was made by an invitation, and its first session. */
  join: (role: Role, tenants?: 'all' | string[]) => Promise<Member>
  signIn: (email: string, more?: { address?: string; code?: string }) => Promise<Answer>
  /** Adds another session of an operator to the database. */
  openSession: (
    operatorId: string,
    more?: { steppedUp?: boolean; by?: SignedInBy },
  ) => Promise<string>
  /** An edge that holds a lease. */
  startEdge: () => Promise<TestEdge>
  /** Another console on the same database. */
  createApp: (more: Partial<ConsoleDeps>, trustedProxies?: string[]) => Promise<FastifyInstance>
  /** The audit entries without a tenant, newest first. */
  readAudit: () => Promise<Entry[]>
  close: () => Promise<void>
}

export async function createOperatorsRig(more: Partial<ConsoleDeps> = {}): Promise<OperatorsRig> {
  const [server, nats] = await Promise.all([startPostgres(), startNats()])
  const rig = await createConsoleRig({ postgres: server, nats })
  const adminToken = randomBytes(32).toString('base64url')
  let aheadMs = 0
  const deps: ConsoleDeps = {
    ...rig.deps,
    adminToken,
    slowedMs: 10,
    passwords: createPasswordHasher({ memory: 1_024, passes: 1, parallelism: 1 }),
    publicUrl: () => origin,
    wallMs: () => Date.now() + aheadMs,
    nowMs: () => performance.now() + aheadMs,
    ...more,
  }
  const apps: FastifyInstance[] = []
  const createApp: OperatorsRig['createApp'] = async (other, trustedProxies = []) => {
    const http = { log: testLog, metrics: createMetrics('console'), trustedProxies }
    const app = await createConsoleApp({ ...deps, ...other }, http)
    apps.push(app)
    return app
  }
  const app = await createApp({})
  const call: OperatorsRig['call'] = (method, path, of = {}) =>
    send(of.app ?? app, method, path, of)
  const must: OperatorsRig['must'] = async (status, method, path, of) => {
    const answer = await call(method, path, of)
    if (answer.status === status) return answer
    throw new Error(`${method} ${path} answered ${answer.status}, not ${status}: ${answer.text}`)
  }
  let invited = 0
  const invite: OperatorsRig['invite'] = async (role, tenants = 'all') => {
    const email = `${role}-${invited++}@example.com`
    const body = { email, role, tenants }
    const answer = await must(201, 'POST', '/operators/invitations', { token: adminToken, body })
    return { email, token: answer.body.url.split('#')[1]! }
  }
  return {
    adminToken,
    masterKey: rig.masterKey,
    app,
    deps,
    postgres: rig.postgres,
    advance: (ms) => {
      aheadMs += ms
    },
    call,
    must,
    invite,
    join: async (role, tenants) => {
      const { email, token } = await invite(role, tenants)
      const body = { name: `The ${role}`, password }
      // Each from its own address, because one address is limited to some thirty.
      const address = `10.0.${invited >> 8}.${invited & 255}`
      const joined = await must(200, 'POST', `/invitations/${token}`, { body, address })
      const operatorId = joined.body.operator.operator_id
      return { email, operatorId, cookie: joined.setCookie!.value }
    },
    signIn: (email, { address, code } = {}) =>
      call('POST', '/session', {
        body: { email, password, ...(code === undefined ? {} : { code }) },
        ...(address === undefined ? {} : { address }),
      }),
    openSession: async (operatorId, { steppedUp = false, by = 'password' } = {}) => {
      const token = toToken(randomBytes(tokenBytes))
      const atMs = deps.wallMs()
      const session = {
        sessionId: toOperatorsId('ses', randomBytes(operatorIdBytes)),
        operatorId,
        createdAtMs: atMs,
        lastUsedAtMs: atMs,
        signedInBy: by,
        stepUpUntilMs: steppedUp ? atMs + 60_000 : null,
        address: 'test',
        userAgent: '',
      }
      await insertSession(rig.postgres, { session, tokenHash: hashToken(token) })
      return token
    },
    startEdge: () => rig.startEdge(),
    createApp,
    readAudit: async () =>
      (await must(200, 'GET', '/audit?limit=500', { token: adminToken })).body.data,
    close: async () => {
      await Promise.all(apps.map((one) => one.close()))
      await rig.close()
      await Promise.all([server.stop(), nats.stop()])
    },
  }
}

async function send(app: FastifyInstance, method: string, path: string, of: Call): Promise<Answer> {
  const { body, token, cookie, address = '192.0.2.7' } = of
  const headers: Record<string, string | undefined> = {
    origin,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(cookie === undefined ? {} : { cookie: `${cookieName}=${cookie}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...of.headers,
  }
  const answer = await app.inject({
    method: method as 'GET',
    url: `/admin/v1${path}`,
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
    remoteAddress: address,
    ...(body === undefined
      ? {}
      : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = answer.payload
  return {
    status: answer.statusCode,
    body: (/^[[{]/.test(text) ? JSON.parse(text) : null) as Body,
    text,
    headers: answer.headers,
    setCookie: answer.cookies.find(({ name }) => name.endsWith('di_session')),
  }
}

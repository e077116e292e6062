// The admin API on real databases and real edges: an answered change is in force everywhere, every
// change is in the audit log, and no secret is ever shown twice.
import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toAlertId } from '#shared/core/base/ids.ts'
import { undecidedShare } from '#shared/core/base/limits/stream.ts'
import { endpointAccess } from '#shared/core/operators/roles.ts'
import { hashApiKey, parseApiKey } from '#shared/core/tenants/credentials.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { checkWebhookTarget } from '#shared/io/deliveries/outbound/outbound-client.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { ConfigError } from '#shared/io/process/config.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { startDirectoryReconciler } from '../../../services/console/jobs/directory-reconciler.ts'
import { requireMasterKey } from '../../../services/console/keys/require-master-key.ts'
import type { TestEdge } from '../../support/http/console-rig.ts'
import { type ConsoleRig, startConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { sumOf } from '../../support/process/read-metric.ts'
import { until } from '../../support/process/until.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const adminToken = randomBytes(32).toString('base64url')
let rig: ConsoleRig
let edges: TestEdge[]
let deps: ConsoleDeps
let app: FastifyInstance

beforeAll(async () => {
  rig = await startConsoleRig()
  edges = await Promise.all([rig.startEdge(), rig.startEdge()])
  deps = {
    ...rig.deps,
    adminToken,
    slowedMs: 10,
    wallMs: Date.now,
    checkWebhookUrl: (url, environment) =>
      checkWebhookTarget(url, { environment, allowPrivate: true }, { resolve: resolveForTest }),
  }
  app = await createApp(deps)
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
})

function createApp(of: ConsoleDeps): Promise<FastifyInstance> {
  const metrics = createMetrics('console')
  return createConsoleApp(of, { log: testLog, metrics })
}

const resolveForTest = async (hostname: string) =>
  hostname === 'inside.example' ? ['10.0.0.7'] : ['93.184.216.34']

type Answer = { status: number; headers: Record<string, unknown>; text: string; body: Json }
type Json = Record<string, never> & { [key: string]: never }

async function call(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  token: string | null = adminToken,
  to: FastifyInstance = app,
): Promise<Answer> {
  const answer = await to.inject({
    method,
    url: `/admin/v1${path}`,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  })
  const { statusCode: status, headers, payload: text } = answer
  return { status, headers, text, body: JSON.parse(text) }
}

type TenantPage = { data: Created[]; total: number; next_cursor: string | null }
type Created = {
  tenant_id: string
  environment: string
  public_api_key: string
  hmac_secret: string
  webhook_secret: string
  webhook_url: string | null
}

const freshId = () => `tenant-${randomUUID().slice(0, 8)}`

async function create(more: object = {}): Promise<Created> {
  const answer = await call('POST', '/tenants', { tenant_id: freshId(), ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.body as unknown as Created
}

const judge = ({ tenant_id, hmac_secret }: Created) =>
  edges.map((edge) => edge.judge(tenant_id, hmac_secret))

describe('the token', () => {
  it('is required before any other check', async () => {
    for (const token of [null, '', 'x', `${adminToken}x`, adminToken.slice(1)]) {
      for (const path of ['/tenants', '/tenants/nobody', '/edges', '/tenants/%20/audit']) {
        const answer = await call('GET', path, undefined, token)
        expect(answer.status).toBe(401)
        expect(answer.headers['www-authenticate']).toBe('Bearer')
        expect(answer.headers['content-type']).toMatch('application/problem+json')
        expect(answer.body).toMatchObject({ code: 'unauthorized' })
        expect(answer.body.request_id).toBe(answer.headers['x-request-id'])
      }
    }
  })
})

describe('guessing of the token', () => {
  const slowedMs = 300
  let guarded: FastifyInstance
  let metrics: Metrics

  beforeAll(async () => {
    metrics = createMetrics('console')
    const of = { ...deps, slowedMs, auditEveryMs: 60_000 }
    guarded = await createConsoleApp(of, { log: testLog, metrics })
  })

  const callWithToken = async (token: string, remoteAddress: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const startMs = performance.now()
    const answer = await guarded.inject({ url: '/admin/v1/tenants', headers, remoteAddress })
    return { status: answer.statusCode, answer, tookMs: performance.now() - startMs }
  }
  const countOf = (status: number, answers: { status: number }[]) =>
    answers.filter((one) => one.status === status).length

  it('is slowed per address: few of 1,600 wrong tokens are checked, most get 429', async () => {
    const calls = Array.from({ length: 1_600 }, (_, n) => callWithToken(`wrong-${n}`, '192.0.2.1'))
    // Another address, and one that has shown the token before, are not delayed meanwhile.
    const others = await Promise.all([
      callWithToken(adminToken, '192.0.2.2'),
      callWithToken(adminToken, '192.0.2.3'),
    ])
    expect(others.map(({ status }) => status)).toEqual([200, 200])
    const answers = await Promise.all(calls)
    expect(countOf(401, answers)).toBe(14)
    expect(countOf(429, answers)).toBe(1_586)
    const limited = answers.find(({ status }) => status === 429)!.answer
    expect(limited.headers['retry-after']).toBe('1')
    expect(limited.json()).toMatchObject({ code: 'rate_limited' })
    const slow = answers.filter(({ status, tookMs }) => status === 401 && tookMs >= slowedMs - 20)
    expect(slow.length).toBeGreaterThanOrEqual(4)
    // Once they are answered, the correct token of that address is served again.
    expect((await callWithToken(adminToken, '192.0.2.1')).status).toBe(200)
  })

  it('is slowed in total: of 2,000 addresses few are checked, known ones are served', async () => {
    const calls = Array.from({ length: 2_000 }, (_, n) =>
      callWithToken('wrong', `10.1.${n >> 8}.${n & 255}`),
    )
    expect((await callWithToken(adminToken, '192.0.2.2')).status).toBe(200)
    const answers = await Promise.all(calls)
    expect(countOf(401, answers)).toBeLessThan(250)
    expect(countOf(429, answers)).toBeGreaterThan(1_700)
  })

  it('is counted, and in the audit log as one row', async () => {
    const text = await metrics.registry.metrics()
    expect(sumOf(text, 'di_console_wrong_tokens_total', { answer: 'slowed' })).toBeGreaterThan(4)
    const read = () =>
      rig.postgres.query<{ tenant_id: null; after: { attempts: number; addresses: number } }>(
        `select tenant_id, after from audit_log where action = 'admin_token.refused' and actor = 'unknown'`,
      )
    const before = (await read()).rows.length
    await guarded.close()
    const { rows } = await read()
    expect(rows).toHaveLength(before + 1)
    const { after } = rows.at(-1)!
    expect(after.attempts).toBe(3_600)
    expect(after.addresses).toBe(2_001)
    expect(JSON.stringify(after)).not.toContain('wrong')
  })
})

describe('creating a tenant', () => {
  it('answers once every live edge accepts it, with credentials in their formats', async () => {
    const tenant = await create({ environment: 'sandbox', name: 'Acme' })
    expect(judge(tenant)).toEqual(['accepted', 'accepted'])
    expect(tenant).toEqual({
      tenant_id: tenant.tenant_id,
      environment: 'sandbox',
      public_api_key: expect.stringMatching(/^dpk_sandbox_[0-9A-Za-z]{49}$/),
      hmac_secret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      webhook_secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      webhook_url: null,
    })
    const { hash } = parseApiKey(tenant.public_api_key)!
    const holder = await createTenantStore(rig.postgres).findTenantByApiKey(hash)
    expect(holder?.tenantId).toBe(tenant.tenant_id)
  })

  it('makes a live tenant unless a sandbox is requested', async () => {
    expect((await create()).public_api_key).toMatch(/^dpk_live_/)
  })

  it('rejects a slug in use and leaves its owner unchanged', async () => {
    const tenant = await create()
    const again = await call('POST', '/tenants', { tenant_id: tenant.tenant_id, name: 'x' })
    expect(again.status).toBe(409)
    expect(again.body).toMatchObject({ code: 'tenant_exists' })
    expect(judge(tenant)).toEqual(['accepted', 'accepted'])
  })

  it('leaves nothing behind when the edges cannot be reached', async () => {
    const tenantId = freshId()
    const directory = {
      ...deps.directory,
      project: async () => {
        throw new Error('timeout')
      },
    }
    const failing = await createApp({ ...deps, directory })
    const answer = await call('POST', '/tenants', { tenant_id: tenantId }, adminToken, failing)
    expect(answer.status).toBe(503)
    expect(answer.headers['retry-after']).toBeDefined()
    expect((await call('GET', `/tenants/${tenantId}`)).status).toBe(404)
    expect((await create({ tenant_id: tenantId })).tenant_id).toBe(tenantId)
    await failing.close()
  })
})

describe('reading tenants', () => {
  it('shows all fields except their secrets', async () => {
    const tenant = await create({ webhook_url: 'https://hooks.example/a' })
    const shown = await call('GET', `/tenants/${tenant.tenant_id}`)
    expect(shown.body).toMatchObject({
      status: 'active',
      environment: 'live',
      webhook_url: 'https://hooks.example/a',
      webhook_state: 'on',
      policy_version: 1,
      public_api_key: { last4: tenant.public_api_key.slice(-4), last_used_at: null },
      hmac_secret: { last4: tenant.hmac_secret.slice(-4), state: 'active' },
    })
    const listed = await call('GET', '/tenants?limit=1000')
    for (const text of [shown.text, listed.text]) {
      expect(text).not.toContain(tenant.public_api_key)
      expect(text).not.toContain(tenant.hmac_secret)
      expect(text).not.toContain(tenant.webhook_secret.slice(6, -6))
      expect(text).not.toContain('v1.')
    }
  })

  it('lists all of them, page by page', async () => {
    await Promise.all([create(), create(), create()])
    const seen: string[] = []
    let total = 0
    for (let cursor = ''; ; ) {
      const page = await call('GET', `/tenants?limit=2${cursor}`)
      const body = page.body as unknown as TenantPage
      seen.push(...body.data.map(({ tenant_id }) => tenant_id))
      total = body.total
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(seen).toEqual([...new Set(seen)].sort())
    expect(seen).toHaveLength(total)
  })

  it('answers 404 for an unknown tenant, on every route', async () => {
    const routes = [
      ['GET', ''],
      ['POST', '/rotate', {}],
      ['POST', '/suspend'],
      ['POST', '/resume'],
      ['PUT', '/rates', {}],
      ['PUT', '/webhook', { url: 'https://hooks.example/a' }],
      ['DELETE', '/webhook'],
      ['GET', '/deliveries'],
      ['GET', '/deliveries/dlv_x'],
      ['POST', '/deliveries/replay', { failed: true }],
      ['POST', '/deliveries/test'],
      ['POST', '/webhook/pause'],
      ['POST', '/webhook/resume'],
      ['GET', '/stale-secret-requests'],
      ['GET', '/policy'],
      ['GET', '/policy/versions'],
      ['GET', '/policy/versions/1'],
      ['PUT', '/policy', { preset: 'strict' }],
    ] as const
    for (const [method, path, body] of routes) {
      const answer = await call(method, `/tenants/nobody${path}`, body)
      expect(answer.status, path).toBe(404)
      expect(answer.body).toMatchObject({ code: 'tenant_not_found' })
    }
  })
})

describe('suspending', () => {
  it('is in force on every edge and for the key when it returns; resuming ends it', async () => {
    const tenant = await create()
    const findHolder = () =>
      createTenantStore(rig.postgres).findTenantByApiKey(hashApiKey(tenant.public_api_key))
    const suspended = await call('POST', `/tenants/${tenant.tenant_id}/suspend`)
    expect(judge(tenant)).toEqual(['refused', 'refused'])
    expect(suspended.body).toEqual({ tenant_id: tenant.tenant_id, status: 'suspended' })
    expect((await findHolder())?.status).toBe('suspended')
    expect((await call('POST', `/tenants/${tenant.tenant_id}/suspend`)).status).toBe(200)
    const resumed = await call('POST', `/tenants/${tenant.tenant_id}/resume`)
    expect(judge(tenant)).toEqual(['accepted', 'accepted'])
    expect(resumed.body).toEqual({ tenant_id: tenant.tenant_id, status: 'active' })
    expect((await findHolder())?.status).toBe('active')
  })

  it('is recorded while the edges are unreachable, and reaches them later', async () => {
    const tenant = await create()
    const directory = {
      ...deps.directory,
      project: async () => {
        throw new Error('timeout')
      },
    }
    const failing = await createApp({ ...deps, directory })
    const path = `/tenants/${tenant.tenant_id}/suspend`
    const answer = await call('POST', path, undefined, adminToken, failing)
    expect(answer.status).toBe(503)
    expect(answer.body.detail).toMatch('they follow as soon as NATS is back')
    await failing.close()
    const metrics = createMetrics('console')
    const reconciler = startDirectoryReconciler({
      rotation: rig.deps,
      maker: rig.deps,
      projection: rig.projection,
      log: testLog,
      metrics,
      nowMs: () => performance.now(),
    })
    await until('the edges refuse it', () => judge(tenant).every((one) => one === 'refused'))
    await reconciler.stop()
  })
})

describe('the rates', () => {
  it('are set, known to the edges, and reset to the default', async () => {
    const { tenant_id } = await create()
    const path = `/tenants/${tenant_id}/rates`
    const ingest_rate = { per_second: 2.5, burst: 7 }
    const set = await call('PUT', path, { ingest_rate, rest_rate: { per_second: 5, burst: 9 } })
    expect(set.body).toMatchObject({ ingest_rate, rest_rate: { per_second: 5, burst: 9 } })
    for (const edge of edges) {
      const { limiter } = edge.directory.find(tenant_id)!
      expect(limiter?.rate).toEqual({ perSecond: 2.5, burst: 7 })
    }
    const unset = await call('PUT', path, { ingest_rate: null })
    expect(unset.body).toMatchObject({ ingest_rate: null, rest_rate: { per_second: 5, burst: 9 } })
    expect(edges[0]!.directory.find(tenant_id)!.limiter).toBeNull()
    for (const bad of [{ per_second: 0, burst: 1 }, { per_second: 1 }, 5]) {
      expect((await call('PUT', path, { rest_rate: bad })).status).toBe(400)
    }
  })

  it('include bytes and the share of undecided bytes', async () => {
    const { tenant_id } = await create()
    const path = `/tenants/${tenant_id}/rates`
    const ingest_bytes = { per_second: 5e6, burst: 9e6 }
    const set = await call('PUT', path, { ingest_bytes, ingest_share: 0.5 })
    expect(set.body).toMatchObject({ ingest_bytes, ingest_share: 0.5, ingest_rate: null })
    for (const edge of edges) {
      const { byteLimiter, undecidedShare: share } = edge.directory.find(tenant_id)!
      expect([byteLimiter?.rate, share]).toEqual([{ perSecond: 5e6, burst: 9e6 }, 0.5])
    }
    const unset = await call('PUT', path, { ingest_bytes: null, ingest_share: null })
    expect(unset.body).toMatchObject({ ingest_bytes: null, ingest_share: null })
    const tenant = edges[0]!.directory.find(tenant_id)!
    expect(tenant.byteLimiter).toBeNull()
    expect(tenant.undecidedShare).toBe(undecidedShare)
    // A burst allows the largest body, and a share leaves space for others.
    for (const bad of [
      { ingest_bytes: { per_second: 1e6, burst: 65_535 } },
      { ingest_share: 0 },
      { ingest_share: 0.91 },
    ]) {
      expect((await call('PUT', path, bad)).status, JSON.stringify(bad)).toBe(400)
    }
  })
})

describe('rotating', () => {
  const rotate = (tenant: Created, body?: unknown) =>
    call('POST', `/tenants/${tenant.tenant_id}/rotate`, body)

  it('replaces both secrets by default', async () => {
    for (const body of [undefined, {}, null]) {
      const tenant = await create()
      const answer = await rotate(tenant, body)
      expect(answer.status, answer.text).toBe(200)
      expect(judge(tenant)).toEqual(['refused', 'refused'])
      const renewed = { ...tenant, ...(answer.body as unknown as Partial<Created>) }
      expect(judge(renewed)).toEqual(['accepted', 'accepted'])
      expect(renewed.webhook_secret).not.toBe(tenant.webhook_secret)
      expect(answer.body).not.toHaveProperty('public_api_key')
      expect(answer.body).toMatchObject({
        confirmed_edges: [expect.any(String), expect.any(String)],
        lease_expired_edges: [],
        duration_ms: expect.any(Number),
      })
    }
  })

  it('replaces only what is requested', async () => {
    const tenant = await create()
    const answer = await rotate(tenant, { api_key: true })
    expect(Object.keys(answer.body).sort()).toEqual([
      'confirmed_edges',
      'duration_ms',
      'lease_expired_edges',
      'public_api_key',
      'tenant_id',
    ])
    expect(judge(tenant)).toEqual(['accepted', 'accepted'])
    expect((await rotate(tenant, { hmac: 'yes' })).status).toBe(400)
  })
})

describe('the webhook', () => {
  it('is set, switched off, and shown', async () => {
    const { tenant_id } = await create()
    const path = `/tenants/${tenant_id}/webhook`
    const set = await call('PUT', path, { url: 'https://hooks.example/a?b=c' })
    expect(set.body).toEqual({ tenant_id, webhook_url: 'https://hooks.example/a?b=c' })
    expect((await call('GET', `/tenants/${tenant_id}`)).body.webhook_state).toBe('on')
    const off = await call('DELETE', path)
    expect(off.body).toEqual({ tenant_id, webhook_url: null })
    expect((await call('GET', `/tenants/${tenant_id}`)).body).toMatchObject({
      webhook_state: 'off',
      webhook_off_reason: 'operator',
    })
  })

  it('of a live tenant goes to public https addresses only, after name resolution', async () => {
    const { tenant_id } = await create()
    const refused = [
      'http://hooks.example/a',
      'https://127.0.0.1/a',
      'https://inside.example/a',
      'https://[::ffff:10.0.0.1]/a',
      'https://hooks.example:22/a',
      'ftp://hooks.example/a',
      'nonsense',
    ]
    for (const url of refused) {
      const answer = await call('PUT', `/tenants/${tenant_id}/webhook`, { url })
      expect(answer.status, url).toBe(422)
      expect(answer.body).toMatchObject({ code: 'webhook_url_refused' })
      const created = await call('POST', '/tenants', { tenant_id: freshId(), webhook_url: url })
      expect(created.status, url).toBe(422)
    }
    expect((await call('GET', `/tenants/${tenant_id}`)).body.webhook_url).toBeNull()
  })

  it('of a sandbox tenant may stay on this machine when the process allows it', async () => {
    const url = 'http://127.0.0.1:9999/hook'
    expect((await create({ environment: 'sandbox', webhook_url: url })).webhook_url).toBe(url)
  })
})

describe('alerts', () => {
  let tenantId: string
  let alertId: string

  beforeEach(async () => {
    tenantId = (await create({ webhook_url: 'https://hooks.example/a' })).tenant_id
    const fact = { tenantId, deviceId: 'd-1', sessionId: 's-1', action: 'BLOCK' as const }
    alertId = toAlertId(fact)
    const candidate = {
      ...fact,
      alertId,
      userId: null,
      eventId: 'evt_1',
      riskScore: 80,
      raspScore: 80,
      reasons: [{ code: 'ROOTED', weight: 80, evidence: {} }],
      policyVersion: 1,
    }
    await createAlertStore(rig.postgres).raiseAlerts([candidate as never], () => Date.now())
  })

  it('can change from any disposition to any other, with the alert as answer', async () => {
    const path = `/alerts/${alertId}/disposition`
    for (const disposition of ['CONFIRMED', 'OPEN', 'FALSE_POSITIVE', 'REVIEWED']) {
      const answer = await call('POST', path, { disposition, note: `now ${disposition}` })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.body).toMatchObject({ alert_id: alertId, disposition, seq: 1 })
      expect(answer.body).toHaveProperty('decision.risk_score', 80)
    }
    expect((await call('POST', path, { disposition: 'MAYBE' })).status).toBe(400)
    // Texts that Postgres cannot store.
    for (const note of ['\ud800', 'a\0b']) {
      const refused = await call('POST', path, { disposition: 'OPEN', note })
      expect(refused.status).toBe(400)
      expect(JSON.stringify(refused.body)).toContain('note')
    }
    const unknown = await call('POST', '/alerts/alr_none/disposition', { disposition: 'OPEN' })
    expect(unknown.body).toMatchObject({ code: 'alert_not_found' })
    const audit = await call('GET', `/tenants/${tenantId}/audit`)
    const { data } = audit.body as unknown as { data: { action: string; actor: string }[] }
    const changes = data.filter(({ action }) => action === 'alert.dispositioned')
    expect(changes).toHaveLength(4)
    expect(changes.every(({ actor }) => actor === 'admin')).toBe(true)
  })

  type Timeline = {
    data: { kind: string; at: string; id: string; [field: string]: unknown }[]
    next_cursor: string | null
    incomplete: { kind: string; state: string }[]
  }
  const readTimeline = async (query = '', subject = 'devices/d-1') => {
    const answer = await call('GET', `/tenants/${tenantId}/${subject}/timeline${query}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.body as unknown as Timeline
  }

  it('have a timeline with all that Postgres knows, which names what ClickHouse does not answer', async () => {
    await call('PUT', `/alerts/${alertId}/assignee`, { assignee: 'ann@example.com' })
    await call('POST', `/alerts/${alertId}/notes`, { note: 'a farm' })
    const { body: shown } = await call('GET', `/alerts/${alertId}`)
    const { case_id: caseId } = (shown as unknown as { alert: { case_id: string } }).alert
    await call('POST', `/cases/${caseId}/notes`, { note: 'two people' })
    await call('POST', `/alerts/${alertId}/disposition`, { disposition: 'CONFIRMED', note: 'sure' })
    const subject = { device_id: 'd-1' }
    const labelled = await call('POST', `/tenants/${tenantId}/labels`, {
      subject,
      label: 'chargeback',
      occurred_at: '2026-01-02T03:04:05.006Z',
    })
    expect(labelled.status, labelled.text).toBe(201)
    const entry = { list: 'deny', kind: 'device', id: 'd-1', reason: 'farm' }
    await call('POST', `/tenants/${tenantId}/lists`, entry)
    // One of another device, and one of another tenant with the same id.
    await call('POST', `/tenants/${tenantId}/lists`, { ...entry, id: 'd-2' })
    const other = (await create()).tenant_id
    await call('POST', `/tenants/${other}/lists`, entry)

    const { data, incomplete } = await readTimeline()
    const of = (kind: string) => data.find((one) => one.kind === kind)
    const kinds = data.map(({ kind }) => kind)
    expect(kinds.slice(0, 6)).toEqual([
      ...['list_entry', 'label', 'disposition', 'case_note', 'note', 'assignment'],
    ])
    expect(of('case_note')).toMatchObject({ case_id: caseId, by: 'admin', note: 'two people' })
    expect(kinds.slice(6).sort()).toEqual(['alert', 'delivery'])
    expect(of('alert')).toMatchObject({ id: alertId, risk_score: 80, disposition: 'CONFIRMED' })
    expect(of('disposition')).toMatchObject({ from: 'OPEN', to: 'CONFIRMED', note: 'sure' })
    expect(of('note')).toMatchObject({ alert_id: alertId, by: 'admin', note: 'a farm' })
    expect(of('assignment')).toMatchObject({ from: null, to: 'ann@example.com' })
    expect(of('label')).toMatchObject({ label: 'chargeback', subject_id: 'd-1' })
    expect(of('list_entry')).toMatchObject({ list: 'deny', listed_id: 'd-1', reason: 'farm' })
    expect(of('delivery')).toMatchObject({ alert_id: alertId, event: 'risk.alert' })
    expect(incomplete).toMatchObject([
      { kind: 'event', state: 'unavailable' },
      { kind: 'signal', state: 'unavailable' },
    ])
  })

  it('have a timeline that is filtered by kind and time, and continues page by page', async () => {
    for (let n = 0; n < 5; n++) await call('POST', `/alerts/${alertId}/notes`, { note: `${n}` })
    const all = await readTimeline('?kinds=note,alert')
    expect(all.data.map((one) => one.note ?? one.kind)).toEqual(['4', '3', '2', '1', '0', 'alert'])
    expect(all.incomplete).toEqual([])
    const pages: Timeline['data'] = []
    let cursor = ''
    do {
      const page = await readTimeline(`?kinds=note,alert&limit=2${cursor}`)
      expect(page.data.length).toBeLessThanOrEqual(2)
      pages.push(...page.data)
      cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`
    } while (cursor !== '')
    expect(pages).toEqual(all.data)
    const { at } = all.data[2]!
    const later = await readTimeline(`?kinds=note,alert&from=${at}`)
    expect(later.data).toEqual(all.data.filter((one) => one.at >= at))
    const earlier = await readTimeline(`?kinds=note,alert&to=${at}`)
    expect(earlier.data).toEqual(all.data.filter((one) => one.at < at))
    const first = await readTimeline('?kinds=note&limit=2')
    const path = `/tenants/${tenantId}/devices/d-1/timeline`
    const refused = await call('GET', `${path}?kinds=alert&limit=2&cursor=${first.next_cursor}`)
    expect(refused.body).toMatchObject({ code: 'invalid_query' })
    expect((await readTimeline('?kinds=alert,note', 'devices/d-2')).data).toEqual([])
  })

  it('of a phone and a user have timelines, also while their devices cannot be read', async () => {
    const user = await readTimeline('?kinds=signal,alert', 'users/nobody')
    expect(user).toMatchObject({ data: [], incomplete: [{ kind: 'signal' }] })
    const phone = await readTimeline('?kinds=alert,correction', `phones/phn_${'a'.repeat(22)}`)
    expect(phone).toMatchObject({ data: [], incomplete: [{ kind: 'alert' }] })
  })

  it('show their deliveries', async () => {
    const path = `/tenants/${tenantId}/deliveries`
    const all = await call('GET', path)
    expect(all.body.data).toMatchObject([{ alert_id: alertId, state: 'pending', attempts: [] }])
    expect((await call('GET', `${path}?state=failed`)).body.data).toEqual([])
    expect((await call('GET', `${path}?state=lost`)).status).toBe(400)
  })
})

describe('the audit log', () => {
  it('has every change, newest first, with before and after and never a secret', async () => {
    const tenant = await create({ environment: 'sandbox', name: 'Acme' })
    const path = `/tenants/${tenant.tenant_id}`
    await call('PUT', `${path}/webhook`, { url: 'https://hooks.example/a' })
    await call('POST', `${path}/suspend`)
    await call('POST', `${path}/suspend`)
    await call('POST', `${path}/resume`)
    const rotated = await call('POST', `${path}/rotate`, {
      hmac: true,
      webhook: true,
      api_key: true,
    })
    await call('DELETE', `${path}/webhook`)
    const answer = await call('GET', `${path}/audit?limit=5`)
    const { data, next_cursor } = answer.body as unknown as {
      data: { action: string; before: unknown; after: unknown }[]
      next_cursor: string
    }
    expect(data.map(({ action }) => action)).toEqual([
      'webhook.switched_off',
      'tenant.rotated',
      'tenant.rotation_begun',
      'tenant.resumed',
      'tenant.suspended',
    ])
    expect(data[0]).toMatchObject({
      before: { url: 'https://hooks.example/a', state: 'on' },
      after: { url: null, state: 'off' },
    })
    const rest = await call('GET', `${path}/audit?limit=2&cursor=${next_cursor}`)
    expect(rest.body.next_cursor).toBeNull()
    expect(rest.body.data).toMatchObject([
      { action: 'webhook.set', actor: 'admin' },
      { action: 'tenant.created', actor: 'admin', before: null, after: { name: 'Acme' } },
    ])
    const secrets = [tenant, rotated.body as unknown as Created].flatMap((of) => [
      of.hmac_secret,
      of.webhook_secret.slice(6, -6),
      of.public_api_key,
    ])
    for (const secret of secrets) expect(answer.text + rest.text).not.toContain(secret)
  })
})

describe('other routes', () => {
  it('show the applied revision of each edge', async () => {
    await until('both edges are current', async () => {
      const { body } = await call('GET', '/edges')
      const { revision, data } = body as unknown as {
        revision: number
        data: { applied_revision: number }[]
      }
      return data.length === 2 && data.every((edge) => edge.applied_revision >= revision)
    })
  })

  it('are described by an OpenAPI 3.1 document that names every route', async () => {
    const { status, body } = await call('GET', '/openapi.json', undefined, null)
    expect(status).toBe(200)
    expect(body).toMatchObject({ openapi: '3.1.0' })
    const paths = body.paths as unknown as Record<string, Record<string, { responses: object }>>
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const described = Object.keys(endpointAccess)
      .filter((name) => name !== 'GET /openapi.json')
      .map((name) => name.replaceAll(/:(\w+)/g, '{$1}').replace(' ', ' /admin/v1'))
    expect(routes.sort()).toEqual(described.sort())
    const create = paths['/admin/v1/tenants']!.post!
    const failures = [
      ...['400', '401', '403', '408', '409', '413', '415', '422', '429', '431', '500', '503'],
    ]
    expect(Object.keys(create.responses)).toEqual(['201', ...failures])
  })

  it('never start on a MASTER_KEY that cannot open the stored secrets', async () => {
    await create()
    await requireMasterKey(rig.postgres, createSealer([rig.masterKey]))
    const other = createSealer([randomBytes(32).toString('base64')])
    await expect(requireMasterKey(rig.postgres, other)).rejects.toBeInstanceOf(ConfigError)
    await expect(requireMasterKey(rig.postgres, other)).rejects.toThrow('MASTER_KEY')
  })
})

describe('a search', () => {
  it('reports a partial result when there are more tenants than it searches', async () => {
    const searched: number[] = []
    const links = {
      ...deps.links,
      findByText: async ({ tenantIds }: { tenantIds: readonly string[] }) => {
        searched.push(tenantIds.length)
        return []
      },
    }
    const searching = await createApp({ ...deps, links })
    const partial = async () => {
      const answer = await call('GET', '/search?q=x', undefined, adminToken, searching)
      return answer.body.partial
    }
    const { rows } = await rig.postgres.query<{ tenants: number }>(
      'select count(*) as tenants from tenants',
    )
    const missing = 1_000 - rows[0]!.tenants
    const names = Array.from({ length: missing + 1 }, (_, n) => `many-${n}`)
    await insertBareTenants(rig.postgres, names.slice(0, missing))
    expect(await partial()).toBe(false)
    await insertBareTenants(rig.postgres, names.slice(missing))
    expect(await partial()).toBe(true)
    expect(searched).toEqual([1_000, 1_000])
    await searching.close()
  })
})

describe('lists without counters', () => {
  it('wait for one another and are rejected, while other calls are answered', async () => {
    const { tenant_id: tenantId } = await create()
    const holder = createPostgres(rig.postgresUrl, { role: 'test', log: testLog })
    const own = createPostgres(rig.postgresUrl, { role: 'test', log: testLog })
    const bounded = await createApp({ ...deps, postgres: own })
    const of = (method: 'GET' | 'POST', path: string, body?: object) =>
      bounded.inject({
        method,
        url: `/admin/v1${path}`,
        headers: { authorization: `Bearer ${adminToken}` },
        ...(body === undefined ? {} : { payload: body }),
      })
    const bulk = { filter: { user_id: 'u' }, disposition: 'OPEN', expected_count: 0 }
    const twelve = (send: () => ReturnType<typeof of>) => Array.from({ length: 12 }, send)
    const answers = await holder.transaction(async (tx) => {
      // Every read of alerts waits here, as for a slow index.
      await tx.query('lock table alerts in access exclusive mode')
      const exports = twelve(() => of('GET', `/tenants/${tenantId}/alerts.csv?user_id=u`))
      const others = [
        twelve(() => of('GET', `/tenants/${tenantId}/alerts?user_id=u`)),
        twelve(() => of('POST', `/tenants/${tenantId}/alerts/bulk-disposition`, bulk)),
        twelve(() => of('GET', '/search?q=alr_x')),
      ]
      for (const first of await Promise.all(others.map((sent) => Promise.race(sent)))) {
        expect([first.statusCode, first.json().code]).toEqual([503, 'unavailable'])
      }
      expect((await of('GET', `/tenants/${tenantId}`)).statusCode).toBe(200)
      return { exports, others }
    })
    const statuses = (sent: (typeof answers)['exports']) =>
      Promise.all(sent.map(async (one) => (await one).statusCode))
    expect(new Set(await statuses(answers.exports))).toEqual(new Set([200]))
    for (const sent of answers.others) {
      expect((await statuses(sent)).filter((status) => status < 300)).not.toHaveLength(0)
    }
    await bounded.close()
    await Promise.all([own.close(), holder.close()])
  })
})

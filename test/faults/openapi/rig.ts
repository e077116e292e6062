/**
 * A local stack with tenants that have telemetry, alerts, deliveries, policies and analysts, so
 * that valid calls return data, and the existing values.
 */
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import {
  admin,
  createTenant,
  ingest,
  read,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { type Credentials, sign } from './calls.ts'
import type { OpenapiDocument, Operation } from './operations.ts'
import type { KnownValues } from './schema-values.ts'

export type OpenapiRig = {
  documents: { api: OpenapiDocument; admin: OpenapiDocument }
  baseOf: (operation: Operation) => string
  credentials: Credentials
  /** A tenant whose key stays valid. */
  reader: Tenant
  running: TestStack
  close: () => Promise<void>
}

const devices = ['device-1', 'a/b c+d', 'übung-😀', "o'hara"]

/**
 * Starts the stack and fills it; about six seconds.
 * @param options.env of the stack, for servers that it does not start itself
 * @param options.hasAnalysts false for a ClickHouse that keeps no users
 */
export async function startOpenapiRig({
  env = {},
  hasAnalysts = true,
}: {
  env?: Record<string, string>
  hasAnalysts?: boolean
} = {}): Promise<OpenapiRig> {
  const [running, receiver] = await Promise.all([
    // Wrong tokens come from other addresses, so that their limit does not slow other calls.
    startStack({ env: { TRUSTED_PROXIES: '127.0.0.1', ...env } }),
    startReceiver(),
  ])
  const { stack } = running
  const hook = receiver.url
  // Admin calls never use the reader tenant, so its key stays valid.
  const [reader, main] = await Promise.all(
    ['reader', 'main', 'other'].map((name) => createTenant(stack, name, `${hook}/${name}`)),
  )
  const rest_rate = { per_second: 1_000_000, burst: 1_000_000 }
  await admin(stack, 'PUT', '/tenants/reader/rates', { rest_rate })
  const eventIds = [await fill(running, reader!), ...(await Promise.all([fill(running, main!)]))]
  const scopes = ['read', 'alerts:write', 'lists:write', 'labels:write']
  const { api_key: writerKey } = await admin<{ api_key: string }>(
    stack,
    'POST',
    '/tenants/reader/keys',
    { name: 'writer', scopes },
  )
  await admin(stack, 'POST', '/tenants/main/keys', { name: 'spare', scopes: ['read'] })
  const analysts = hasAnalysts ? ['ana', 'bob'] : []
  for (const name of analysts) await admin(stack, 'POST', '/tenants/main/analysts', { name })
  // A second version, so that the list of versions has a second page.
  await admin(stack, 'PUT', '/tenants/main/policy', { preset: 'balanced' })
  await admin(stack, 'PUT', '/tenants/main/policy/shadow', { preset: 'strict' })
  await admin(stack, 'PUT', '/tenants/other/policy/shadow', { preset: 'strict' })
  const documentAt = async (url: string) => (await (await fetch(url)).json()) as OpenapiDocument
  const known = {
    ...(await readKnown(running, { reader: reader!, hook, eventIds: eventIds.flat() })),
    people: await signPeopleIn(running),
    ...(await startJobs(running)),
    ...(await writeDrafts(running)),
    ...(await readCases(running)),
    // Of nothing: nothing here is put back.
    recoveryDigest: (await admin<{ digest: string }>(stack, 'GET', '/recovery')).digest,
    readerEntries: await addEntries(running, 'reader'),
    mainEntries: await addEntries(running, 'main'),
  }
  return {
    running,
    reader: reader!,
    documents: {
      api: await documentAt(`${stack.api}/openapi.json`),
      admin: await documentAt(`${stack.console}/admin/v1/openapi.json`),
    },
    baseOf: ({ server, path }) => {
      if (server === 'ingest_url') return stack.ingest
      return path.startsWith('/admin/') ? stack.console : stack.api
    },
    credentials: toCredentials(running, { reader: reader!, writerKey, known }),
    close: () => closeAll(running, receiver),
  }
}

/** A bulk change and an erasure, which end soon. */
async function startJobs({ stack }: TestStack) {
  const post = <T>(path: string, body: object) => admin<T>(stack, 'POST', path, body)
  // Not the erased device: its erasure removes changes that name it.
  const filter = { device_id: 'unknown-device' }
  const change = { filter, disposition: 'REVIEWED', expected_count: 0 }
  const path = '/tenants/main/alerts/bulk-disposition'
  const { job_id } = await post<{ job_id: string }>(path, change)
  const erased = { device_id: 'nothing', wait: false }
  const { erasure_id } = await post<{ erasure_id: string }>('/tenants/main/erasures', erased)
  return { jobId: job_id, erasureId: erasure_id }
}

/** A draft of a policy, and a proposal that the calls' own actor may withdraw. */
async function writeDrafts({ stack }: TestStack) {
  const post = <T>(path: string, body: object) => admin<T>(stack, 'POST', path, body)
  const draft = { text: '{}', base_version: 1 }
  const { draft_id } = await post<{ draft_id: string }>('/tenants/main/drafts', draft)
  const proposal = { kind: 'install_root', action: 'rotate', reason: 'why' }
  const path = '/tenants/main/proposals'
  const { proposal_id } = await post<{ proposal_id: string }>(path, proposal)
  return { draftId: draft_id, proposalId: proposal_id }
}

/** The cases of a tenant, and saved views, each to be removed once. */
async function readCases({ stack }: TestStack) {
  const cases = '/tenants/main/cases'
  const { data } = await admin<{ data: { case_id: string }[] }>(stack, 'GET', cases)
  const viewIds: string[] = []
  for (const name of ['one', 'two', 'three']) {
    const view = { kind: 'cases', name, query: { state: 'OPEN' } }
    const path = '/tenants/main/saved-views'
    viewIds.push((await admin<{ view_id: string }>(stack, 'POST', path, view)).view_id)
  }
  return { caseIds: data.map((one) => one.case_id), viewIds }
}

/** Entries of a tenant's deny list, each to be removed once. @returns their ids */
async function addEntries({ stack }: TestStack, tenantId: string): Promise<string[]> {
  const ids: string[] = []
  for (const id of ['listed-1', 'listed-2', 'listed-3']) {
    const body = { list: 'deny', kind: 'device', id, reason: 'drill' }
    const path = `/tenants/${tenantId}/lists`
    ids.push((await admin<{ entry_id: string }>(stack, 'POST', path, body)).entry_id)
  }
  return ids
}

const email = 'drill@example.com'
const password = 'a sentence that only the drill types'
/** Calls end these sessions, so there are several. */
const disposableSessions = 12
const endsSession = /^(DELETE .*\/sessions?(\/.*)?|POST .*\/step-up|PUT .*\/password)$/

/** One operator with sessions whom no other call changes, and another one. */
async function signPeopleIn({ stack }: TestStack) {
  const origin = stack.console
  const post = async (path: string, body: object, cookie?: string) => {
    const headers = { origin, 'content-type': 'application/json' }
    const answer = await fetch(`${origin}/admin/v1${path}`, {
      method: 'POST',
      headers: cookie === undefined ? headers : { ...headers, cookie },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    const shown = (await answer.json()) as {
      operator: { operator_id: string }
      session: { session_id: string }
    }
    return { ...shown, cookie: answer.headers.get('set-cookie')!.split(';', 1)[0]! }
  }
  const makeInvitation = (email: string) => {
    const invitation = { email, role: 'admin' }
    const path = '/operators/invitations'
    return admin<{ url: string; invitation_id: string }>(stack, 'POST', path, invitation)
  }
  const invite = async (email: string) => (await makeInvitation(email)).url.split('#')[1]!
  const join = async (email: string) =>
    post(`/invitations/${await invite(email)}`, { name: 'Drill', password })
  const first = await join(email)
  const stepped = await post('/session/step-up', { password }, first.cookie)
  const others = []
  while (others.length < disposableSessions)
    others.push(await post('/session', { email, password }))
  const { operator } = await join('another@example.com')
  const { operator: third } = await join('third@example.com')
  return {
    steppedUp: stepped.cookie,
    disposable: others.map(({ cookie }) => cookie),
    sessionIds: others.map(({ session }) => session.session_id),
    otherId: operator.operator_id,
    resetId: third.operator_id,
    invitation: await invite('invited@example.com'),
    withdrawnId: (await makeInvitation('withdrawn@example.com')).invitation_id,
  }
}

async function closeAll(running: TestStack, receiver: Receiver): Promise<void> {
  await running.discard()
  await receiver.close()
}

/** Sessions of every verdict on every device. @returns event ids */
async function fill({ stack }: TestStack, tenant: Tenant): Promise<string[]> {
  const eventIds: string[] = []
  for (const device of devices) {
    for (let at = 0; at < 8; at++) {
      const signals = at % 2 === 0 ? { root: { su_binary: true, magisk: true } } : {}
      const extra = { device: { brand: 'Google', model: 'Pixel 9' } }
      const named = { device, session: `session-${at}`, user: `user-${at % 3}`, signals, extra }
      const answer = await ingest(stack, tenant.hmac_secret, toBody(tenant.tenant_id, named))
      if (answer.status !== 200) throw new Error(`ingest: ${JSON.stringify(answer)}`)
      eventIds.push(answer.body.event_id!)
    }
  }
  return eventIds
}

const deliveriesList = 'GET /admin/v1/tenants/{tenant_id}/deliveries'

/** Lists of the admin API with more than one page, by operation. */
const pagedLists = {
  'GET /admin/v1/tenants': '/tenants',
  'GET /admin/v1/audit': '/audit',
  'GET /admin/v1/tenants/{tenant_id}/audit': '/tenants/main/audit',
  'GET /admin/v1/tenants/{tenant_id}/alerts': '/tenants/main/alerts',
  'GET /admin/v1/tenants/{tenant_id}/policy/versions': '/tenants/main/policy/versions',
  'GET /admin/v1/tenants/{tenant_id}/cases': '/tenants/main/cases',
}

type Page = { data: { alert_id: string }[]; total: number; next_cursor: string | null }

async function readKnown(
  { stack }: TestStack,
  { reader, hook, eventIds }: { reader: Tenant; hook: string; eventIds: string[] },
) {
  type Deliveries = {
    data: { delivery_id: string; alert_id: string }[]
    next_cursor: string | null
  }
  const isRead = async (limit: number): Promise<Page | null> => {
    const path = `/v1/di/alerts?limit=${limit}`
    const { body } = await read<Page>(stack, reader.public_api_key, path)
    return body.total > 0 && body.next_cursor !== null ? body : null
  }
  const page = await until('alerts of the reader', () => isRead(1), 30_000)
  const deliveries = await until(
    'deliveries',
    async () => {
      const listed = await admin<Deliveries>(stack, 'GET', '/tenants/main/deliveries?limit=2')
      return listed.next_cursor === null ? null : listed
    },
    30_000,
  )
  const device = await until(
    'a device',
    async () => {
      const path = '/v1/di/devices/device-1?sessions_limit=1'
      const { body } = await read<{ sessions_cursor?: string }>(stack, reader.public_api_key, path)
      return body.sessions_cursor
    },
    30_000,
  )
  const cursors: Record<string, string> = {}
  for (const [operation, path] of Object.entries(pagedLists)) {
    const listed = await admin<{ next_cursor: string }>(stack, 'GET', `${path}?limit=1`)
    cursors[operation] = listed.next_cursor
  }
  const own = deliveries.data.map((one) => one.alert_id)
  return {
    hook,
    eventIds,
    alertIds: own,
    readerAlertIds: page.data.map((one) => one.alert_id),
    deliveryIds: deliveries.data.map((one) => one.delivery_id),
    cursor: page.next_cursor!,
    sessionsCursor: device,
    cursors: { ...cursors, [deliveriesList]: deliveries.next_cursor! },
  }
}

type Known = Awaited<ReturnType<typeof readKnown>> &
  Awaited<ReturnType<typeof startJobs>> &
  Awaited<ReturnType<typeof writeDrafts>> &
  Awaited<ReturnType<typeof readCases>> & {
    people: Awaited<ReturnType<typeof signPeopleIn>>
    recoveryDigest: string
    readerEntries: string[]
    mainEntries: string[]
  }

function toCredentials(
  { stack }: TestStack,
  of: { reader: Tenant; writerKey: string; known: Known },
): Credentials {
  const { reader, writerKey, known } = of
  const instants = ['2026-01-01T00:00:00Z', '2026-03-01', new Date(Date.now() - 36e5).toISOString()]
  const everywhere: KnownValues = {
    tenant_id: ['main', 'main', 'main', 'other'],
    device_id: devices,
    phone_id: devices.map((device) => toPhoneId('main', device)),
    user_id: ['user-0', 'user-1', 'user-2'],
    alert_id: known.alertIds,
    delivery_id: known.deliveryIds,
    event_id: known.eventIds,
    job_id: [known.jobId],
    erasure_id: [known.erasureId],
    draft_id: [known.draftId],
    revision: [1],
    base_version: [1],
    case_id: known.caseIds,
    into: known.caseIds,
    proposal_id: [known.proposalId],
    version: [1, 1, 1, 2],
    url: [`${known.hook}/main`],
    webhook_url: [`${known.hook}/new`, null],
    environment: ['sandbox', 'sandbox', 'live'],
    cursor: [known.cursor],
    sessions_cursor: [known.sessionsCursor],
    since: instants,
    from: [new Date(Date.now() - 36e5).toISOString()],
    to: [new Date().toISOString()],
    if_version: [1],
    'If-None-Match': ['"another"', 'W/"another"'],
    'Idempotency-Key': Array.from({ length: 2_000 }, (_, n) => `key-${n}`),
  }
  const own: Record<string, KnownValues> = {
    'POST /admin/v1/tenants': { tenant_id: [] },
    'POST /v1/rasp/ingest': { tenant_id: [reader.tenant_id] },
    'POST /v1/rasp/ingest/batch': { tenant_id: [reader.tenant_id] },
    'GET /v1/di/phones/{phone_id}': {
      phone_id: devices.map((device) => toPhoneId(reader.tenant_id, device)),
    },
    'GET /v1/di/alerts/{alert_id}': { alert_id: known.readerAlertIds },
    'POST /v1/di/alerts/{alert_id}/disposition': { alert_id: known.readerAlertIds },
    'POST /admin/v1/tenants/{tenant_id}/sql': { tenant_id: ['main'], sql: ['select 1 as one'] },
    'GET /admin/v1/policy-presets/{name}': { name: ['strict', 'balanced', 'permissive'] },
    'POST /admin/v1/tenants/{tenant_id}/analysts': { tenant_id: ['main'], name: ['eve', 'ida'] },
    'POST /admin/v1/tenants/{tenant_id}/analysts/{name}/password': {
      tenant_id: ['main'],
      name: ['ana', 'bob'],
    },
    'DELETE /admin/v1/tenants/{tenant_id}/analysts/{name}': {
      tenant_id: ['main'],
      name: ['eve', 'ida'],
    },
    'DELETE /admin/v1/tenants/{tenant_id}/keys/{name}': { tenant_id: ['main'], name: ['spare'] },
    'GET /admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}': {
      tenant_id: ['main'],
      delivery_id: known.deliveryIds,
    },
    'PUT /admin/v1/alerts/{alert_id}/assignee': {
      alert_id: known.alertIds,
      assignee: [null, email],
    },
    'PUT /admin/v1/cases/{case_id}/assignee': { case_id: known.caseIds, assignee: [null, email] },
    ...Object.fromEntries(
      Object.entries(known.cursors).map(([name, cursor]) => [
        name,
        { tenant_id: ['main'], cursor: [cursor] },
      ]),
    ),
    'POST /admin/v1/tenants/{tenant_id}/erasures': { device_id: ['gone-1', 'gone-2'] },
    'DELETE /v1/di/lists/{entry_id}': { entry_id: known.readerEntries },
    'DELETE /admin/v1/tenants/{tenant_id}/lists/{entry_id}': {
      tenant_id: ['main'],
      entry_id: known.mainEntries,
    },
    'DELETE /admin/v1/tenants/{tenant_id}/saved-views/{view_id}': {
      tenant_id: ['main'],
      view_id: known.viewIds,
    },
    'PUT /admin/v1/tenants/{tenant_id}/drafts/{draft_id}': {
      tenant_id: ['main'],
      draft_id: [known.draftId],
      base_version: [1],
      revision: [1],
    },
    'POST /admin/v1/recovery': { digest: [known.recoveryDigest] },
    'POST /admin/v1/session': { email: [email], password: [password] },
    'POST /admin/v1/session/step-up': { password: [password] },
    'DELETE /admin/v1/sessions/{session_id}': { session_id: known.people.sessionIds },
    'GET /admin/v1/invitations/{token}': { token: [known.people.invitation] },
    'POST /admin/v1/invitations/{token}': {
      token: [known.people.invitation],
      password: [password],
    },
    'PATCH /admin/v1/operators/{operator_id}': {
      operator_id: [known.people.otherId],
      tenants: ['all'],
    },
    'POST /admin/v1/operators/{operator_id}/reset': { operator_id: [known.people.resetId] },
    'POST /admin/v1/operators/invitations': { tenants: ['all'] },
    'POST /admin/v1/operators/invitations/withdraw': {
      invitation_id: [known.people.withdrawnId],
    },
  }
  const { disposable, steppedUp } = known.people
  let disposed = 0
  return {
    authorize: ({ security, name, path }, body): Record<string, string> => {
      if (security === 'publicApiKey') return { authorization: `Bearer ${writerKey}` }
      if (security === 'admin') return { authorization: `Bearer ${stack.admin_token}` }
      if (security === 'session') {
        const cookie = endsSession.test(name)
          ? disposable[disposed++ % disposable.length]!
          : steppedUp
        // Without Origin another method on the path of a GET changes nothing.
        return name.startsWith('GET ') ? { cookie } : { cookie, origin: stack.console }
      }
      if (path.startsWith('/admin/')) return { origin: stack.console }
      return { 'x-service-signature': sign(reader.hmac_secret, body) }
    },
    knownFor: ({ name }) => ({ ...everywhere, ...own[name] }),
  }
}

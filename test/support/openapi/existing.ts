/**
 * What exists before the calls of conformance, so that valid ones return data: tenants with
 * telemetry, alerts, deliveries and policies, analysts, and operators with sessions.
 */

import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import type { TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { makeAlertCandidate } from '../alerts/alert-candidates.ts'
import { acceptEvent } from '../http/api-rig.ts'
import type { Tenant } from '../http/tenant-client.ts'

/** Calls an operation with JSON. @throws on anything but a 2xx */
export type CallJson = <T>(
  method: string,
  path: string,
  of?: { body?: object; headers?: Record<string, string> },
) => Promise<{ body: T; cookie: string }>

export type Sources = {
  /** As whoever holds the token. */
  admin: <T>(method: string, path: string, body?: object) => Promise<T>
  /** Calls the admin API without a token. */
  callConsole: CallJson
  callApi: CallJson
  alerts: Pick<AlertStore, 'raiseAlerts'>
  telemetry: TelemetryStore
}

export const devices = ['device-1', 'a/b c+d', 'übung-😀', "o'hara"]
/** Nothing is sent there. */
const hook = 'http://127.0.0.1:9999'
const email = 'drill@example.com'
const password = 'a sentence that only the drill types'
/** Calls end these sessions, so there are several. */
const disposableSessions = 12

export type Existing = Awaited<ReturnType<typeof makeExisting>>

/** Makes everything; admin calls never change the tenant `reader`, so that its key stays valid. */
export async function makeExisting(sources: Sources) {
  const { admin } = sources
  const makeTenant = (tenant_id: string) => {
    const webhook_url = `${hook}/${tenant_id}`
    return admin<Tenant>('POST', '/tenants', { tenant_id, environment: 'sandbox', webhook_url })
  }
  const reader = await makeTenant('reader')
  await makeTenant('main')
  await makeTenant('other')
  const rest_rate = { per_second: 1_000_000, burst: 1_000_000 }
  await admin('PUT', '/tenants/reader/rates', { rest_rate })
  const eventIds = [...(await fill(sources, 'reader')), ...(await fill(sources, 'main'))]
  const scopes = ['read', 'alerts:write', 'lists:write', 'labels:write']
  const writer = { name: 'writer', scopes }
  type Key = { api_key: string }
  const { api_key: writerKey } = await admin<Key>('POST', '/tenants/reader/keys', writer)
  await admin('POST', '/tenants/main/keys', { name: 'spare', scopes: ['read'] })
  for (const name of ['ana', 'bob']) await admin('POST', '/tenants/main/analysts', { name })
  // A second version, so that the list of versions has a second page.
  await admin('PUT', '/tenants/main/policy', { preset: 'balanced' })
  await admin('PUT', '/tenants/main/policy/shadow', { preset: 'strict' })
  await admin('PUT', '/tenants/other/policy/shadow', { preset: 'strict' })
  return {
    reader,
    writerKey,
    hook,
    email,
    password,
    eventIds,
    ...(await readPages(sources, reader.public_api_key)),
    people: await signPeopleIn(sources),
    ...(await makeWork(sources)),
    // Of nothing: nothing here is put back.
    recoveryDigest: (await admin<{ digest: string }>('GET', '/recovery')).digest,
    readerEntries: await addEntries(sources, 'reader'),
    mainEntries: await addEntries(sources, 'main'),
  }
}

/** Sessions of every verdict on every device, as the scorer stores them. @returns event ids */
async function fill({ telemetry, alerts }: Sources, tenantId: string): Promise<string[]> {
  const nowMs = Date.now()
  const policy_hash = toPolicyHash(balancedPolicy)
  const events = devices.flatMap((deviceId, at) =>
    Array.from({ length: 8 }, (_, session) => {
      const isRooted = session % 2 === 0
      const event = acceptEvent({
        tenantId,
        deviceId,
        sessionId: `session-${session}`,
        userId: `user-${session % 3}`,
        atMs: nowMs - 1_000 * (10 * at + session),
        score: isRooted ? 80 : 0,
        flags: isRooted ? ['ROOTED'] : [],
        signals: isRooted ? { root: { su_binary: true, magisk_detected: true } } : {},
      })
      return { ...event, policy_hash }
    }),
  )
  await telemetry.insertTelemetry(events)
  const raised = events.filter(({ rasp_action }) => rasp_action !== 'ALLOW')
  const candidates = raised.map((event) =>
    makeAlertCandidate({
      tenantId,
      deviceId: event.body.device_id,
      sessionId: event.body.session_id,
      userId: event.body.user_id ?? null,
      eventId: event.event_id,
      action: 'BLOCK',
      riskScore: event.rasp_score,
    }),
  )
  await alerts.raiseAlerts(candidates, Date.now)
  return events.map(({ event_id }) => event_id)
}

/** Lists of the admin API with more than one page, by operation. */
const pagedLists = {
  'GET /admin/v1/tenants': '/tenants',
  'GET /admin/v1/audit': '/audit',
  'GET /admin/v1/tenants/{tenant_id}/audit': '/tenants/main/audit',
  'GET /admin/v1/tenants/{tenant_id}/alerts': '/tenants/main/alerts',
  'GET /admin/v1/tenants/{tenant_id}/policy/versions': '/tenants/main/policy/versions',
  'GET /admin/v1/tenants/{tenant_id}/cases': '/tenants/main/cases',
  'GET /admin/v1/tenants/{tenant_id}/deliveries': '/tenants/main/deliveries',
}

type Page<T> = { data: T[]; next_cursor: string }

/** The ids and cursors of first pages. */
async function readPages({ admin, callApi }: Sources, key: string) {
  type Delivery = { delivery_id: string; alert_id: string }
  const headers = { authorization: `Bearer ${key}` }
  const path = '/tenants/main/deliveries?limit=2'
  const deliveries = await admin<Page<Delivery>>('GET', path)
  const read = async <T>(path: string) => (await callApi<T>('GET', path, { headers })).body
  const alerts = await read<Page<{ alert_id: string }>>('/v1/di/alerts?limit=1')
  const devicePath = '/v1/di/devices/device-1?sessions_limit=1'
  const device = await read<{ sessions_cursor: string }>(devicePath)
  const cursors: Record<string, string> = {}
  for (const [operation, list] of Object.entries(pagedLists)) {
    cursors[operation] = (await admin<Page<never>>('GET', `${list}?limit=1`)).next_cursor
  }
  return {
    alertIds: deliveries.data.map(({ alert_id }) => alert_id),
    readerAlertIds: alerts.data.map(({ alert_id }) => alert_id),
    deliveryIds: deliveries.data.map(({ delivery_id }) => delivery_id),
    cursor: alerts.next_cursor,
    sessionsCursor: device.sessions_cursor,
    cursors,
  }
}

/** Jobs that end soon, a draft, a proposal, cases, and saved views to be removed once each. */
async function makeWork({ admin }: Sources) {
  const post = <T extends string>(path: string, body: object) =>
    admin<Record<T, string>>('POST', `/tenants/main/${path}`, body)
  // Not the erased device: its erasure removes changes that name it.
  const filter = { device_id: 'unknown-device' }
  const change = { filter, disposition: 'REVIEWED', expected_count: 0 }
  const { job_id } = await post<'job_id'>('alerts/bulk-disposition', change)
  const erased = { device_id: 'nothing', wait: false }
  const { erasure_id } = await post<'erasure_id'>('erasures', erased)
  const { draft_id } = await post<'draft_id'>('drafts', { text: '{}', base_version: 1 })
  // One that the calls' own actor may withdraw.
  const proposal = { kind: 'install_root', action: 'rotate', reason: 'why' }
  const { proposal_id } = await post<'proposal_id'>('proposals', proposal)
  const viewIds: string[] = []
  for (const name of ['one', 'two', 'three']) {
    const view = { kind: 'cases', name, query: { state: 'OPEN' } }
    viewIds.push((await post<'view_id'>('saved-views', view)).view_id)
  }
  const cases = await admin<Page<{ case_id: string }>>('GET', '/tenants/main/cases')
  const caseIds = cases.data.map(({ case_id }) => case_id)
  const ids = { jobId: job_id, erasureId: erasure_id, draftId: draft_id, proposalId: proposal_id }
  return { ...ids, viewIds, caseIds }
}

/** Entries of a tenant's deny list, each to be removed once. @returns their ids */
async function addEntries({ admin }: Sources, tenantId: string): Promise<string[]> {
  const ids: string[] = []
  for (const id of ['listed-1', 'listed-2', 'listed-3']) {
    const entry = { list: 'deny', kind: 'device', id, reason: 'drill' }
    const path = `/tenants/${tenantId}/lists`
    ids.push((await admin<{ entry_id: string }>('POST', path, entry)).entry_id)
  }
  return ids
}

/** One operator with sessions whom no other call changes, and two more. */
async function signPeopleIn({ admin, callConsole }: Sources) {
  type Shown = { operator: { operator_id: string }; session: { session_id: string } }
  const post = async (path: string, body: object, cookie?: string) => {
    const headers: Record<string, string> = cookie === undefined ? {} : { cookie }
    const answer = await callConsole<Shown>('POST', path, { body, headers })
    return { ...answer.body, cookie: answer.cookie }
  }
  const makeInvitation = (email: string) => {
    const invitation = { email, role: 'admin' }
    const path = '/operators/invitations'
    return admin<{ url: string; invitation_id: string }>('POST', path, invitation)
  }
  const invite = async (email: string) => (await makeInvitation(email)).url.split('#')[1]!
  const join = async (email: string) =>
    post(`/invitations/${await invite(email)}`, { name: 'Drill', password })
  const first = await join(email)
  const stepped = await post('/session/step-up', { password }, first.cookie)
  const others = []
  while (others.length < disposableSessions) {
    others.push(await post('/session', { email, password }))
  }
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

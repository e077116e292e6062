/**
 * Steps with the admin API on the path of one tenant: an operator never sees or changes anything of
 * another tenant there, even with its ids.
 */
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { type Drawn, noteChange, oneOf, type Step } from './api-steps.ts'
import { toUnknown } from './compare-answers.ts'
import type { Request, TenantClient } from './tenant-client.ts'
import { toPolicy } from './tenants.ts'

const prefix = '/admin/v1/tenants/{tenant_id}'

/** A call under the tenant's path. */
function at(
  { tenant }: TenantClient,
  tail: string,
  more: Partial<Request> = {},
  query = '',
): Request {
  const method = more.method ?? 'GET'
  const filled = tail.replace(/\{\w+\}/g, 'x')
  return {
    route: `${method} ${prefix}${tail}`,
    path: `/admin/v1/tenants/${tenant.tenant_id}${filled}${query}`,
    ...more,
  }
}

/** Such a call with an id in its path. */
const within = (
  client: TenantClient,
  tail: string,
  id: string,
  more: Partial<Request> = {},
): Request => ({
  ...at(client, tail, more),
  path: `/admin/v1/tenants/${client.tenant.tenant_id}${tail.replace(/\{\w+\}/, encodeURIComponent(id))}`,
})

type Deliveries = { data: { delivery_id: string; tenant_id: string }[]; next_cursor: string | null }

const listDeliveries: Step = async (client, { pick, limit, flags }) => {
  const size = 1 + (limit % 20)
  const query = new URLSearchParams({ limit: `${size}` })
  if (flags[0]) query.set('state', oneOf(['delivered', 'pending', 'failed'], pick))
  if (flags[1]) query.set('alert_id', oneOf(client.alerts, pick).alert_id)
  for (let page = 0; page < 3; page++) {
    const request = at(client, '/deliveries', {}, `?${query}`)
    const answer = await client.call(request)
    if (answer.status !== 200) return client.expect(false, request, answer, 'was refused')
    const found = JSON.parse(answer.text) as Deliveries
    const isOwn = found.data.every((one) => one.tenant_id === client.tenant.tenant_id)
    client.expect(isOwn && found.data.length <= size, request, answer, 'has rows of another tenant')
    if (found.next_cursor === null) return
    query.set('cursor', found.next_cursor)
  }
}

const showDelivery: Step = async (client, { pick }) => {
  const request = within(client, '/deliveries/{delivery_id}', oneOf(client.deliveryIds, pick))
  const answer = await client.call(request)
  client.expect(answer.status === 200, request, answer, 'does not show its own delivery')
}

const foreignDelivery: Step = async (client, { pick, other }) => {
  const foreign = oneOf(oneOf(client.others, other).deliveryIds, pick)
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await client.probe((id) => within(client, '/deliveries/{delivery_id}', id), ids, [404])
}

const foreignDeliveryFilter: Step = async (client, { pick, other }) => {
  const foreign = oneOf(oneOf(client.others, other).alerts, pick).alert_id
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await client.probe((id) => at(client, '/deliveries', {}, `?alert_id=${id}`), ids, [200])
}

const foreignDeliveryCursor: Step = async (client, { other }) => {
  const theirs = oneOf(client.others, other).tenant
  const { stack } = client.rig.running
  const answer = await fetch(
    `${stack.console}/admin/v1/tenants/${theirs.tenant_id}/deliveries?limit=1`,
    { headers: { authorization: `Bearer ${stack.admin_token}` } },
  )
  const { next_cursor: next } = (await answer.json()) as Deliveries
  if (next === null) return
  const [, ...position] = JSON.parse(Buffer.from(next, 'base64url').toString()) as unknown[]
  const unknown = Buffer.from(JSON.stringify(['0123456789abcdef', ...position]))
  const ids = { foreign: next, unknown: unknown.toString('base64url') }
  await client.probe((id) => at(client, '/deliveries', {}, `?cursor=${id}`), ids, [400])
}

const replay = (alert_id: string) => ({ method: 'POST', body: { alert_id } })

const foreignReplay: Step = async (client, { pick, other }) => {
  const foreign = oneOf(oneOf(client.others, other).alerts, pick).alert_id
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await client.probe((id) => at(client, '/deliveries/replay', replay(id)), ids, [404])
}

/** Changes a disposition, also in the model. */
const dispose: Step = async (client, { pick, flags }) => {
  const alert = oneOf(client.alerts, pick)
  const disposition = oneOf(dispositions, pick >> 3)
  const note = flags[0] ? { note: `note of ${client.tenant.mark}` } : {}
  const request: Request = {
    route: 'POST /admin/v1/alerts/{alert_id}/disposition',
    path: `/admin/v1/alerts/${alert.alert_id}/disposition`,
    method: 'POST',
    body: { disposition, ...note },
  }
  const answer = await client.call(request)
  client.expect(answer.status === 200, request, answer, 'did not take a disposition')
  if (answer.status === 200) noteChange(alert, disposition, answer.text)
}

type Audit = { data: { tenant_id: string }[]; next_cursor: string | null }

const listAudit: Step = async (client, { limit, flags }) => {
  const query = new URLSearchParams({ limit: `${1 + (limit % 30)}` })
  for (let page = 0; page < (flags[0] ? 2 : 1); page++) {
    const request = at(client, '/audit', {}, `?${query}`)
    const answer = await client.call(request)
    const found = JSON.parse(answer.text) as Audit
    const isOwn = found.data.every((row) => row.tenant_id === client.tenant.tenant_id)
    client.expect(isOwn, request, answer, 'has rows of another tenant')
    if (found.next_cursor === null) return
    query.set('cursor', found.next_cursor)
  }
}

/** Gets a version that only tenants with more changes have. */
const policyVersion: Step = async (client, { pick }) => {
  const { policyVersions, mark } = client.tenant
  const version = 1 + (pick % 12)
  const request = within(client, '/policy/versions/{version}', String(version))
  const answer = await client.call(request)
  const isThere = version <= policyVersions
  const isOwn = version === 1 || answer.text.includes(mark)
  const isRight = isThere ? answer.status === 200 && isOwn : answer.status === 404
  client.expect(isRight, request, answer, `is not version ${version} of ${policyVersions}`)
}

const foreignAnalyst: Step = async (client, { pick, other }) => {
  const foreign = `only-${oneOf(client.others, other).tenant.mark}`
  const ids = { foreign, unknown: `z${toUnknown(foreign, pick).slice(1)}` }
  await client.probe(
    (id) => within(client, '/analysts/{name}', id, { method: 'DELETE' }),
    ids,
    [404],
  )
}

const explain: Step = async (client, { pick }) => {
  const id = oneOf(client.tenant.eventIds, pick)
  const request: Request = {
    route: 'GET /admin/v1/events/{event_id}/explanation',
    path: `/admin/v1/events/${id}/explanation`,
  }
  const answer = await client.call(request)
  if (answer.status !== 200) return client.expect(false, request, answer, 'cannot be explained')
  const { event, matches } = JSON.parse(answer.text) as {
    event: { tenant_id: string }
    matches: boolean
  }
  const isOwn = event.tenant_id === client.tenant.tenant_id
  client.expect(isOwn && matches, request, answer, 'is not explained as its own')
}

/** A page of a tenant shows the tenant's own data. */
const shows = (tail: string, own: boolean, query = ''): Step => {
  return async (client) => {
    const request = at(client, tail, {}, query)
    const answer = await client.call(request)
    const isRight = answer.status === 200 && (!own || answer.text.includes(client.tenant.mark))
    client.expect(isRight, request, answer, 'does not show its own')
  }
}

const setPolicy: Step = async (client, { pick }) => {
  const { mark, policyVersions } = client.tenant
  const body = toPolicy(mark, policyVersions + (pick % 2))
  const request = at(client, '/policy', { method: 'PUT', body })
  const answer = await client.call(request)
  client.expect(answer.status === 200, request, answer, 'did not take a policy')
  if (answer.status !== 200) return
  const { version } = JSON.parse(answer.text) as { version: number }
  client.tenant.policyVersions = version
}

/** Changes that must not affect other tenants. */
const settle: Step = async (client, { pick }: Drawn) => {
  const days = 100 + client.tenant.index
  const changes: [string, Partial<Request>][][] = [
    [['/retention', { method: 'PUT', body: { events: days, alerts: days } }]],
    [
      ['/webhook/pause', { method: 'POST' }],
      ['/webhook/resume', { method: 'POST' }],
    ],
    [['/deliveries/test', { method: 'POST' }]],
    [['/deliveries/replay', { method: 'POST', body: { since: '2100-01-01' } }]],
    [['/deliveries/replay', replay(oneOf(client.alerts, pick).alert_id)]],
  ]
  for (const [tail, more] of oneOf(changes, pick)) {
    const request = at(client, tail, more)
    const answer = await client.call(request)
    client.expect(answer.status < 300, request, answer, 'was refused')
  }
}

const backtest: Step = async (client) => {
  const body = toPolicy(client.tenant.mark, 1)
  const request = at(client, '/policy/backtest', { method: 'POST', body, mayBeBusy: true })
  const answer = await client.call(request)
  if (answer.status === 503) return
  const last = answer.text.trim().split('\n').at(-1) ?? ''
  const { report } = JSON.parse(last) as { report?: { events: number } }
  const isRight = report?.events === client.tenant.eventIds.length
  client.expect(isRight, request, answer, 'counts events of others')
}

/** Nothing is labelled, so it is refused, and says how many sessions of the tenant it read. */
const suggestion: Step = async (client) => {
  const request = at(client, '/policy/suggestion', { method: 'POST', mayBeBusy: true })
  const answer = await client.call(request)
  if (answer.status === 503) return
  const last = answer.text.trim().split('\n').at(-1) ?? ''
  const { report } = JSON.parse(last) as { report?: { sessions: number; tenant_id: string } }
  const { tenant_id: tenantId, eventIds } = client.tenant
  const isOwn = report?.tenant_id === tenantId && report.sessions <= eventIds.length
  client.expect(isOwn, request, answer, 'counts sessions of others')
}

/** An operator's SQL query returns only rows of the path's tenant, although it names no tenant. */
const runSql: Step = async (client) => {
  const body = { sql: 'select tenant_id, * from events order by rand() limit 20' }
  const request = at(client, '/sql', { method: 'POST', body, mayBeBusy: true })
  const answer = await client.call(request)
  if (answer.status === 503) return
  const { rows } = JSON.parse(answer.text) as { rows?: unknown[][] }
  const isOwn = rows?.every(([tenant]) => tenant === client.tenant.tenant_id)
  client.expect(isOwn === true && rows!.length > 0, request, answer, 'has rows of others')
}

const checkPolicy: Step = async (client) => {
  const body = toPolicy(client.tenant.mark, 1)
  const request = at(client, '/policy/check', { method: 'POST', body })
  const answer = await client.call(request)
  client.expect(answer.text.includes('"valid":true'), request, answer, 'is not valid')
}

/** Each step with its weight. */
export const adminSteps: (readonly [weight: number, step: Step])[] = [
  [5, listDeliveries],
  [3, showDelivery],
  [4, foreignDelivery],
  [3, foreignDeliveryFilter],
  [4, foreignDeliveryCursor],
  [3, foreignReplay],
  [4, dispose],
  [3, listAudit],
  [3, policyVersion],
  [2, foreignAnalyst],
  [0.3, explain],
  [2, shows('', true)],
  [2, shows('/policy', true)],
  [2, shows('/policy/versions', true)],
  [2, shows('/policy/shadow', true)],
  [2, shows('/analysts', true)],
  [2, shows('/keys', true)],
  [2, shows('/signals', true)],
  [2, shows('/stale-secret-requests', false)],
  [0.3, shows('/unknown-signals', true, '?days=1')],
  [0.2, shows('/policy/shadow/comparison', true)],
  [0.3, shows('/rule-performance', false)],
  [1, shows('/prevalence-spikes', false)],
  [0.2, shows('/reconciliation', false)],
  [0.1, shows('/fleet', false)],
  [0.1, shows('/attestation-coverage', false)],
  [0.2, runSql],
  [0.5, checkPolicy],
  [0.3, setPolicy],
  [1, settle],
  [0.05, backtest],
  [0.05, suggestion],
]

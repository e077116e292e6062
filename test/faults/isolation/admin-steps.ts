/**
 * What the isolation drill does with the admin API, wherever a tenant is in the path: an operator
 * who works on one tenant never sees or touches anything of another, even with its ids.
 */

import { type Drawn, oneOf, type Step } from './api-steps.ts'
import { toUnknown } from './compare-answers.ts'
import type { Asked, Lane } from './tenant-client.ts'
import { toPolicy } from './tenants.ts'

const prefix = '/admin/v1/tenants/{tenant_id}'

/** A call below the tenant's path. */
function at({ tenant }: Lane, tail: string, more: Partial<Asked> = {}, query = ''): Asked {
  const method = more.method ?? 'GET'
  const filled = tail.replace(/\{\w+\}/g, 'x')
  return {
    route: `${method} ${prefix}${tail}`,
    path: `/admin/v1/tenants/${tenant.tenant_id}${filled}${query}`,
    ...more,
  }
}

/** Such a call with something in its path. */
const within = (lane: Lane, tail: string, id: string, more: Partial<Asked> = {}): Asked => ({
  ...at(lane, tail, more),
  path: `/admin/v1/tenants/${lane.tenant.tenant_id}${tail.replace(/\{\w+\}/, encodeURIComponent(id))}`,
})

type Deliveries = { data: { delivery_id: string; tenant_id: string }[]; next: string | null }

const listDeliveries: Step = async (lane, { pick, limit, flags }) => {
  const size = 1 + (limit % 20)
  const query = new URLSearchParams({ limit: `${size}` })
  if (flags[0]) query.set('state', oneOf(['delivered', 'pending', 'failed'], pick))
  if (flags[1]) query.set('alert_id', oneOf(lane.alerts, pick).alert_id)
  let next: string | null = null
  for (let page = 0; page < 3; page++) {
    if (next !== null) query.set('after', next)
    const asked = at(lane, '/deliveries', {}, `?${query}`)
    const answer = await lane.ask(asked)
    if (answer.status !== 200) return lane.expect(false, asked, answer, 'was refused')
    const found = JSON.parse(answer.text) as Deliveries
    const isOwn = found.data.every((one) => one.tenant_id === lane.tenant.tenant_id)
    lane.expect(isOwn && found.data.length <= size, asked, answer, 'has rows of another tenant')
    next = found.next
    if (next === null) return
  }
}

const showDelivery: Step = async (lane, { pick }) => {
  const asked = within(lane, '/deliveries/{delivery_id}', oneOf(lane.deliveryIds, pick))
  const answer = await lane.ask(asked)
  lane.expect(answer.status === 200, asked, answer, 'does not show its own delivery')
}

const foreignDelivery: Step = async (lane, { pick, other }) => {
  const foreign = oneOf(oneOf(lane.others, other).deliveryIds, pick)
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await lane.probe((id) => within(lane, '/deliveries/{delivery_id}', id), ids, [404])
}

const foreignDeliveryFilter: Step = async (lane, { pick, other }) => {
  const foreign = oneOf(oneOf(lane.others, other).alerts, pick).alert_id
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await lane.probe((id) => at(lane, '/deliveries', {}, `?alert_id=${id}`), ids, [200])
}

const foreignDeliveryCursor: Step = async (lane, { other }) => {
  const theirs = oneOf(lane.others, other).tenant
  const { stack } = lane.world.running
  const answer = await fetch(
    `${stack.console}/admin/v1/tenants/${theirs.tenant_id}/deliveries?limit=1`,
    { headers: { authorization: `Bearer ${stack.admin_token}` } },
  )
  const { next } = (await answer.json()) as Deliveries
  if (next === null) return
  const [, ...position] = JSON.parse(Buffer.from(next, 'base64url').toString()) as unknown[]
  const unknown = Buffer.from(JSON.stringify(['0123456789abcdef', ...position]))
  const ids = { foreign: next, unknown: unknown.toString('base64url') }
  await lane.probe((id) => at(lane, '/deliveries', {}, `?after=${id}`), ids, [400])
}

const replay = (alert_id: string) => ({ method: 'POST', body: { alert_id } })

const foreignReplay: Step = async (lane, { pick, other }) => {
  const foreign = oneOf(oneOf(lane.others, other).alerts, pick).alert_id
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await lane.probe((id) => at(lane, '/deliveries/replay', replay(id)), ids, [404])
}

/** Changes a disposition: from then on the list has it so, and nobody else's has. */
const dispose: Step = async (lane, { pick, flags }) => {
  const alert = oneOf(lane.alerts, pick)
  const disposition = oneOf(['REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED', 'OPEN'], pick >> 3)
  const note = flags[0] ? { note: `note of ${lane.tenant.mark}` } : {}
  const asked: Asked = {
    route: 'POST /admin/v1/alerts/{alert_id}/disposition',
    path: `/admin/v1/alerts/${alert.alert_id}/disposition`,
    method: 'POST',
    body: { disposition, ...note },
  }
  const answer = await lane.ask(asked)
  lane.expect(answer.status === 200, asked, answer, 'did not take a disposition')
  if (answer.status === 200) alert.disposition = disposition
}

const listAudit: Step = async (lane, { pick, limit, flags }) => {
  const query = new URLSearchParams({ limit: `${1 + (limit % 30)}` })
  // Numbers of all tenants are of one row: a place between any two is as good as another.
  if (flags[0]) query.set('before', `${1 + (pick % 2_000)}`)
  const asked = at(lane, '/audit', {}, `?${query}`)
  const answer = await lane.ask(asked)
  const { data } = JSON.parse(answer.text) as { data: { tenant_id: string }[] }
  const isOwn = data.every((row) => row.tenant_id === lane.tenant.tenant_id)
  lane.expect(isOwn, asked, answer, 'has rows of another tenant')
}

/** A version that only tenants with more changes have. */
const policyVersion: Step = async (lane, { pick }) => {
  const { policyVersions, mark } = lane.tenant
  const version = 1 + (pick % 12)
  const asked = within(lane, '/policy/versions/{version}', String(version))
  const answer = await lane.ask(asked)
  const isThere = version <= policyVersions
  const isOwn = version === 1 || answer.text.includes(mark)
  const isRight = isThere ? answer.status === 200 && isOwn : answer.status === 404
  lane.expect(isRight, asked, answer, `is not version ${version} of ${policyVersions}`)
}

const foreignAnalyst: Step = async (lane, { pick, other }) => {
  const foreign = `only-${oneOf(lane.others, other).tenant.mark}`
  const ids = { foreign, unknown: `z${toUnknown(foreign, pick).slice(1)}` }
  await lane.probe((id) => within(lane, '/analysts/{name}', id, { method: 'DELETE' }), ids, [404])
}

const explain: Step = async (lane, { pick }) => {
  const id = oneOf(lane.tenant.eventIds, pick)
  const asked: Asked = {
    route: 'GET /admin/v1/events/{event_id}/explanation',
    path: `/admin/v1/events/${id}/explanation`,
  }
  const answer = await lane.ask(asked)
  if (answer.status !== 200) return lane.expect(false, asked, answer, 'cannot be explained')
  const { event, matches } = JSON.parse(answer.text) as {
    event: { tenant_id: string }
    matches: boolean
  }
  const isOwn = event.tenant_id === lane.tenant.tenant_id
  lane.expect(isOwn && matches, asked, answer, 'is not explained as its own')
}

/** What a tenant's page shows: nothing of another in it, and something of its own. */
const shows = (tail: string, own: boolean, query = ''): Step => {
  return async (lane) => {
    const asked = at(lane, tail, {}, query)
    const answer = await lane.ask(asked)
    const isRight = answer.status === 200 && (!own || answer.text.includes(lane.tenant.mark))
    lane.expect(isRight, asked, answer, 'does not show its own')
  }
}

const setPolicy: Step = async (lane, { pick }) => {
  const { mark, policyVersions } = lane.tenant
  const body = toPolicy(mark, policyVersions + (pick % 2))
  const asked = at(lane, '/policy', { method: 'PUT', body })
  const answer = await lane.ask(asked)
  lane.expect(answer.status === 200, asked, answer, 'did not take a policy')
  if (answer.status !== 200) return
  const { version } = JSON.parse(answer.text) as { version: number }
  lane.tenant.policyVersions = version
}

/** Changes that others must not feel: their settings are read all the time. */
const settle: Step = async (lane, { pick }: Drawn) => {
  const days = 100 + lane.tenant.index
  const changes: [string, Partial<Asked>][][] = [
    [['/retention', { method: 'PUT', body: { events: days, alerts: days } }]],
    [
      ['/webhook/pause', { method: 'POST' }],
      ['/webhook/resume', { method: 'POST' }],
    ],
    [['/deliveries/test', { method: 'POST' }]],
    [['/deliveries/replay', { method: 'POST', body: { since: '2100-01-01' } }]],
    [['/deliveries/replay', replay(oneOf(lane.alerts, pick).alert_id)]],
  ]
  for (const [tail, more] of oneOf(changes, pick)) {
    const asked = at(lane, tail, more)
    const answer = await lane.ask(asked)
    lane.expect(answer.status < 300, asked, answer, 'was refused')
  }
}

const backtest: Step = async (lane) => {
  const body = toPolicy(lane.tenant.mark, 1)
  const asked = at(lane, '/policy/backtest', { method: 'POST', body, mayBeBusy: true })
  const answer = await lane.ask(asked)
  if (answer.status === 503) return
  const last = answer.text.trim().split('\n').at(-1) ?? ''
  const { report } = JSON.parse(last) as { report?: { events: number } }
  const isRight = report?.events === lane.tenant.eventIds.length
  lane.expect(isRight, asked, answer, 'counts events of others')
}

/** By how often each is done. */
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
  [2, shows('/signals', true)],
  [2, shows('/stale-secret-requests', false)],
  [0.3, shows('/unknown-signals', true, '?days=1')],
  [0.2, shows('/policy/shadow/comparison', true)],
  [0.3, shows('/rule-performance', false)],
  [1, shows('/prevalence-spikes', false)],
  [0.2, shows('/reconciliation', false)],
  [0.3, setPolicy],
  [1, settle],
  [0.05, backtest],
]

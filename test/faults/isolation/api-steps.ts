/**
 * Steps with the REST API: every filter and cursor of the alert list and of the device history,
 * compared with the model, and every way to name another tenant's data.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Alert, AlertDetail } from '#shared/core/alerts/alert-schema.ts'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { toIso } from '#shared/core/base/instants.ts'
import { toUnknown } from './compare-answers.ts'
import { type DeviceView, toDevicePath } from './rig.ts'
import type { TenantClient } from './tenant-client.ts'

/** Random numbers, of which each step uses some. */
export type Drawn = {
  pick: number
  other: number
  limit: number
  flags: boolean[]
  instants: [number, number]
}

export type Step = (client: TenantClient, drawn: Drawn) => Promise<void>

const alertsRoute = 'GET /v1/di/alerts'
const deviceRoute = 'GET /v1/di/devices/{device_id}'
const refused = [400] as const
const absent = [404] as const
export const oneOf = <T>(all: readonly T[], at: number): T => all[at % all.length]!

type Page = { data: Alert[]; total: number; limit: number; next_cursor: string | null }

/** Random filters, and the tenant's alerts that match them. */
function drawFilters({ alerts, tenant, others }: TenantClient, drawn: Drawn) {
  const { pick, other, flags, instants } = drawn
  const query: [string, string][] = []
  let matching = alerts
  const keep = (name: string, value: string, fits: (alert: Alert) => boolean) => {
    query.push([name, value])
    matching = matching.filter(fits)
  }
  if (flags[0]) {
    const action = oneOf(['REVIEW', 'BLOCK'], pick)
    keep('decision', action, (alert) => alert.decision.action === action)
  }
  if (flags[1]) {
    const request = oneOf(['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'], pick)
    keep('disposition', request, (alert) => alert.disposition === request)
  }
  if (flags[2]) {
    const foreign = oneOf(others, other).tenant.onlyDevice
    const id = oneOf([...tenant.deviceIds, foreign], pick + other)
    keep('device_id', id, (alert) => alert.entity.device.device_id === id)
  }
  // Each of these is rare, so that most lists have rows.
  if (flags[5] && pick % 3 === 0) {
    const named = alerts.flatMap((alert) => alert.entity.user?.user_id ?? [])
    const id = oneOf([...named, `account-${oneOf(others, other).tenant.mark}`], pick + other)
    keep('user_id', id, (alert) => alert.entity.user?.user_id === id)
  }
  if (flags[6] && pick % 5 === 0) {
    const id = oneOf(alerts, other).entity.session.session_id
    keep('session_id', id, (alert) => alert.entity.session.session_id === id)
  }
  if (flags[7] && pick % 3 === 1) {
    const some = ['ROOTED', oneOf(['DEBUGGER_ATTACHED', 'HIGH_VELOCITY'], other)]
    keep('flag', some.join(), (alert) => alert.flags.some((flag) => some.includes(flag)))
  }
  if (flags[8] && pick % 3 === 2) {
    const some = ['CRITICAL', oneOf(['HIGH', 'MEDIUM'], other)]
    keep('severity', some.join(), (alert) => some.includes(alert.decision.severity))
  }
  if (flags[9]) {
    const least = 40 + (other % 50)
    keep('min_score', `${least}`, (alert) => alert.decision.risk_score >= least)
  }
  const times = alerts.map((alert) => Date.parse(alert.created_at))
  // A range that ends before it begins is refused.
  const [fromMs, toMs] = instants
    .map((instant) => oneOf(times, instant) + (pick % 3) - 1)
    .sort((a, b) => a - b) as [number, number]
  if (flags[3]) {
    keep('from', toIso(fromMs), (alert) => Date.parse(alert.created_at) >= fromMs)
  }
  if (flags[4]) {
    keep('to', toIso(toMs), (alert) => Date.parse(alert.created_at) < toMs)
  }
  return { query, matching }
}

const toAlertsPath = (query: [string, string][]): string =>
  query.length === 0 ? '/v1/di/alerts' : `/v1/di/alerts?${new URLSearchParams(query)}`

/** Pages through a list: rows, order, total and end equal the model's. */
const listAlerts: Step = async (client, drawn) => {
  const { query, matching } = drawFilters(client, drawn)
  const limit = 1 + (drawn.limit % 40)
  let cursor: string | null = null
  for (let page = 0; page < 4; page++) {
    const more: [string, string][] = cursor === null ? [] : [['cursor', cursor]]
    const path = toAlertsPath([...query, ['limit', `${limit}`], ...more])
    const request = { route: alertsRoute, path }
    const answer = await client.call(request)
    const expected = matching.slice(page * limit, (page + 1) * limit)
    const found = answer.status === 200 ? (JSON.parse(answer.text) as Page) : null
    const isLast = (page + 1) * limit >= matching.length
    const isRight =
      found !== null &&
      isDeepStrictEqual(found.data, expected) &&
      found.total === matching.length &&
      (found.next_cursor === null) === isLast
    client.expect(isRight, request, answer, `is not the model's page of ${expected.length} alerts`)
    cursor = found?.next_cursor ?? null
    if (cursor === null) return
  }
}

/** Pages through the sessions of a device that others have as well. */
const showDevice: Step = async (client, drawn) => {
  const device = oneOf([...client.devices.values()], drawn.pick)
  const limit = 1 + (drawn.limit % 6)
  let cursor: string | null = null
  for (let page = 0; page < 3; page++) {
    const query = new URLSearchParams({
      sessions_limit: `${limit}`,
      ...(cursor === null ? {} : { sessions_cursor: cursor }),
    })
    const request = { route: deviceRoute, path: `${toDevicePath(device.device_id)}?${query}` }
    const answer = await client.call(request)
    const found = answer.status === 200 ? (JSON.parse(answer.text) as DeviceView) : null
    cursor = found?.sessions_cursor ?? null
    const sessions = device.sessions.slice(page * limit, (page + 1) * limit)
    const isLast = (page + 1) * limit >= device.sessions.length
    const expected = { ...device, sessions, sessions_cursor: isLast ? null : cursor }
    const isRight = isDeepStrictEqual(found, expected) && (cursor === null) === isLast
    client.expect(isRight, request, answer, 'is not the device as the model has it')
    if (cursor === null) return
  }
}

/** A device that only another tenant has, and alert and event ids of that tenant as device ids. */
const foreignDevice: Step = async (client, { pick, other }) => {
  const { tenant, alerts } = oneOf(client.others, other)
  const ids = [tenant.onlyDevice, oneOf(alerts, pick).alert_id, oneOf(tenant.eventIds, pick)]
  const foreign = oneOf(ids, pick)
  const unknown = toUnknown(foreign, pick)
  await client.probe(
    (id) => ({ route: deviceRoute, path: toDevicePath(id) }),
    { foreign, unknown },
    absent,
  )
}

const foreignDeviceFilter: Step = async (client, { pick, other }) => {
  const foreign = oneOf(client.others, other).tenant.onlyDevice
  const unknown = toUnknown(foreign, pick)
  const request = (id: string) => ({
    route: alertsRoute,
    path: toAlertsPath([['device_id', id]]),
  })
  await client.probe(request, { foreign, unknown }, [200])
}

/** A cursor of another tenant for the same filters. */
const foreignAlertCursor: Step = async (client, drawn) => {
  const { query, matching } = drawFilters(client, drawn)
  const theirs = oneOf(client.others, drawn.other)
  const request = { route: alertsRoute, path: toAlertsPath([...query, ['limit', '1']]) }
  const cursor = await askAs<Page>(client, theirs.tenant.public_api_key, request)
  if (cursor?.next_cursor == null || matching.length === 0) return
  await client.probe(
    (id) => ({ ...request, path: toAlertsPath([...query, ['cursor', id]]) }),
    { foreign: cursor.next_cursor, unknown: garble(cursor.next_cursor) },
    refused,
  )
}

/** The same for the sessions of a device of the same id. */
const foreignSessionCursor: Step = async (client, { pick, other }) => {
  const theirs = oneOf(client.others, other)
  const path = toDevicePath(oneOf(theirs.tenant.deviceIds.slice(0, -1), pick))
  const request = { route: deviceRoute, path: `${path}?sessions_limit=2` }
  const page = await askAs<DeviceView>(client, theirs.tenant.public_api_key, request)
  if (page?.sessions_cursor == null) return
  await client.probe(
    (id) => ({ ...request, path: `${path}?sessions_cursor=${encodeURIComponent(id)}` }),
    { foreign: page.sessions_cursor, unknown: garble(page.sessions_cursor) },
    refused,
  )
}

/** Calls with another tenant's key. */
export async function askAs<Body>(
  { rig, call: _, ...client }: TenantClient,
  key: string,
  { path }: { path: string },
): Promise<Body | null> {
  const { api } = rig.running.stack
  const answer = await fetch(api + path, { headers: { authorization: `Bearer ${key}` } })
  if (!answer.ok) throw new Error(`${client.tenant.tenant_id}: ${answer.status} ${path}`)
  return (await answer.json()) as Body
}

/** The same cursor with an unknown binding. */
export function garble(cursor: string): string {
  const [, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
  return Buffer.from(JSON.stringify(['0123456789abcdef', ...position])).toString('base64url')
}

/** A tenant id in any place except the key changes nothing. */
const otherTenantNamed: Step = async (client, { pick, other, flags }) => {
  const { tenant_id: theirs } = oneOf(client.others, other).tenant
  const request = { route: alertsRoute, path: '/v1/di/alerts?limit=5' }
  const name = oneOf(['x-tenant-id', 'tenant-id', 'x-service-tenant', 'x-forwarded-user'], pick)
  if (flags[0]) {
    const answer = await client.call({ ...request, path: `${request.path}&tenant_id=${theirs}` })
    client.expect(answer.status === 400, request, answer, 'took a tenant_id')
    return
  }
  const answer = await client.call(request, { [name]: theirs, cookie: `tenant_id=${theirs}` })
  const { total } = JSON.parse(answer.text) as Page
  client.expect(total === client.alerts.length, request, answer, 'listened to a header')
}

const toOne = (kind: 'alerts' | 'users' | 'events', id: string) => ({
  route: `GET /v1/di/${kind}/{${kind.slice(0, -1)}_id}`,
  path: `/v1/di/${kind}/${encodeURIComponent(id)}`,
})

/** The model follows a change; when it was made is in the answer. */
export function noteChange(alert: Alert, disposition: Disposition, answer: string): void {
  alert.disposition = disposition
  alert.updated_at = (JSON.parse(answer) as Alert).updated_at
}

const showAlert: Step = async (client, { pick }) => {
  const alert = oneOf(client.alerts, pick)
  const request = toOne('alerts', alert.alert_id)
  const answer = await client.call(request)
  const found = answer.status === 200 ? (JSON.parse(answer.text) as AlertDetail) : null
  const { details, ...shown } = found ?? {}
  const last = details?.history.at(-1)?.to ?? 'OPEN'
  const isRight = isDeepStrictEqual(shown, alert) && last === alert.disposition
  client.expect(isRight, request, answer, 'is not its own alert')
}

const showUser: Step = async (client, { pick }) => {
  const id = oneOf(['user-1', 'user-2', `account-${client.tenant.mark}`], pick)
  const request = toOne('users', id)
  const answer = await client.call(request)
  const { devices } = JSON.parse(answer.text) as { devices?: { device_id: string }[] }
  const seen = devices?.map((one) => one.device_id).sort()
  const expected = [...client.devices.values()]
    .filter((device) => device.users_seen_on.includes(id))
    .map((device) => device.device_id)
    .sort()
  client.expect(isDeepStrictEqual(seen, expected), request, answer, 'has other devices')
}

const showEvent: Step = async (client, { pick }) => {
  const request = toOne('events', oneOf(client.tenant.eventIds, pick))
  const answer = await client.call(request)
  const isRight = answer.status === 200 && answer.text.includes(client.tenant.tenant_id)
  client.expect(isRight, request, answer, 'is not its own event')
}

/** An alert, a user and an event that only another tenant has. */
const foreignOne: Step = async (client, { pick, other }) => {
  const { tenant, alerts } = oneOf(client.others, other)
  const [kind, foreign] = oneOf(
    [
      ['alerts', oneOf(alerts, pick).alert_id],
      ['users', `account-${tenant.mark}`],
      ['events', oneOf(tenant.eventIds, pick)],
    ] as const,
    pick,
  )
  const ids = { foreign, unknown: toUnknown(foreign, pick) }
  await client.probe((id) => toOne(kind, id), ids, absent)
}

/** A key with the scope sets dispositions of its own tenant's alerts only. */
const setDisposition: Step = async (client, { pick, other, flags }) => {
  const own = oneOf(client.alerts, pick)
  const foreign = oneOf(oneOf(client.others, other).alerts, pick).alert_id
  const authorization = `Bearer ${client.tenant.writer_key}`
  const disposition = oneOf(dispositions, pick >> 3)
  const send = async (id: string) => {
    const request = {
      route: 'POST /v1/di/alerts/{alert_id}/disposition',
      path: `/v1/di/alerts/${id}/disposition`,
      method: 'POST',
      body: { disposition },
    }
    return { request, answer: await client.call(request, { authorization }) }
  }
  if (flags[0]) {
    const { request, answer } = await send(own.alert_id)
    client.expect(answer.status === 200, request, answer, 'did not take a disposition')
    if (answer.status === 200) noteChange(own, disposition, answer.text)
    return
  }
  for (const id of [foreign, toUnknown(foreign, pick)]) {
    const { request, answer } = await send(id)
    const isRight = answer.status === 404 && answer.text.includes('alert_not_found')
    client.expect(isRight, request, answer, 'is not a plain 404')
  }
}

const listSignals: Step = async (client) => {
  const request = { route: 'GET /v1/di/signals', path: '/v1/di/signals' }
  const answer = await client.call(request)
  client.expect(answer.text.includes(client.tenant.mark), request, answer, 'is not its own policy')
}

const readReconciliation: Step = async (client) => {
  const request = { route: 'GET /v1/di/ledger', path: '/v1/di/ledger' }
  const answer = await client.call(request)
  if (answer.status !== 200) return
  const { data } = JSON.parse(answer.text) as { data: { rows: number; stored: number }[] }
  const rows = data.reduce((sum, hour) => sum + hour.rows, 0)
  // Recent events may not be counted yet; events of others must never be.
  const isRight = rows <= client.tenant.eventIds.length
  client.expect(
    isRight,
    request,
    answer,
    `counts ${rows} of ${client.tenant.eventIds.length} events`,
  )
}

/** Each step with its weight. */
export const apiSteps: (readonly [weight: number, step: Step])[] = [
  [20, listAlerts],
  [12, showDevice],
  [6, foreignDevice],
  [5, foreignDeviceFilter],
  [6, foreignAlertCursor],
  [5, foreignSessionCursor],
  [4, otherTenantNamed],
  [5, showAlert],
  [4, showUser],
  [1, showEvent],
  [8, foreignOne],
  [3, setDisposition],
  [2, listSignals],
  [1, readReconciliation],
]

/**
 * What the isolation drill does with the REST API: every filter and cursor of the alert list and of
 * the device history held to the model, and every way to ask for what is another tenant's.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ApiAlert } from '../../support/http/tenant-client.ts'
import { toUnknown } from './compare-answers.ts'
import { type DeviceView, toDevicePath } from './rig.ts'
import type { Lane } from './tenant-client.ts'

/** The random part of a step: each step takes what it needs. */
export type Drawn = {
  pick: number
  other: number
  limit: number
  flags: boolean[]
  instants: [number, number]
}

export type Step = (lane: Lane, drawn: Drawn) => Promise<void>

const alertsRoute = 'GET /v1/di/alerts'
const deviceRoute = 'GET /v1/di/devices/{device_id}'
const refused = [400] as const
const absent = [404] as const
export const oneOf = <T>(all: readonly T[], at: number): T => all[at % all.length]!

type Page = { data: ApiAlert[]; total: number; limit: number; next_cursor: string | null }

/** The filters of one list, and what of the tenant's alerts they leave. */
function drawFilters({ alerts, tenant, others }: Lane, drawn: Drawn) {
  const { pick, other, flags, instants } = drawn
  const query: [string, string][] = []
  let matching = alerts
  const keep = (name: string, value: string, fits: (alert: ApiAlert) => boolean) => {
    query.push([name, value])
    matching = matching.filter(fits)
  }
  if (flags[0]) {
    const action = oneOf(['REVIEW', 'BLOCK'], pick)
    keep('decision', action, (alert) => alert.decision.action === action)
  }
  if (flags[1]) {
    const asked = oneOf(['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'], pick)
    keep('disposition', asked, (alert) => alert.disposition === asked)
  }
  if (flags[2]) {
    const foreign = oneOf(others, other).tenant.onlyDevice
    const id = oneOf([...tenant.deviceIds, foreign], pick + other)
    keep('device_id', id, (alert) => alert.entity.device.device_id === id)
  }
  const times = alerts.map((alert) => Date.parse(alert.created_at))
  if (flags[3]) {
    const fromMs = oneOf(times, instants[0]) + (pick % 3) - 1
    keep('from', toIso(fromMs), (alert) => Date.parse(alert.created_at) >= fromMs)
  }
  if (flags[4]) {
    const toMs = oneOf(times, instants[1]) + (pick % 3) - 1
    keep('to', toIso(toMs), (alert) => Date.parse(alert.created_at) < toMs)
  }
  return { query, matching }
}

const toIso = (ms: number): string => new Date(ms).toISOString()
const toAlertsPath = (query: [string, string][]): string =>
  query.length === 0 ? '/v1/di/alerts' : `/v1/di/alerts?${new URLSearchParams(query)}`

/** Pages through a list: rows, order, total and end are the model's. */
const listAlerts: Step = async (lane, drawn) => {
  const { query, matching } = drawFilters(lane, drawn)
  const limit = 1 + (drawn.limit % 40)
  let cursor: string | null = null
  for (let page = 0; page < 4; page++) {
    const more: [string, string][] = cursor === null ? [] : [['cursor', cursor]]
    const path = toAlertsPath([...query, ['limit', `${limit}`], ...more])
    const asked = { route: alertsRoute, path }
    const answer = await lane.ask(asked)
    const expected = matching.slice(page * limit, (page + 1) * limit)
    const found = answer.status === 200 ? (JSON.parse(answer.text) as Page) : null
    const isLast = (page + 1) * limit >= matching.length
    const isRight =
      found !== null &&
      isDeepStrictEqual(found.data, expected) &&
      found.total === matching.length &&
      (found.next_cursor === null) === isLast
    lane.expect(isRight, asked, answer, `is not the model's page of ${expected.length} alerts`)
    cursor = found?.next_cursor ?? null
    if (cursor === null) return
  }
}

/** Pages through the sessions of a device that others have as well. */
const showDevice: Step = async (lane, drawn) => {
  const device = oneOf([...lane.devices.values()], drawn.pick)
  const limit = 1 + (drawn.limit % 6)
  let cursor: string | null = null
  for (let page = 0; page < 3; page++) {
    const query = new URLSearchParams({
      sessions_limit: `${limit}`,
      ...(cursor === null ? {} : { sessions_cursor: cursor }),
    })
    const asked = { route: deviceRoute, path: `${toDevicePath(device.device_id)}?${query}` }
    const answer = await lane.ask(asked)
    const found = answer.status === 200 ? (JSON.parse(answer.text) as DeviceView) : null
    cursor = found?.sessions_cursor ?? null
    const sessions = device.sessions.slice(page * limit, (page + 1) * limit)
    const isLast = (page + 1) * limit >= device.sessions.length
    const expected = { ...device, sessions, sessions_cursor: isLast ? null : cursor }
    const isRight = isDeepStrictEqual(found, expected) && (cursor === null) === isLast
    lane.expect(isRight, asked, answer, 'is not the device as the model has it')
    if (cursor === null) return
  }
}

/** A device that only another tenant has, and ids of its alerts and events in a device's place. */
const foreignDevice: Step = async (lane, { pick, other }) => {
  const { tenant, alerts } = oneOf(lane.others, other)
  const ids = [tenant.onlyDevice, oneOf(alerts, pick).alert_id, oneOf(tenant.eventIds, pick)]
  const foreign = oneOf(ids, pick)
  const unknown = toUnknown(foreign, pick)
  await lane.probe(
    (id) => ({ route: deviceRoute, path: toDevicePath(id) }),
    { foreign, unknown },
    absent,
  )
}

const foreignDeviceFilter: Step = async (lane, { pick, other }) => {
  const foreign = oneOf(lane.others, other).tenant.onlyDevice
  const unknown = toUnknown(foreign, pick)
  const asked = (id: string) => ({
    route: alertsRoute,
    path: toAlertsPath([['device_id', id]]),
  })
  await lane.probe(asked, { foreign, unknown }, [200])
}

/** A cursor that another tenant was given for the very same filters. */
const foreignAlertCursor: Step = async (lane, drawn) => {
  const { query, matching } = drawFilters(lane, drawn)
  const theirs = oneOf(lane.others, drawn.other)
  const asked = { route: alertsRoute, path: toAlertsPath([...query, ['limit', '1']]) }
  const cursor = await askAs<Page>(lane, theirs.tenant.public_api_key, asked)
  if (cursor?.next_cursor == null || matching.length === 0) return
  await lane.probe(
    (id) => ({ ...asked, path: toAlertsPath([...query, ['cursor', id]]) }),
    { foreign: cursor.next_cursor, unknown: garble(cursor.next_cursor) },
    refused,
  )
}

/** The same for the sessions of a device of the same id. */
const foreignSessionCursor: Step = async (lane, { pick, other }) => {
  const theirs = oneOf(lane.others, other)
  const path = toDevicePath(oneOf(theirs.tenant.deviceIds.slice(0, -1), pick))
  const asked = { route: deviceRoute, path: `${path}?sessions_limit=2` }
  const page = await askAs<DeviceView>(lane, theirs.tenant.public_api_key, asked)
  if (page?.sessions_cursor == null) return
  await lane.probe(
    (id) => ({ ...asked, path: `${path}?sessions_cursor=${encodeURIComponent(id)}` }),
    { foreign: page.sessions_cursor, unknown: garble(page.sessions_cursor) },
    refused,
  )
}

/** Asks with another tenant's key, as that tenant would. */
async function askAs<Body>(
  { world, ask: _, ...lane }: Lane,
  key: string,
  { path }: { path: string },
): Promise<Body | null> {
  const { api } = world.running.stack
  const answer = await fetch(api + path, { headers: { authorization: `Bearer ${key}` } })
  if (!answer.ok) throw new Error(`${lane.tenant.tenant_id}: ${answer.status} ${path}`)
  return (await answer.json()) as Body
}

/** The same cursor with another binding: one that nobody was given. */
function garble(cursor: string): string {
  const [, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
  return Buffer.from(JSON.stringify(['0123456789abcdef', ...position])).toString('base64url')
}

/** Saying who one is otherwise than by the key changes nothing. */
const otherTenantNamed: Step = async (lane, { pick, other, flags }) => {
  const { tenant_id: theirs } = oneOf(lane.others, other).tenant
  const asked = { route: alertsRoute, path: '/v1/di/alerts?limit=5' }
  const name = oneOf(['x-tenant-id', 'tenant-id', 'x-service-tenant', 'x-forwarded-user'], pick)
  if (flags[0]) {
    const answer = await lane.ask({ ...asked, path: `${asked.path}&tenant_id=${theirs}` })
    lane.expect(answer.status === 400, asked, answer, 'took a tenant_id')
    return
  }
  const answer = await lane.ask(asked, { [name]: theirs, cookie: `tenant_id=${theirs}` })
  const { total } = JSON.parse(answer.text) as Page
  lane.expect(total === lane.alerts.length, asked, answer, 'listened to a header')
}

const listSignals: Step = async (lane) => {
  const asked = { route: 'GET /v1/di/signals', path: '/v1/di/signals' }
  const answer = await lane.ask(asked)
  lane.expect(answer.text.includes(lane.tenant.mark), asked, answer, 'is not its own policy')
}

const readReconciliation: Step = async (lane) => {
  const asked = { route: 'GET /v1/di/ledger', path: '/v1/di/ledger' }
  const answer = await lane.ask(asked)
  if (answer.status !== 200) return
  const { data } = JSON.parse(answer.text) as { data: { rows: number; stored: number }[] }
  const rows = data.reduce((sum, hour) => sum + hour.rows, 0)
  // What was not compared yet is in no number; what others sent never is.
  const isRight = rows <= lane.tenant.eventIds.length
  lane.expect(isRight, asked, answer, `counts ${rows} of ${lane.tenant.eventIds.length} events`)
}

/** By how often each is done. */
export const apiSteps: (readonly [weight: number, step: Step])[] = [
  [20, listAlerts],
  [12, showDevice],
  [6, foreignDevice],
  [5, foreignDeviceFilter],
  [6, foreignAlertCursor],
  [5, foreignSessionCursor],
  [4, otherTenantNamed],
  [2, listSignals],
  [1, readReconciliation],
]

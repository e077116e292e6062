/** The stack with its tenants, ready when everything sent has arrived as the model expects. */

import { isDeepStrictEqual } from 'node:util'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { admin, read, readAlerts } from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import type { Ownership } from './compare-answers.ts'
import { fillTenants, furnish, type IsolatedTenant } from './tenants.ts'

export type DeviceView = {
  device_id: string
  users_seen_on: string[]
  peak_rasp_score: number
  sessions: { session_id: string; started_at: string; risk_score: number }[]
  sessions_total: number
  sessions_cursor: string | null
  users_cursor: string | null
}

/** The data of a tenant; dispositions follow the drill's changes. */
export type Possessions = {
  tenant: IsolatedTenant
  /** Newest first. */
  alerts: Alert[]
  devices: Map<string, DeviceView>
  /** Delivery ids of its alerts. */
  deliveryIds: string[]
}

export type IsolationRig = {
  running: TestStack
  receiver: Receiver
  possessions: Possessions[]
  ownership: Ownership
  close: () => Promise<void>
}

/** Starts and fills the stack in about ten seconds. @throws when something differs from the model */
export async function startIsolationRig(seed: number, count = 5): Promise<IsolationRig> {
  const [running, receiver] = await Promise.all([startStack(), startReceiver()])
  const close = async () => {
    await running.discard()
    await receiver.close()
  }
  try {
    const tenants = await fillTenants(running, { seed, count, hookUrl: receiver.url })
    const possessions: Possessions[] = []
    for (const tenant of tenants) possessions.push(await settle(running, tenant))
    await Promise.all(tenants.map((tenant) => furnish(running, tenant)))
    return { running, receiver, possessions, ownership: toOwnership(possessions), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Waits until all alerts and devices of a tenant are visible, then reads them. */
async function settle(running: TestStack, tenant: IsolatedTenant): Promise<Possessions> {
  const { stack } = running
  const key = tenant.public_api_key
  const expected = tenant.model.alerts
  const alerts = await until(`alerts of ${tenant.tenant_id}`, async () => {
    const found = await readAlerts(stack, key)
    return found.total >= expected.length ? found.alerts : null
  })
  const devices = new Map<string, DeviceView>()
  for (const id of tenant.deviceIds) {
    const model = toModelDevice(tenant, id)
    const risks = sumOfRisks(model)
    const device = await until(`device ${id}`, async () => {
      const { body } = await read<DeviceView>(stack, key, toDevicePath(id))
      // Decisions come after the events.
      const isDecided = body.sessions !== undefined && sumOfRisks(body) >= risks
      return body.sessions_total >= model.sessions_total && isDecided ? body : null
    })
    devices.set(id, device)
  }
  const deliveryIds = alerts.map((alert) => toDeliveryId(alert.alert_id))
  const possessions = { tenant, alerts, devices, deliveryIds }
  const wrong = findDifferences(possessions)
  if (wrong.length > 0) throw new Error(`${tenant.tenant_id}: ${wrong.slice(0, 5).join('\n')}`)
  await until(`deliveries of ${tenant.tenant_id}`, async () => {
    const path = `/tenants/${tenant.tenant_id}/deliveries?state=delivered&limit=500`
    const { data } = await admin<{ data: unknown[] }>(stack, 'GET', path)
    return data.length === alerts.length
  })
  return possessions
}

/** Differences between the read data and the model, without times. */
export function findDifferences({ tenant, alerts, devices }: Possessions): string[] {
  const wrong: string[] = []
  // Alerts of one batch have one time, so their order is not defined.
  const toPlain = (alert: Alert) => {
    const changing = { seq: 0, created_at: '', updated_at: '', disposition: '' }
    return { ...alert, ...changing }
  }
  const numbers = alerts.map((alert) => alert.seq).sort((a, b) => a - b)
  if (numbers.some((seq, at) => seq !== at + 1)) wrong.push(`seq ${numbers.join()}`)
  const expected = new Map(tenant.model.alerts.map((one) => [one.alert_id, one]))
  if (alerts.length !== expected.size) wrong.push(`${alerts.length} alerts, not ${expected.size}`)
  for (const alert of alerts) {
    const model = expected.get(alert.alert_id)
    if (model !== undefined && isDeepStrictEqual(toPlain(alert), toPlain(model))) continue
    wrong.push(`alert ${JSON.stringify(alert)}, not ${JSON.stringify(model)}`)
  }
  for (const [id, device] of devices) {
    const model = toModelDevice(tenant, id)
    if (isDeepStrictEqual(withoutTimes(device), withoutTimes(model))) continue
    wrong.push(`device ${JSON.stringify(device)}, not ${JSON.stringify(model)}`)
  }
  return wrong
}

const sumOfRisks = ({ sessions }: DeviceView): number =>
  sessions.reduce((sum, session) => sum + session.risk_score, 0)

/** A device in the model. */
const toModelDevice = ({ model }: IsolatedTenant, id: string): DeviceView =>
  model.get(toDevicePath(id)).json as DeviceView

export const toDevicePath = (id: string): string => `/v1/di/devices/${encodeURIComponent(id)}`

function withoutTimes(device: DeviceView): unknown {
  const bare = ({ started_at: _, last_seen_at: __, ...rest }: Record<string, unknown>) => rest
  const sessions = device.sessions
    .map((one) => bare(one))
    .sort((a, b) => (String(a.session_id) < String(b.session_id) ? -1 : 1))
  return { ...bare(device), first_seen_at: '', sessions, sessions_cursor: null }
}

function toOwnership(possessions: Possessions[]): Ownership {
  const marks = new Map<string, string>()
  const ids = new Map<string, string>()
  for (const { tenant, alerts, deliveryIds } of possessions) {
    marks.set(tenant.mark, tenant.tenant_id)
    const own = [...alerts.map((one) => one.alert_id), ...deliveryIds, ...tenant.eventIds]
    for (const id of own) ids.set(id, tenant.tenant_id)
  }
  return { marks, ids }
}

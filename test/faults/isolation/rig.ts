/**
 * The world of the isolation drill: the stack with its five tenants once everything that they sent
 * has come out as the model says, and what the drill knows of them from then on.
 */
import { isDeepStrictEqual } from 'node:util'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { type ApiAlert, admin, read, readAlerts } from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import type { Ownership } from './compare-answers.ts'
import { fillTenants, furnish, type IsolatedTenant } from './tenants.ts'

export type DeviceView = {
  device_id: string
  users_seen_on: string[]
  peak_rasp_score: number
  sessions: { session_id: string; started_at: string }[]
  sessions_total: number
  sessions_cursor: string | null
  users_cursor: string | null
}

/** What a tenant has, as it was when all had settled; dispositions follow the drill's changes. */
export type Belongings = {
  tenant: IsolatedTenant
  /** Newest first. */
  alerts: ApiAlert[]
  devices: Map<string, DeviceView>
  /** Delivery ids of its alerts. */
  deliveryIds: string[]
}

export type IsolationWorld = {
  running: TestStack
  receiver: Receiver
  belongings: Belongings[]
  ownership: Ownership
  close: () => Promise<void>
}

/**
 * Starts and fills the stack; about ten seconds. @throws when something is not as the model says
 */
export async function startIsolationWorld(seed: number): Promise<IsolationWorld> {
  const [running, receiver] = await Promise.all([startStack(), startReceiver()])
  const close = async () => {
    await running.discard()
    await receiver.close()
  }
  try {
    const tenants = await fillTenants(running, { seed, hookUrl: receiver.url })
    const belongings: Belongings[] = []
    for (const tenant of tenants) belongings.push(await settle(running, tenant))
    await Promise.all(tenants.map((tenant) => furnish(running, tenant)))
    return { running, receiver, belongings, ownership: toOwnership(belongings), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Waits until a tenant's alerts and devices are all there, then reads what they are. */
async function settle(running: TestStack, tenant: IsolatedTenant): Promise<Belongings> {
  const { stack } = running
  const key = tenant.public_api_key
  const expected = tenant.model.alerts
  const alerts = await until(
    `alerts of ${tenant.tenant_id}`,
    async () => {
      const found = await readAlerts(stack, key)
      return found.total >= expected.length ? found.alerts : null
    },
    60_000,
  )
  const devices = new Map<string, DeviceView>()
  for (const id of tenant.deviceIds) {
    const total = toModelDevice(tenant, id).sessions_total
    const device = await until(
      `device ${id}`,
      async () => {
        const { body } = await read<DeviceView>(stack, key, toDevicePath(id))
        return body.sessions_total >= total ? body : null
      },
      30_000,
    )
    devices.set(id, device)
  }
  const deliveryIds = alerts.map((alert) => toDeliveryId(alert.alert_id))
  const belongings = { tenant, alerts, devices, deliveryIds }
  const wrong = findDepartures(belongings)
  if (wrong.length > 0) throw new Error(`${tenant.tenant_id}: ${wrong.slice(0, 5).join('\n')}`)
  await until(
    `deliveries of ${tenant.tenant_id}`,
    async () => {
      const path = `/tenants/${tenant.tenant_id}/deliveries?state=delivered&limit=500`
      const { data } = await admin<{ data: unknown[] }>(stack, 'GET', path)
      return data.length === alerts.length
    },
    60_000,
  )
  return belongings
}

/** How what was read differs from what the model says, times aside. */
export function findDepartures({ tenant, alerts, devices }: Belongings): string[] {
  const wrong: string[] = []
  // Alerts of one batch share a moment, so which of them is numbered first is not promised.
  const plain = (alert: ApiAlert) => ({ ...alert, seq: 0, created_at: '', disposition: '' })
  const numbers = alerts.map((alert) => alert.seq).sort((a, b) => a - b)
  if (numbers.some((seq, at) => seq !== at + 1)) wrong.push(`seq ${numbers.join()}`)
  const expected = new Map(tenant.model.alerts.map((one) => [one.alert_id, one]))
  if (alerts.length !== expected.size) wrong.push(`${alerts.length} alerts, not ${expected.size}`)
  for (const alert of alerts) {
    const model = expected.get(alert.alert_id)
    if (model !== undefined && isDeepStrictEqual(plain(alert), plain(model))) continue
    wrong.push(`alert ${JSON.stringify(alert)}, not ${JSON.stringify(model)}`)
  }
  for (const [id, device] of devices) {
    const model = toModelDevice(tenant, id)
    if (isDeepStrictEqual(withoutTimes(device), withoutTimes(model))) continue
    wrong.push(`device ${JSON.stringify(device)}, not ${JSON.stringify(model)}`)
  }
  return wrong
}

/** A device as the model has it. */
export const toModelDevice = ({ model }: IsolatedTenant, id: string): DeviceView =>
  model.get(toDevicePath(id)).json as DeviceView

export const toDevicePath = (id: string): string => `/v1/di/devices/${encodeURIComponent(id)}`

function withoutTimes(device: DeviceView): unknown {
  const bare = ({ started_at: _, last_seen_at: __, ...rest }: Record<string, unknown>) => rest
  const sessions = device.sessions
    .map((one) => bare(one))
    .sort((a, b) => (String(a.session_id) < String(b.session_id) ? -1 : 1))
  return { ...bare(device), first_seen_at: '', sessions, sessions_cursor: null }
}

function toOwnership(belongings: Belongings[]): Ownership {
  const marks = new Map<string, string>()
  const ids = new Map<string, string>()
  for (const { tenant, alerts, deliveryIds } of belongings) {
    marks.set(tenant.mark, tenant.tenant_id)
    const own = [...alerts.map((one) => one.alert_id), ...deliveryIds, ...tenant.eventIds]
    for (const id of own) ids.set(id, tenant.tenant_id)
  }
  return { marks, ids }
}

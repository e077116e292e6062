/**
 * Users of the api and the console during a drill: a reader that checks that the history of a
 * device never shrinks, and an operator that sets dispositions and keeps the responses.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import type { DeviceHistory } from '../../../../deploy/fleet/check/read-back.ts'
import type { Random } from '../../../../deploy/fleet/phones/random.ts'
import type { Tenant } from '../../../support/http/tenant-client.ts'
import type { StackFacts } from '../../../support/process/stack.ts'
import { count } from '../counts.ts'
import type { LoadedDevice } from './phone-load.ts'

/**
 * An alert's possible dispositions: the last confirmed one, or one set since then without a
 * response.
 */
export type Disposed = { confirmed: string; possible: Set<string> }

export type StackUsers = {
  reads: Map<string, number>
  changes: Map<string, number>
  /** By alert id. */
  disposed: Map<string, Disposed>
  /** Histories with fewer sessions than before. */
  shrunk: string[]
  stop: () => Promise<void>
}

type Options = {
  stack: StackFacts
  tenants: readonly Tenant[]
  /** The devices that have reported so far. */
  devices: ReadonlyMap<string, LoadedDevice>
  random: Random
}

const limitMs = 10_000
const readPauseMs = 15
const changePauseMs = 300
const dispositions = ['REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED', 'OPEN'] as const
/** This number of devices is read continuously; the others once, at the end. */
const readDevicesMax = 200

export function startStackUsers(options: Options): StackUsers {
  const users: StackUsers = {
    reads: new Map(),
    changes: new Map(),
    disposed: new Map(),
    shrunk: [],
    stop: async () => {
      running = false
      await Promise.all(work)
    },
  }
  let running = true
  const repeat = async (use: () => Promise<void>, pauseMs: number) => {
    while (running) {
      await use()
      await pause(pauseMs * (0.5 + options.random.next()))
    }
  }
  const work = [
    repeat(createReader(options, users), readPauseMs),
    repeat(createOperator(options, users), changePauseMs),
  ]
  return users
}

function createReader({ stack, tenants, devices, random }: Options, users: StackUsers) {
  const chosen: { device: LoadedDevice; sessions: number }[] = []
  const keys = new Map(tenants.map((tenant) => [tenant.tenant_id, tenant.public_api_key]))
  let seenDevices = 0
  return async () => {
    if (devices.size > seenDevices + 20) {
      const [latest] = [...devices.values()].slice(-1)
      chosen[random.int(0, readDevicesMax - 1)] = { device: latest!, sessions: 0 }
      seenDevices = devices.size
    }
    const present = chosen.filter((one) => one !== undefined)
    if (present.length === 0) return
    const one = random.pick(present)
    const { tenantId, deviceId } = one.device
    const path = `${stack.api}/v1/di/devices/${encodeURIComponent(deviceId)}`
    const answer = await call(path, { authorization: `Bearer ${keys.get(tenantId)}` })
    count(users.reads, answer.outcome)
    if (answer.outcome !== '200' && (answer.outcome !== '404' || one.sessions === 0)) return
    const total = answer.outcome === '200' ? (answer.json as DeviceHistory).sessions_total : 0
    if (total < one.sessions) users.shrunk.push(`${deviceId}: ${one.sessions}, then ${total}`)
    one.sessions = total
  }
}

function createOperator({ stack, tenants, random }: Options, users: StackUsers) {
  return async () => {
    const { public_api_key: key } = random.pick(tenants)
    const path = `${stack.api}/v1/di/alerts?limit=100`
    const page = await call(path, { authorization: `Bearer ${key}` })
    count(users.reads, page.outcome)
    const alerts = page.outcome === '200' ? (page.json as { data: Alert[] }).data : []
    if (alerts.length === 0) return
    const { alert_id: alertId } = random.pick(alerts)
    const disposition = random.pick(dispositions)
    const known = users.disposed.get(alertId) ?? { confirmed: 'OPEN', possible: new Set() }
    users.disposed.set(alertId, known)
    const answer = await call(
      `${stack.console}/admin/v1/alerts/${alertId}/disposition`,
      { authorization: `Bearer ${stack.admin_token}`, 'content-type': 'application/json' },
      JSON.stringify({ disposition }),
    )
    count(users.changes, answer.outcome)
    // Changes are sequential, so a confirmed one comes after every unconfirmed one.
    if (answer.outcome === '200')
      Object.assign(known, { confirmed: disposition, possible: new Set() })
    else known.possible.add(disposition)
  }
}

async function call(url: string, headers: Record<string, string>, body?: string) {
  try {
    const signal = AbortSignal.timeout(limitMs)
    const post = body === undefined ? {} : { method: 'POST', body }
    const response = await fetch(url, { headers, signal, ...post })
    return { outcome: String(response.status), json: (await response.json()) as unknown }
  } catch {
    return { outcome: 'no response', json: null }
  }
}

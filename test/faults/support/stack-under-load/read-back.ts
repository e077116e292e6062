/**
 * Reads back all data of a stack after a drill: the stream, the table behind the history, and the
 * alerts and devices through the REST API.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { DeviceHistory } from '../../../../deploy/fleet/check/read-back.ts'
import type { Tenant } from '../../../support/http/tenant-client.ts'
import type { StackFacts } from '../../../support/process/stack.ts'
import { readMessages } from '../../../support/telemetry/read-stream.ts'
import { count } from '../counts.ts'

export const connectQuietly = (stack: StackFacts): Promise<Nats> =>
  connectNats(stack.nats, 'drill', createLog('drill', 'silent'))

const eventIdPattern = /"event_id":"(evt_[\w-]{22})"/g
const retryLimitMs = 120_000
const readersAtOnce = 12

/** How many messages contain each event, in one pass without decoding. */
export async function readStream(nats: Nats): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for await (const message of readMessages(nats)) {
    const text = Buffer.from(message.data).toString('latin1')
    for (const [, found] of text.matchAll(eventIdPattern)) {
      // A copy: a slice of a string would keep the whole message in memory.
      count(counts, Buffer.from(found!, 'latin1').toString('latin1'))
    }
  }
  return counts
}

/** Ids of the events in ClickHouse. */
export async function readStored(
  stack: StackFacts,
  tenants: readonly Tenant[],
): Promise<Set<string>> {
  const clickhouse = createClickhouse(stack.clickhouse, {
    name: 'drill',
    requestTimeoutMs: 120_000,
  })
  try {
    const result = await clickhouse.query({
      query: 'select distinct event_id from telemetry where tenant_id in {tenantIds:Array(String)}',
      query_params: { tenantIds: tenants.map((tenant) => tenant.tenant_id) },
      format: 'TabSeparated',
    })
    return new Set((await result.text()).trim().split('\n'))
  } finally {
    await clickhouse.close()
  }
}

export type DeliveryCounts = { all: number; undelivered: number; repeated: number }

/** Deliveries in Postgres: all, not delivered, and sent more than once. */
export async function readDeliveries(stack: StackFacts): Promise<DeliveryCounts> {
  const rows = await queryPostgres<DeliveryCounts>(
    stack,
    `select count(*)::int as "all",
       count(*) filter (where state <> 'delivered')::int as undelivered,
       count(*) filter (where attempts > 1)::int as repeated
     from deliveries`,
  )
  return rows[0]!
}

/** Ends the claims of killed delivery processes now instead of after half a minute. */
export async function endClaims(stack: StackFacts): Promise<void> {
  await queryPostgres(
    stack,
    'update deliveries set claimed_until = now() where claimed_by is not null',
  )
}

async function queryPostgres<T extends object>(stack: StackFacts, text: string): Promise<T[]> {
  const log = createLog('drill', 'silent')
  const postgres = createPostgres(stack.postgres, { role: 'drill', log })
  try {
    return (await postgres.query<T>(text)).rows
  } finally {
    await postgres.close()
  }
}

type AlertPage = { data: Alert[]; total: number; next_cursor: string | null }

/** All alerts of a tenant through the cursor, newest first, with the total of the first page. */
export async function readAllAlerts(
  stack: StackFacts,
  { public_api_key: key }: Tenant,
): Promise<{ alerts: Alert[]; total: number }> {
  const alerts: Alert[] = []
  let total: number | null = null
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { status, json } = await get(stack, key, `/v1/di/alerts?limit=500${more}`)
    if (status !== 200) throw new Error(`alerts: ${status} ${JSON.stringify(json)}`)
    const page = json as AlertPage
    total ??= page.total
    alerts.push(...page.data)
    cursor = page.next_cursor
  }
  return { alerts, total: total ?? 0 }
}

/** Reads devices, several at once; `onDevice` gets null for an unknown one. */
export async function readDevices(
  stack: StackFacts,
  devices: readonly { key: string; deviceId: string }[],
  onDevice: (at: number, shown: DeviceHistory | null) => void,
): Promise<void> {
  let next = 0
  const reader = async () => {
    for (let at = next++; at < devices.length; at = next++) {
      const { key, deviceId } = devices[at]!
      const path = `/v1/di/devices/${encodeURIComponent(deviceId)}`
      const { status, json } = await get(stack, key, path)
      onDevice(at, status === 200 ? (json as DeviceHistory) : null)
    }
  }
  await Promise.all(Array.from({ length: readersAtOnce }, reader))
}

/** Repeats the call while the service starts or rejects calls because of its load. */
async function get(stack: StackFacts, key: string, path: string) {
  const deadlineMs = performance.now() + retryLimitMs
  while (true) {
    const answer = await fetch(`${stack.api}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    }).then(
      async (response) => ({ status: response.status, json: (await response.json()) as unknown }),
      (error: Error) => ({ status: 0, json: error.message as unknown }),
    )
    const { status } = answer
    const isFinal = status !== 0 && status !== 429 && status < 500
    if (isFinal || performance.now() > deadlineMs) return answer
    await pause(100)
  }
}

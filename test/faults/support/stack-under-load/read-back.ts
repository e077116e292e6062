/**
 * Reads back all data of a stack after a drill: the stream, the table behind the history, and what
 * the REST API shows.
 */
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type Get, openApi } from '../../../../deploy/fleet/send/http-calls.ts'
import type { Tenant } from '../../../support/http/tenant-client.ts'
import type { StackFacts } from '../../../support/process/stack.ts'
import { readMessages } from '../../../support/telemetry/read-stream.ts'
import { count } from '../counts.ts'

export const connectQuietly = (stack: StackFacts): Promise<Nats> =>
  connectNats(stack.nats, 'drill', createLog('drill', 'silent'))

const eventIdPattern = /"event_id":"(evt_[\w-]{22})"/g

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

/** Reads through the REST API with a tenant's key; waits while the service starts or is busy. */
export async function callApi<T>(
  stack: StackFacts,
  { public_api_key: key }: Tenant,
  use: (get: Get) => Promise<T>,
): Promise<T> {
  const api = openApi(stack.api, key, Date.now)
  return use(api.get).finally(api.close)
}

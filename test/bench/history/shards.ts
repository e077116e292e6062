/**
 * What two shards read beside one node: rows for the scorer's question about a batch of events, and
 * for the history of a device. A question by key goes to the shard of the key; beside it the same
 * question goes to the table of all shards. The engines are processes of this machine, so only
 * rows are compared, not times. `--rows N` chooses the size of `activity`.
 */
import { parseArgs } from 'node:util'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createActivityStore } from '#shared/io/velocity/activity-store.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startShards } from '../../support/servers/clickhouse-shards.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toSpread } from '../spread.ts'
import { fillActivity, rowsPerEvent, toSubject } from './activity-rows.ts'

const tenantId = 'fleet'
const batch = 4_000
const devices = 50_000
const sessionsPerDevice = 20

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({ args, options: { rows: { type: 'string', default: '3000000' } } })
  const events = Math.ceil(Number(values.rows) / rowsPerEvent)
  const [server, cluster] = await Promise.all([startClickhouse(), startShards(2)])
  try {
    await migrateClickhouse(server.url)
    await migrateClickhouse(cluster.url, null, cluster.shardUrls)
    const options = { name: 'bench', requestTimeoutMs: 300_000 }
    const one = createClickhouse(server.url, options)
    const two = createClickhouse(cluster.url, { ...options, shardUrls: cluster.shardUrls })
    for (const clickhouse of [one, two]) await fill(clickhouse, events)
    const ways = { 'one node': one, 'two shards': two, 'two shards, queried as one': asOne(two) }
    const figures: Figure[] = []
    const answers: string[] = []
    for (const [way, clickhouse] of Object.entries(ways)) {
      const { counting, readRows } = countReads(clickhouse)
      const subjects = Array.from({ length: batch }, (_, n) =>
        toSubject(tenantId, Math.floor((n * events) / batch)),
      )
      const activity = await createActivityStore(counting).countActivity(subjects)
      const ofBatch = readRows()
      const history = await createHistoryStore(counting).findDevice({
        tenantId,
        deviceId: `device-${devices - 7}`,
        sessionsLimit: 20,
        before: null,
      })
      const ofDevice = readRows()
      answers.push(JSON.stringify([activity.length, history]))
      figures.push(
        { name: `${batch} events, ${way}`, unit: 'rows', value: toSpread([ofBatch]) },
        { name: `a device's history, ${way}`, unit: 'rows', value: toSpread([ofDevice]) },
      )
    }
    const version = await readClickhouseVersion(one)
    await Promise.all([one.close(), two.close()])
    publishReport({
      part: 'shards',
      command: `npm run bench -- shards --rows ${values.rows}`,
      versions: { clickhouse: version },
      durability: 'nothing is written while it is measured',
      figures,
      checks: [
        {
          name: 'all ways answer the same',
          ok: new Set(answers).size === 1,
          detail: `${answers.map((answer) => answer.length).join(', ')} characters`,
        },
      ],
    })
  } finally {
    await Promise.all([server.stop(), cluster.stop()])
  }
}

async function fill(clickhouse: Clickhouse, events: number): Promise<void> {
  await fillActivity(clickhouse, { tenantId, from: 0, to: events })
  await clickhouse.command({
    query: `insert into sessions (tenant_id, device_id, session_id, started_at, last_seen_at, verdict)
      select '${tenantId}', concat('device-', toString(number % ${devices})),
        concat('session-', toString(number)),
        toDateTime64('2026-11-01 00:00:00', 3, 'UTC') + number % 100000 as started_at, started_at,
        (number % 100, 'ALLOW', [])
      from numbers(${devices * sessionsPerDevice})`,
  })
  // One part in a month: which merges have run makes no difference then.
  for (const table of ['activity', 'sessions']) {
    await onEveryNode(clickhouse, (node) =>
      node.command({ query: `optimize table ${table} final` }),
    )
  }
}

/** A client that queries the tables of all shards and knows of none. */
const asOne = (clickhouse: Clickhouse): Clickhouse =>
  new Proxy(clickhouse, {
    get: (target, name) => (name === 'shards' ? [] : Reflect.get(target, name)),
  })

type Method = (params: { clickhouse_settings?: object }) => Promise<{
  response_headers: Record<string, string | string[] | undefined>
}>

/** The same clients, and the rows that ClickHouse read for them since the last call. */
function countReads(clickhouse: Clickhouse): { counting: Clickhouse; readRows: () => number } {
  let rows = 0
  const watch = <Node extends object>(node: Node): Node =>
    new Proxy(node, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (name === 'shards') return (value as object[]).map(watch)
        if (name !== 'query' && name !== 'exec') return value
        return async (params: Parameters<Method>[0]) => {
          // The header counts all that was read only once the answer is whole.
          const settings = { ...params.clickhouse_settings, wait_end_of_query: 1 }
          const call = (value as Method).bind(target)
          const answer = await call({ ...params, clickhouse_settings: settings })
          const summary = JSON.parse(String(answer.response_headers['x-clickhouse-summary']))
          rows += Number((summary as { read_rows: string }).read_rows)
          return answer
        }
      },
    })
  return {
    counting: watch(clickhouse),
    readRows: () => {
      const read = rows
      rows = 0
      return read
    },
  }
}

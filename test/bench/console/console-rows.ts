/**
 * The data of the console benchmark: a simulated history, complete in every store, and copies of it
 * inside ClickHouse and Postgres until there are enough events and alerts. Copies have their own
 * ids, are up to ten minutes earlier, and are in no stream: reconciliation leaves them out.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

export const benchTenant = 'bench'

const cli = fileURLToPath(new URL('../../../services/console/cli.ts', import.meta.url))
const seed = 7
/** Copies in one insert: larger ones take more memory and no less time. */
const copiesPerInsert = 8
const shiftMs = 600_000
/** Views whose tables only decisions read: filling them takes as long as everything else. */
const unreadViews = ['activity_of_telemetry', 'sdk_baselines_of_telemetry']
const replicationMaxMs = 600_000

export type FillOptions = { events: number; alerts: number; devices: number; days: number }
export type Filled = { events: number; alerts: number }

/** @returns the resulting numbers of rows */
export async function fillConsole(test: TestStack, options: FillOptions): Promise<Filled> {
  const history = await makeHistory(test, options)
  const clickhouse = createClickhouse(test.stack.clickhouse, {
    name: 'bench',
    requestTimeoutMs: 600_000,
  })
  const postgres = new Client({ connectionString: test.stack.postgres })
  await postgres.connect()
  try {
    const eventCopies = Math.max(0, Math.ceil(options.events / history.events) - 1)
    const alertCopies = Math.max(0, Math.ceil(options.alerts / history.alerts) - 1)
    await copyEvents(clickhouse, eventCopies)
    await copyAlerts(postgres, alertCopies)
    const alerts = history.alerts * (alertCopies + 1)
    await until(
      'the alerts are copied to ClickHouse',
      async () => (await countReplicas(clickhouse)) === alerts,
      replicationMaxMs,
    )
    return { events: history.events * (eventCopies + 1), alerts }
  } finally {
    await postgres.end()
    await clickhouse.close()
  }
}

async function makeHistory(test: TestStack, { devices, days }: FillOptions): Promise<Filled> {
  const args = ['--history', `${days}`, '--devices', `${devices}`, '--tenant', benchTenant]
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [cli, 'fleet', '--json', ...args, '--seed', `${seed}`],
    { env: { ...process.env, DATA_DIR: test.dataDir } },
  )
  return JSON.parse(stdout) as Filled
}

async function copyEvents(clickhouse: Clickhouse, copies: number): Promise<void> {
  const run = (query: string) => clickhouse.command({ query })
  const found = await clickhouse.query({
    query: `select name, create_table_query as made from system.tables
      where database = currentDatabase() and name in {names:Array(String)}`,
    query_params: { names: unreadViews },
    format: 'JSONEachRow',
  })
  const views = await found.json<{ name: string; made: string }>()
  if (views.length !== unreadViews.length) throw new Error('a view of telemetry has another name')
  for (const { name } of views) await run(`drop view ${name}`)
  try {
    await run(`create table bench_seeds engine = MergeTree order by tuple() as
      select * except row_version from telemetry final where tenant_id = '${benchTenant}'`)
    for (let first = 1; first <= copies; first += copiesPerInsert) {
      const last = Math.min(copies, first + copiesPerInsert - 1)
      const numbers = Array.from({ length: last - first + 1 }, (_, n) => first + n)
      const from = numbers.map((copy) => `select *, ${copy} as copy from bench_seeds`)
      await run(`insert into telemetry (* except row_version)
        select * replace (
          ${copiedIds(['device_id', 'session_id', 'event_id', 'user_id', 'account_id'])},
          stream_offset * 0 as stream_offset,
          received_at - toIntervalMillisecond(copy * 7919 % ${shiftMs}) as received_at
        ) except copy
        from (${from.join(' union all ')}) settings max_threads = 1`)
    }
    await run('drop table bench_seeds')
  } finally {
    for (const { made } of views) await run(made)
  }
}

/** An empty user id stays empty. */
const copiedIds = (columns: string[]): string =>
  columns
    .map(
      (one) =>
        `if(${one} = '', '', concat('k', leftPad(toString(copy), 5, '0'), '-', ${one})) as ${one}`,
    )
    .join(', ')

const prefix = `'k' || lpad(copy::text, 5, '0') || '-' ||`

async function copyAlerts(client: Client, copies: number): Promise<void> {
  const shift = `make_interval(secs => (copy * 7919 % ${shiftMs}) / 1000.0)`
  // Foreign keys would be checked row by row; these rows are correct by construction.
  await client.query('set session_replication_role = replica')
  const run = (text: string) => client.query(text, [benchTenant, copies])
  await client.query('create temporary table seeds as select * from alerts where tenant_id = $1', [
    benchTenant,
  ])
  await run(`
    insert into alerts (tenant_id, alert_id, seq, device_id, session_id, user_id, event_id, action,
      risk_score, rasp_score, reasons, policy_version, disposition, created_at, changed_at)
    select tenant_id, ${prefix} alert_id,
      (select max(seq) from seeds)
        + row_number() over (order by created_at - ${shift}, copy, alert_id),
      ${prefix} device_id, ${prefix} session_id, ${prefix} user_id, ${prefix} event_id, action,
      risk_score, rasp_score, reasons, policy_version, disposition, created_at - ${shift},
      changed_at
    from seeds, generate_series(1, $2::bigint) as copy where tenant_id = $1`)
  await run(`
    insert into alert_dispositions
      (tenant_id, alert_id, from_disposition, to_disposition, actor, at)
    select tenant_id, ${prefix} alert_id, from_disposition, to_disposition, actor, at
    from alert_dispositions, generate_series(1, $2::bigint) as copy
    where tenant_id = $1 order by copy, at`)
  await run(`
    insert into deliveries (tenant_id, delivery_id, alert_id, body, state, attempts, due_at,
      created_at, ended_at, reason)
    select tenant_id, ${prefix} delivery_id, ${prefix} alert_id, body, state, 0, due_at,
      created_at - ${shift}, ended_at, reason
    from deliveries, generate_series(1, $2::bigint) as copy where tenant_id = $1`)
  for (const [table, column, span] of [
    ['alert_counts_by_day', 'day', "(created_at at time zone 'UTC')::date"],
    ['alert_counts_by_hour', 'hour', "date_bin('1 hour', created_at, 'epoch')"],
  ]) {
    await client.query(`delete from ${table} where tenant_id = $1`, [benchTenant])
    await client.query(
      `insert into ${table} (tenant_id, ${column}, disposition, decision, alert_count)
       select tenant_id, ${span}, disposition, action, count(*) from alerts
       where tenant_id = $1 group by 1, 2, 3, 4`,
      [benchTenant],
    )
  }
  // Last: replication then finds all of them at once.
  await client.query(
    `update alert_sequences set last_seq = (select max(seq) from alerts where tenant_id = $1)
     where tenant_id = $1`,
    [benchTenant],
  )
  await client.query('vacuum (analyze) alerts, alert_dispositions, deliveries')
}

async function countReplicas(clickhouse: Clickhouse): Promise<number> {
  const result = await clickhouse.query({
    query: `select count() from alerts_replica final where tenant_id = '${benchTenant}'`,
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[number]>()
  return Number(row![0])
}

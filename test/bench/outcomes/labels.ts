/**
 * `npm run bench -- labels [--labels 50000] [--sessions 1000000]`: what labels cost: to add them
 * through the API in calls of 500, to copy them, to keep them in both databases, and to read what
 * the sessions of a tenant turned out to be. The baseline of adding is a copy of the same rows into a
 * table without indexes, a statement for each call.
 */
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { labelsPerCallMax } from '#shared/core/base/limits/outcomes.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readOutcomes } from '#shared/io/outcomes/outcome-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { createKey } from '../../../services/console/tenants/manage-keys.ts'
import { createApiRig } from '../../support/http/api-rig.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { publishReport, readClickhouseVersion, readPostgresVersion, single } from '../report.ts'
import { toSpread } from '../spread.ts'

const tenantId = 'bench'
const kinds = ['session', 'device', 'user', 'session'] as const

/** Of a fleet with five sessions a device and four a user. */
const toBody = (n: number, sessions: number) => {
  const kind = kinds[n % kinds.length]!
  const session = (n * 7_919) % sessions
  const number = { session, device: Math.floor(session / 5), user: Math.floor(session / 4) }[kind]
  return {
    subject: { [`${kind}_id`]: `${kind}-${String(number).padStart(28, '0')}` },
    label: n % 3 === 0 ? 'legitimate' : 'chargeback',
    occurred_at: '2026-03-01T00:00:00Z',
    external_id: `case-2026-${n}`,
    ...(n % 3 === 0 ? {} : { amount: `${n % 900}.50`, currency: 'EUR' }),
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return (performance.now() - startMs) / 1_000
}

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      labels: { type: 'string', default: '50000' },
      sessions: { type: 'string', default: '1000000' },
    },
  })
  const [labels, sessions] = [Number(values.labels), Number(values.sessions)]
  const [postgresServer, clickhouseServer] = await Promise.all([
    startPostgres(),
    startClickhouse({ isMigrated: true }),
  ])
  const url = await postgresServer.createMigratedDatabase()
  const rig = await createApiRig({ postgres: url, clickhouse: clickhouseServer.url })
  const clickhouse = createClickhouse(clickhouseServer.url, {
    name: 'bench',
    requestTimeoutMs: 120_000,
  })
  const { postgres } = rig
  try {
    await rig.addTenant(tenantId)
    await postgres.query('update tenants set rest_rate_per_second = 1e6, rest_burst = 1e6')
    const deps = { postgres, sealer: {} as never, randomBytes }
    const wanted = { tenantId, name: 'bench', scopes: ['labels:write'] as const, actor: 'bench' }
    const { api_key: key } = await createKey(deps, wanted)
    const calls = Array.from({ length: Math.ceil(labels / labelsPerCallMax) }, (_, call) =>
      Array.from({ length: Math.min(labelsPerCallMax, labels - call * labelsPerCallMax) }, (_, n) =>
        toBody(call * labelsPerCallMax + n, sessions),
      ),
    )
    const statuses = new Set<number>()
    const added = await timed(async () => {
      for (const body of calls) {
        statuses.add((await rig.call('/v1/di/labels', { key, method: 'POST', body })).status)
      }
    })
    await postgres.query('create table plain (like labels)')
    const plain = await timed(async () => {
      for (let from = 0; from < labels; from += labelsPerCallMax) {
        await postgres.query(
          'insert into plain select * from labels where seq > $1 and seq <= $1 + $2',
          [from, labelsPerCallMax],
        )
      }
    })
    const { rows } = await postgres.query<{ heap: number; whole: number; labels: number }>(
      `select pg_table_size('labels') as heap, pg_total_relation_size('labels') as whole,
         (select count(*) from labels) as labels`,
    )
    const { heap, whole } = rows[0]!
    const replication = createReplication({
      postgres,
      locks: { holders: postgres, work: postgres },
      clickhouse,
      log: testLog,
      metrics: createMetrics('console'),
      nowMs: () => performance.now(),
      wallMs: Date.now,
    })
    const copied = await timed(() => replication.runRound())
    await clickhouse.command({ query: 'optimize table labels_replica final' })
    const stored = await clickhouse.query({
      query: `select sum(bytes_on_disk) from system.parts
        where database = currentDatabase() and table = 'labels_replica' and active`,
      format: 'JSONCompactEachRow',
    })
    const [[bytes]] = (await stored.json<[number]>()) as [[number]]
    const pad = (number: string) => `leftPad(toString(${number}), 28, '0')`
    await clickhouse.command({
      query: `insert into sessions
          (tenant_id, device_id, session_id, started_at, last_seen_at, users, risk)
        select '${tenantId}', concat('device-', ${pad('intDiv(number, 5)')}),
          concat('session-', ${pad('number')}), at, at, [concat('user-', ${pad('intDiv(number, 4)')})],
          (toUInt16(if(number % 9 = 0, 8 * 50 + 2, 0)), ['ROOTED'])
        from (
          select number, toDateTime64('2026-02-01 00:00:00', 3, 'UTC')
            + toIntervalSecond(number % 2400000) as at
          from numbers(${sessions})
        )`,
    })
    let known = 0
    const read: number[] = []
    for (let round = 0; round < 3; round++) {
      read.push(
        await timed(async () => {
          const { fraud, honest } = await readOutcomes(clickhouse, { tenantId, sinceMs: null })
          known = fraud + honest
        }),
      )
    }
    publishReport({
      part: 'labels',
      command: `npm run bench -- labels --labels ${labels} --sessions ${sessions}`,
      versions: {
        postgres: await readPostgresVersion(postgres),
        clickhouse: await readClickhouseVersion(clickhouse),
      },
      durability: 'a commit is on disk',
      figures: [
        {
          name: `${labels} labels through the API`,
          unit: 's',
          value: toSpread([added]),
          baseline: { name: 'a copy without indexes', value: toSpread([plain]) },
        },
        single('copied to ClickHouse in one round', 's', copied, 30),
        single('a label in Postgres', 'bytes', whole / labels, 1_000),
        single('of that its row', 'bytes', heap / labels),
        single('a label in ClickHouse', 'bytes', bytes / labels, 200),
        {
          name: `outcomes of ${sessions} sessions`,
          unit: 's',
          value: toSpread(read),
          bound: { of: 'value', atMost: 10 },
        },
      ],
      checks: [
        { name: 'every call is a 201', ok: [...statuses].join() === '201', detail: '' },
        { name: 'every label is there', ok: rows[0]!.labels === labels, detail: '' },
        { name: 'sessions are known', ok: known > labels / 2, detail: `${known} sessions` },
      ],
    })
  } finally {
    await clickhouse.close()
    await rig.close()
    await Promise.all([postgresServer.stop(), clickhouseServer.stop()])
  }
}

/**
 * `npm run bench -- alerts [--sizes N,M] [--rounds N] [--requests N]`: the alert list of one tenant
 * of five million alerts beside 200 small ones, through the api's own process, beside a bare
 * `select ... limit 50` through the same pool and API; and the same over fifty thousand, in
 * interleaved rounds. It is valid only if every total equals `count(*)` and every page a plain
 * sort, also under concurrent writes.
 */
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { Client } from 'undici'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { addApiKey } from '../../support/http/api-rig.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  type BenchChild,
  forkChild,
  type MeasuredService,
  startMeasured,
} from '../measured-process.ts'
import { type Check, type Figure, publishReport, readPostgresVersion } from '../report.ts'
import { type Spread, toRatios, toSpread } from '../spread.ts'
import {
  type AlertRequest,
  createRandom,
  toCases,
  toCountSql,
  toIdsSql,
  toPath,
} from './alert-cases.ts'
import type { Page, Rig } from './alert-rig.ts'
import { bigTenantId, fillAlerts } from './alert-rows.ts'
import { pourAlerts } from './alerts-pour.ts'

const log = createLog('bench', 'silent')
const ratioMax = 2.5
const growthMax = 1.4
const deepRows = 100_000
const deepCursors = 40
const checkedDraws = 2
/**
 * A server with memory for its tables, and enough log space for the filling that no checkpoint of
 * it falls into the measurement.
 */
const serverSettings = { fsync: 'on', max_wal_size: '8GB', shared_buffers: '4GB' }

/** p50 in ms of each round, by case. */
type Times = Map<string, { list: number[]; baseline: number[] }>

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      sizes: { type: 'string', default: '50000,5000000' },
      rounds: { type: 'string', default: '7' },
      requests: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  })
  const sizes = values.sizes.split(',').map(Number)
  const [rounds, requests] = [Number(values.rounds), Number(values.requests)]
  print(`seed ${values.seed}`)
  const server = await startPostgres({ settings: serverSettings })
  const clickhouse = await startClickhouse()
  await migrateClickhouse(clickhouse.url)
  const rigs: Rig[] = []
  try {
    for (const alerts of sizes) {
      rigs.push(await createRig(server, clickhouse.url, alerts, Number(values.seed)))
    }
    const checks: Check[] = []
    for (const rig of rigs) checks.push(...(await checkAnswers(rig, 'before')))
    const times = await measure(rigs, { rounds, requests })
    const poured = await pourAlerts(rigs.at(-1)!)
    checks.push(...poured.checks, ...(await checkAnswers(rigs.at(-1)!, 'after')))
    publishReport({
      part: 'alerts',
      command: ['npm run bench -- alerts', ...args].join(' '),
      versions: { postgres: await readPostgresVersion(rigs[0]!.postgres) },
      durability: `fsync on, synchronous_commit on, shared_buffers ${serverSettings.shared_buffers}`,
      figures: [...toFigures(rigs, times), ...poured.figures],
      checks,
    })
  } finally {
    for (const rig of rigs) await rig.stop()
    await clickhouse.stop()
    await server.stop()
  }
}

const print = (line: string) => process.stdout.write(`${line}\n`)

async function createRig(
  server: TestPostgres,
  clickhouseUrl: string,
  alerts: number,
  seed: number,
): Promise<Rig> {
  const url = await server.createDatabase()
  await migratePostgres(url)
  const startMs = performance.now()
  const span = await fillAlerts(url, { alerts, nowMs: Date.now() })
  print(`${alerts} alerts made in ${Math.round((performance.now() - startMs) / 1_000)} s`)
  const postgres = createPostgres(url, { role: 'bench', log, statementTimeoutMs: 0 })
  const key = await addApiKey(postgres, bigTenantId, 'live')
  const api = await startMeasured('api', {
    POSTGRES_URL: url,
    // The api only checks its schema: alerts are in Postgres.
    CLICKHOUSE_URL: clickhouseUrl,
  })
  const { worker } = await forkChild('./alerts/alerts-baseline.ts')
  const lister = createLister(api.url, key)
  const baseline = createLister(await worker.request<string>(url), key)
  const depth = Math.min(deepRows, alerts / 2)
  const deep = {
    all: await walk(lister.list, {}, depth),
    open: await walk(lister.list, { disposition: 'OPEN' }, Math.min(depth, alerts / 2)),
  }
  return {
    alerts,
    postgres,
    list: lister.list,
    baseline: baseline.list,
    cases: toCases(createRandom(seed), { alerts, span, deep }),
    stop: () => stopRig({ api, worker, postgres, clients: [lister.client, baseline.client] }),
  }
}

async function stopRig(of: {
  api: MeasuredService
  worker: BenchChild
  postgres: Postgres
  clients: Client[]
}): Promise<void> {
  for (const client of of.clients) await client.close()
  await of.api.stop()
  of.worker.stop()
  await of.postgres.close()
}

/** One connection, one request at a time. */
function createLister(origin: string, key: string) {
  const client = new Client(origin)
  const headers = { authorization: `Bearer ${key}` }
  const list = async (request: AlertRequest): Promise<Page> => {
    const { statusCode, body } = await client.request({
      method: 'GET',
      path: toPath(request),
      headers,
    })
    const text = await body.text()
    if (statusCode !== 200)
      throw new Error(`${toPath(request)} was answered ${statusCode}: ${text}`)
    return JSON.parse(text) as Page
  }
  return { client, list }
}

/** Pages down to a depth, as a client would. @returns the last cursors, the deepest last */
async function walk(list: Rig['list'], request: AlertRequest, depth: number): Promise<string[]> {
  const cursors: string[] = []
  for (let rows = 0, cursor: string | null = null; rows < depth; ) {
    const page = await list({ ...request, ...(cursor && { cursor }) })
    rows += page.data.length
    cursor = page.next_cursor
    if (cursor === null) throw new Error(`the list ends after ${rows} rows`)
    cursors.push(cursor)
  }
  return cursors.slice(-deepCursors)
}

/** Requests every case several times and compares the answers with counts and sorts of Postgres. */
async function checkAnswers(rig: Rig, when: 'before' | 'after'): Promise<Check[]> {
  let [wrongTotals, wrongPages, checked] = [0, 0, 0]
  for (const { draw } of rig.cases) {
    for (let n = 0; n < checkedDraws; n++, checked++) {
      const request = draw()
      const page = await rig.list(request)
      const { rows } = await rig.postgres.query<{ n: number }>(toCountSql(request))
      if (page.total !== rows[0]!.n) wrongTotals++
      if (request.cursor !== undefined) continue
      const ids = await rig.postgres.query<{ alert_id: string }>(toIdsSql(request))
      const expected = ids.rows.map((row) => row.alert_id)
      if (
        !isDeepStrictEqual(
          expected,
          page.data.map((alert) => alert.alert_id),
        )
      )
        wrongPages++
    }
  }
  const of = `of ${rig.alerts} alerts, ${when} more poured in`
  return [
    {
      name: `total is count(*) ${of}`,
      ok: wrongTotals === 0,
      detail: `${wrongTotals} of ${checked} answers differ`,
    },
    {
      name: `a page is what a plain sort has ${of}`,
      ok: wrongPages === 0,
      detail: `${wrongPages} of ${checked} answers differ`,
    },
    ...(when === 'before' ? [await checkDepth(rig)] : []),
  ]
}

/** The page at the deepest cursor begins where an offset would begin. */
async function checkDepth({ postgres, list, alerts, cases }: Rig): Promise<Check> {
  const deepest = cases.find(({ name }) => name === 'a deep cursor')!.draw()
  const page = await list(deepest)
  const { rows } = await postgres.query<{ n: number }>(
    'select count(*) as n from alerts where tenant_id = $1 and (created_at, alert_id) > ($2, $3)',
    [bigTenantId, page.data[0]?.created_at, page.data[0]?.alert_id],
  )
  const least = Math.min(deepRows, alerts / 2) - deepCursors * 50
  return {
    name: `a deep cursor is deep, of ${alerts} alerts`,
    ok: page.data.length === 50 && rows[0]!.n >= least,
    detail: `${rows[0]!.n} alerts before it`,
  }
}

async function measure(
  rigs: Rig[],
  { rounds, requests }: { rounds: number; requests: number },
): Promise<Times[]> {
  const times: Times[] = rigs.map(() => new Map())
  // The first round warms up compilers, plans and caches.
  for (let round = 0; round <= rounds; round++) {
    for (let n = 0; n < rigs[0]!.cases.length; n++) {
      const measured = await measureCase(rigs, n, requests)
      if (round === 0) continue
      for (const [index, { list, baseline }] of measured.entries()) {
        const { name } = rigs[index]!.cases[n]!
        const of = times[index]!.get(name) ?? { list: [], baseline: [] }
        of.list.push(percentile(list, 0.5))
        of.baseline.push(percentile(baseline, 0.5))
        times[index]!.set(name, of)
      }
    }
  }
  return times
}

/**
 * Alternates single requests between all sizes and baselines, so that disturbances affect all
 * alike.
 */
async function measureCase(
  rigs: Rig[],
  n: number,
  requests: number,
): Promise<{ list: number[]; baseline: number[] }[]> {
  const measured = rigs.map(() => ({ list: [] as number[], baseline: [] as number[] }))
  for (let request = 0; request < requests; request++) {
    for (const [index, rig] of rigs.entries()) {
      measured[index]!.baseline.push(await time(() => rig.baseline({})))
      const request = rig.cases[n]!.draw()
      measured[index]!.list.push(await time(() => rig.list(request)))
    }
  }
  return measured
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

function toFigures(rigs: Rig[], times: Times[]): Figure[] {
  const largest = times.at(-1)!
  const of = (alerts: number) => alerts.toLocaleString('en')
  const listed = rigs.flatMap(({ alerts }, index) =>
    [...times[index]!].map(
      ([name, { list, baseline }]): Figure => ({
        name: `${of(alerts)} alerts: ${name}, p50`,
        unit: 'ms',
        value: toSpread(list),
        baseline: { name: 'a bare select', value: toSpread(baseline) },
        ratio: toRatios(list, baseline),
        bound: { of: 'ratio', atMost: ratioMax },
      }),
    ),
  )
  if (rigs.length === 1) return listed
  const warm = rigs[0]!.cases.filter(({ cold }) => !cold)
  const grown = warm.map(({ name }): Figure => {
    const { list } = largest.get(name)!
    const small = times[0]!.get(name)!.list
    const baseline: { name: string; value: Spread } = {
      name: `${of(rigs[0]!.alerts)} alerts`,
      value: toSpread(small),
    }
    return {
      name: `growth to ${of(rigs.at(-1)!.alerts)}: ${name}`,
      unit: 'ms',
      value: toSpread(list),
      baseline,
      ratio: toRatios(list, small),
      bound: { of: 'ratio', atMost: growthMax },
    }
  })
  return [...listed, ...grown]
}

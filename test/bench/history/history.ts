/**
 * `npm run bench -- history [--sizes 100000,1000000,10000000,50000000] [--rounds N] [--requests
 * N]`: the time of `GET /v1/di/devices/{id}` in the api process while `telemetry` grows, for
 * devices that were never requested and for the same few again, each alternating with one `SELECT
 * 1` through the same app and client; then with unmerged inserts, and for one device with 100,000
 * sessions. Every answer is compared with the generated rows.
 */
import { Agent, request } from 'node:http'
import { parseArgs } from 'node:util'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { addApiKey } from '../../support/http/api-rig.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'
import { haveMergesEnded } from '../drain/merges.ts'
import { forkChild, readMemoryMb, startMeasured } from '../measured-process.ts'
import { type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { type Spread, toRatios, toSpread } from '../spread.ts'
import type { BaselineUrls } from './history-baseline.ts'
import {
  type Cohort,
  countEvents,
  deviceIdOf,
  devicesFor,
  type ExpectedDevice,
  expectDevice,
  historyDays,
  insertSlice,
  tenantOf,
  tenants,
} from './history-rows.ts'

const sizesDefault = '100000,1000000,10000000,50000000'
const hotDevices = 20
const hotDeviceSessions = 100_000
const answerMaxMs = { page: 60, all: 250 }
const print = (text: string) => process.stdout.write(`${text}\n`)

type Rig = {
  clickhouse: Clickhouse
  api: { url: string; pid: number }
  baselineUrl: string
  keys: Map<string, string>
  startMs: number
  /** All cohorts so far, in the order of their devices. */
  cohorts: Cohort[]
  versions: Record<string, string>
}

type Closing = (() => Promise<unknown> | unknown)[]

/** Compared answers, and the first wrong one. */
type Compared = { answers: number; wrong: number; first: string }

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      sizes: { type: 'string', default: sizesDefault },
      rounds: { type: 'string', default: '5' },
      requests: { type: 'string', default: '200' },
    },
  })
  const sizes = values.sizes.split(',').map(Number)
  const [rounds, requests] = [Number(values.rounds), Number(values.requests)]
  const closing: Closing = []
  const compared: Compared = { answers: 0, wrong: 0, first: 'none wrong' }
  try {
    const rig = await start(closing)
    const figures: Figure[] = []
    const medians: SizeResult[] = []
    for (const size of sizes) {
      await grow(rig, size)
      await settle(rig.clickhouse)
      const result = await measureSize(rig, { rounds, requests, compared })
      medians.push(result)
      figures.push(...toFigures(toName(size), result, true))
    }
    if (medians.length > 1) figures.push(...toGrowth(medians[0]!, medians.at(-1)!))
    figures.push(...(await measureUnmerged(rig, { rounds, requests, compared })))
    figures.push(...(await measureHotDevice(rig, { rounds, requests, compared })))
    const rows = await countRows(rig.clickhouse)
    const made = rig.cohorts.reduce((sum, cohort) => sum + countEvents(cohort), 0)
    publishReport({
      part: 'history',
      command: ['npm run bench -- history', ...args].join(' '),
      versions: rig.versions,
      durability: 'reads only',
      figures,
      checks: [
        {
          name: 'answers equal what the generator made',
          ok: compared.wrong === 0,
          detail: `${compared.answers} answers, ${compared.wrong} wrong; ${compared.first}`,
        },
        { name: 'rows of telemetry', ok: rows === made, detail: `${rows} of ${made}` },
      ],
    })
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function start(closing: Closing): Promise<Rig> {
  const [server, database] = await Promise.all([
    startClickhouse(),
    startPostgres({ settings: { fsync: 'on' } }),
  ])
  closing.push(server.stop, database.stop)
  const postgresUrl = await database.createDatabase()
  await Promise.all([migratePostgres(postgresUrl), migrateClickhouse(server.url)])
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 1_800_000 })
  closing.push(() => clickhouse.close())
  const keys = await addTenants(postgresUrl)
  const api = await startMeasured('api', {
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: server.url,
  })
  closing.push(api.stop)
  const { worker } = await forkChild('./history/history-baseline.ts')
  closing.push(worker.stop)
  const urls: BaselineUrls = { postgres: postgresUrl, clickhouse: server.url }
  const baselineUrl = await worker.request<string>(urls)
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - (historyDays + 1) * 86_400_000
  const versions = { clickhouse: await readClickhouseVersion(clickhouse) }
  return { clickhouse, api, baselineUrl, keys, startMs, cohorts: [], versions }
}

async function addTenants(postgresUrl: string): Promise<Map<string, string>> {
  const log = createLog('bench', 'silent')
  const postgres = createPostgres(postgresUrl, { role: 'bench', log })
  const keys = new Map<string, string>()
  for (const tenant of tenants) {
    await insertBareTenants(postgres, [tenant])
    keys.set(tenant, await addApiKey(postgres, tenant, 'live'))
  }
  await postgres.close()
  return keys
}

const eventsPerCohort = 1_000_000
const nextDevice = ({ cohorts }: Rig): number => {
  const last = cohorts.at(-1)
  return last === undefined ? 0 : last.firstDevice + last.devices
}

/** Adds devices until the table has at least `size` rows; existing ones stay. */
async function grow(rig: Rig, size: number): Promise<void> {
  const startedMs = performance.now()
  for (;;) {
    const made = rig.cohorts.reduce((sum, cohort) => sum + countEvents(cohort), 0)
    if (made >= size) break
    const devices = devicesFor(Math.min(eventsPerCohort, size - made))
    await insertCohort(rig, { devices, slices: 4, sessions: null })
  }
  print(
    `  ${toName(size)} rows: grown in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`,
  )
}

async function insertCohort(
  rig: Rig,
  of: Pick<Cohort, 'devices' | 'slices' | 'sessions'>,
): Promise<Cohort> {
  const cohort = { ...of, firstDevice: nextDevice(rig), startMs: rig.startMs }
  for (let slice = 0; slice < cohort.slices; slice++) {
    await insertSlice(rig.clickhouse, cohort, slice)
  }
  rig.cohorts.push(cohort)
  return cohort
}

const toName = (size: number) =>
  size >= 1e6 ? `${(size / 1e6).toFixed(0)} million` : `${(size / 1e3).toFixed(0)} thousand`

async function readRow<Row>(clickhouse: Clickhouse, query: string): Promise<Row> {
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
  const [row] = await result.json<Row>()
  return row!
}

const countRows = async (clickhouse: Clickhouse): Promise<number> =>
  (await readRow<[number]>(clickhouse, 'select count() from telemetry'))[0]

const mergeWaitMaxMs = 900_000

/** Waits until merges have ended, so that the measurement includes none. */
async function settle(clickhouse: Clickhouse): Promise<void> {
  if (!(await haveMergesEnded(clickhouse, mergeWaitMaxMs))) {
    print('    merges are still running: the figures are beside them')
  }
  const parts = await clickhouse.query({
    query: `select table, count(), sum(rows), sum(bytes_on_disk) from system.parts
      where active and database = currentDatabase()
        and table in ('telemetry', 'sessions', 'devices', 'activity', 'user_devices')
      group by table order by table`,
    format: 'JSONCompactEachRow',
  })
  for (const [table, count, rows, bytes] of await parts.json<[string, number, number, number]>()) {
    print(`    ${table}: ${count} parts, ${rows} rows, ${(bytes / 1e6).toFixed(0)} MB`)
  }
}

const agent = new Agent({ keepAlive: true })

type Answer = { ms: number; status: number; body: Buffer }

/** One GET on a kept-alive connection, from its first byte to the answer's last. */
function get(url: string, path: string, key: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now()
    const sent = request(`${url}${path}`, { agent, headers: { authorization: `Bearer ${key}` } })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const ms = performance.now() - startedMs
        resolve({ ms, status: response.statusCode!, body: Buffer.concat(chunks) })
      })
    })
    sent.end()
  })
}

const pathOf = (device: number, query = '') => `/v1/di/devices/${deviceIdOf(device)}${query}`

async function requestBaseline(rig: Rig, device: number): Promise<number> {
  const key = rig.keys.get(tenantOf(device))!
  const { ms, status } = await get(rig.baselineUrl, pathOf(device), key)
  if (status !== 200) throw new Error(`the baseline answers ${status}`)
  return ms
}

type DeviceRequest = { cohort: Cohort; device: number; limit?: number }

/** Requests a device of the api and compares the answer. */
async function requestDevice(
  rig: Rig,
  compared: Compared,
  requested: DeviceRequest,
): Promise<number> {
  const { cohort, device, limit } = requested
  const query = limit === undefined ? '' : `?sessions_limit=${limit}`
  const key = rig.keys.get(tenantOf(device))!
  const { ms, status, body } = await get(rig.api.url, pathOf(device, query), key)
  compared.answers++
  const expected = JSON.stringify(expectedOf(cohort, device, limit))
  const got = status === 200 ? toComparable(body) : `status ${status}`
  if (got !== expected && compared.wrong++ === 0) {
    compared.first = `device ${device}: ${got.slice(0, 300)} instead of ${expected.slice(0, 300)}`
  }
  return ms
}

let lastExpected: { key: string; expected: ExpectedDevice } | undefined

/** Cached: the hot device is read again and again. */
function expectedOf(cohort: Cohort, device: number, limit: number | undefined): ExpectedDevice {
  if (cohort.sessions === null) return expectDevice(cohort, device, limit)
  const key = `${device} ${limit}`
  if (lastExpected?.key !== key)
    lastExpected = { key, expected: expectDevice(cohort, device, limit) }
  return lastExpected.expected
}

/** The answer with its members in the order of `ExpectedDevice`. */
function toComparable(body: Buffer): string {
  const answer = JSON.parse(body.toString()) as ExpectedDevice & {
    sessions_cursor: string | null
    users_cursor: string | null
  }
  const { sessions_cursor, users_cursor, users_seen_on, sessions, sessions_total, ...rest } = answer
  if ((sessions_cursor === null) !== (sessions.length === sessions_total)) {
    return `cursor ${sessions_cursor} after ${sessions.length} of ${sessions_total} sessions`
  }
  if (users_cursor !== null) return `a cursor after ${users_seen_on.length} users`
  return JSON.stringify({ ...rest, users_seen_on, sessions, sessions_total })
}

type Measuring = { rounds: number; requests: number; compared: Compared }
type Round = { baseline: number[]; cold: number[]; hot: number[] }
type SizeResult = { rounds: Round[] }

/** Devices that were never requested, spread over all of them. */
function* coldDevices(rig: Rig): Generator<DeviceRequest> {
  const all = nextDevice(rig)
  // Prime, so it reaches every device before it repeats one, and other ones at each size.
  const stride = 7_368_787
  for (let n = 1; n < all; n++) {
    const device = (n * stride) % all
    const cohort = rig.cohorts.find((one) => device < one.firstDevice + one.devices)!
    if (cohort.sessions === null && !askedFor.has(device)) {
      askedFor.add(device)
      yield { cohort, device }
    }
  }
}
const askedFor = new Set<number>()

function takeCold(from: Generator<DeviceRequest>): DeviceRequest {
  const next = from.next()
  if (next.done) throw new Error('there are fewer devices than requests')
  return next.value
}

async function measureSize(
  rig: Rig,
  { rounds, requests, compared }: Measuring,
): Promise<SizeResult> {
  const cold = coldDevices(rig)
  const hot = Array.from({ length: hotDevices }, () => takeCold(cold))
  for (let n = 0; n < 5; n++) {
    for (const one of hot) {
      await requestDevice(rig, compared, one)
      await requestBaseline(rig, one.device)
    }
  }
  const result: SizeResult = { rounds: [] }
  for (let n = 0; n < rounds; n++) {
    const round: Round = { baseline: [], cold: [], hot: [] }
    for (let m = 0; m < requests; m++) {
      const [fresh, known] = [takeCold(cold), hot[m % hot.length]!]
      round.baseline.push(await requestBaseline(rig, fresh.device))
      round.cold.push(await requestDevice(rig, compared, fresh))
      round.hot.push(await requestDevice(rig, compared, known))
    }
    result.rounds.push(round)
  }
  return result
}

const each = ({ rounds }: SizeResult, of: keyof Round, rank: number): number[] =>
  rounds.map((round) => percentile(round[of], rank))

function toFigures(name: string, result: SizeResult, bound: boolean): Figure[] {
  return (['cold', 'hot'] as const).flatMap((of) =>
    ([0.5, 0.99] as const).map((rank): Figure => {
      const [values, baselines] = [each(result, of, rank), each(result, 'baseline', rank)]
      return {
        name: `${name}, ${of} device, p${rank * 100}`,
        unit: 'ms',
        value: toSpread(values),
        baseline: { name: 'SELECT 1', value: toSpread(baselines) },
        ratio: toRatios(values, baselines),
        ...(rank === 0.5 && bound ? { bound: { of: 'ratio', atMost: 3 } } : {}),
      }
    }),
  )
}

/**
 * Corrects the growth by the ratio of both sizes' baselines, because the machine changes within
 * minutes.
 */
function toGrowth(small: SizeResult, large: SizeResult): Figure[] {
  return (['cold', 'hot'] as const).map((of): Figure => {
    const value = toRatios(each(large, of, 0.5), each(small, of, 0.5))
    const baselines = toRatios(each(large, 'baseline', 0.5), each(small, 'baseline', 0.5))
    return {
      name: `growth of p50 from the least rows to the most, ${of} device`,
      unit: 'times',
      value,
      baseline: { name: 'SELECT 1', value: baselines },
      ratio: toSpread([value.median / baselines.median]),
      bound: { of: 'ratio', atMost: 1.5 },
    }
  })
}

/** Devices whose sessions came with twenty unmerged inserts. */
async function measureUnmerged(rig: Rig, measuring: Measuring): Promise<Figure[]> {
  const tables = ['sessions', 'devices', 'telemetry']
  const run = (query: string) => rig.clickhouse.command({ query })
  for (const table of tables) await run(`system stop merges ${table}`)
  const cohort = await insertCohort(rig, { devices: 1_200, slices: 20, sessions: null })
  const only: Rig = { ...rig, cohorts: [cohort] }
  const rounds: Round[] = []
  for (let n = 0; n < measuring.rounds; n++) {
    const round: Round = { baseline: [], cold: [], hot: [] }
    for (let m = 0; m < measuring.requests; m++) {
      const device = cohort.firstDevice + ((n * measuring.requests + m) % cohort.devices)
      round.baseline.push(await requestBaseline(only, device))
      round.cold.push(await requestDevice(only, measuring.compared, { cohort, device }))
    }
    rounds.push(round)
  }
  for (const table of tables) await run(`system start merges ${table}`)
  const name = 'after 20 inserts that are not merged'
  return toFigures(
    name,
    { rounds: rounds.map((one) => ({ ...one, hot: one.cold })) },
    false,
  ).filter((figure) => !figure.name.includes('hot'))
}

/** One device with 100,000 sessions, which came with twenty inserts. */
async function measureHotDevice(
  rig: Rig,
  { rounds, requests, compared }: Measuring,
): Promise<Figure[]> {
  const cohort = await insertCohort(rig, { devices: 1, slices: 20, sessions: hotDeviceSessions })
  await settle(rig.clickhouse)
  const device = cohort.firstDevice
  const pages: number[][] = []
  const whole: number[][] = []
  const baselines: number[] = []
  for (let n = 0; n < rounds; n++) {
    const page: number[] = []
    const baseline: number[] = []
    for (let m = 0; m < requests / 2; m++) {
      baseline.push(await requestBaseline(rig, device))
      page.push(await requestDevice(rig, compared, { cohort, device, limit: 100 }))
    }
    pages.push(page)
    baselines.push(percentile(baseline, 0.5))
  }
  for (let n = 0; n < rounds; n++) {
    const all: number[] = []
    for (let m = 0; m < 10; m++) all.push(await requestDevice(rig, compared, { cohort, device }))
    whole.push(all)
  }
  const over = (values: number[][], rank: number): Spread =>
    toSpread(values.map((one) => percentile(one, rank)))
  const memory = readMemoryMb(rig.api.pid)
  const baseline = { name: 'SELECT 1', value: toSpread(baselines) }
  const most = (atMost: number): Pick<Figure, 'bound'> => ({ bound: { of: 'value', atMost } })
  const [page, all] = ['100,000 sessions, 100 of them', '100,000 sessions, first 10,000']
  const ms = 'ms'
  return [
    { name: `${page}, p50`, unit: ms, value: over(pages, 0.5), baseline },
    { name: `${page}, p99`, unit: ms, value: over(pages, 0.99), ...most(answerMaxMs.page) },
    { name: `${all}, p50`, unit: ms, value: over(whole, 0.5), ...most(answerMaxMs.all) },
    { name: `${all}, slowest`, unit: ms, value: over(whole, 1) },
    {
      name: 'memory of the api, at most',
      unit: 'MB',
      value: toSpread([memory.peak]),
      ...most(160),
    },
    { name: 'memory of the api, at the end', unit: 'MB', value: toSpread([memory.now]) },
  ]
}

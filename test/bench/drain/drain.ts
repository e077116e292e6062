/**
 * `npm run bench -- drain [--events N] [--rounds N] [--phones [--roaming SHARE]] [--equal]`: how fast one
 * scorer process works off a full stream, from the first stored event until all are stored and
 * decided, beside bare loops that insert the same rows: as objects through the client's `insert`,
 * and as bytes that were encoded beforehand. And the same with one event in five raising an alert.
 * Rounds are interleaved, each in its own databases. A round is valid only if every event has its
 * row, every alert exists once with its delivery and its reconciliation entries, and nothing was
 * quarantined. With `--roaming 0.2` one phone in five comes from another network each time. With
 * `--equal` every event is of a new install: a thousand of each tenant alike, beside as many that
 * have all for their own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  deadLetterStream,
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { telemetryColumns } from '#shared/io/telemetry/telemetry-rows.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { proveBatch, testTelemetryKey } from '../../support/telemetry/telemetry-proof.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'
import {
  type BenchChild,
  forkChild,
  type MeasuredService,
  readCpuSeconds,
  readMemoryMb,
  startMeasured,
} from '../measured-process.ts'
import { type Check, publishReport, readClickhouseVersion, readPostgresVersion } from '../report.ts'
import type { BaselineOrder, BaselineResult } from './drain-baseline.ts'
import {
  type DrainEvents,
  drainTenants,
  expectedAlerts,
  makeDrainMessages,
} from './drain-events.ts'
import {
  type Baselines,
  type Costs,
  type Drained,
  mergeChecks,
  toEqualFigures,
  toFigures,
} from './drain-figures.ts'

const log = createLog('bench', 'silent')
const pollMs = 15
const drainMaxMs = 15 * 60_000

/** A stream that is filled once; each round starts with new consumers. */
type Filled = { options: DrainEvents; server: Awaited<ReturnType<typeof startNats>>; nats: Nats }

type Rig = {
  postgres: Awaited<ReturnType<typeof startPostgres>>
  clickhouse: Awaited<ReturnType<typeof startClickhouse>>
  quiet: Filled
  alerting: Filled
  baseline: BenchChild
}

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '300000' },
      rounds: { type: 'string', default: '3' },
      // For profiles: one part alone, without a report.
      only: { type: 'string' },
      phones: { type: 'boolean', default: false },
      roaming: { type: 'string', default: '0' },
      equal: { type: 'boolean', default: false },
    },
  })
  const { events, phones, roaming, equal } = values
  const common = { events: Number(events), phones, roaming: Number(roaming) }
  const rig = await (equal
    ? startRig(
        { ...common, alerting: false, installs: 'own' },
        { ...common, alerting: false, installs: 'equal' },
      )
    : startRig({ ...common, alerting: false }, { ...common, alerting: true }))
  try {
    if (equal) await measureEqual(rig, Number(values.rounds), args)
    else if (values.only !== undefined) await runOnly(rig, values.only, Number(values.rounds))
    else await measure(rig, Number(values.rounds), args)
  } finally {
    await stopRig(rig)
  }
}

const print = (text: string) => process.stdout.write(`${text}\n`)

async function runOnly(rig: Rig, part: string, rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    if (part === 'baseline') {
      printBaselines(await measureBaselines(rig, `only${round}`, 4_000))
    } else {
      const filled = part === 'alerting' ? rig.alerting : rig.quiet
      printDrained(part, await measureDrain(rig, filled, `only${round}`))
    }
  }
}

function printBaselines({ bytes, objects, check }: Baselines): void {
  const toLine = (name: string, { eventsPerSecond, cpuUs }: BaselineResult) =>
    `${name.padEnd(9)} ${eventsPerSecond.toFixed(0).padStart(6)}/s, us/event: client ` +
    cpuUs.toFixed(1)
  print(`${toLine('bytes', bytes)} clickhouse ${bytes.clickhouseUs.toFixed(1)}`)
  print(toLine('objects', objects))
  if (!check.ok) print(`BROKEN ${check.name} ${check.detail}`)
}

function printDrained(
  name: string,
  { eventsPerSecond, costs, rowsPerInsert, keys, ...rest }: Drained,
): void {
  const spent = Object.entries(costs).map(([process, us]) => `${process} ${us.toFixed(1)}`)
  print(
    `${name.padEnd(9)} ${eventsPerSecond.toFixed(0).padStart(6)}/s, us/event: ${spent.join(' ')}` +
      `; ${rowsPerInsert.toFixed(0)} rows an insert, scorer ${rest.memoryMb.toFixed(0)} MB at most`,
  )
  if (keys.rows > 0) {
    print(
      `keys of installs: ${keys.rows.toFixed(2)} rows written an event, ` +
        `${keys.bytes.toFixed(1)} bytes an event on disk`,
    )
  }
  for (const check of rest.checks.filter(({ ok }) => !ok))
    print(`BROKEN ${check.name} ${check.detail}`)
}

async function measure(rig: Rig, rounds: number, args: readonly string[]): Promise<void> {
  const drains: Drained[] = []
  const baselines: Baselines[] = []
  const alertings: Drained[] = []
  for (let round = 1; round <= rounds; round++) {
    const drain = await measureDrain(rig, rig.quiet, `quiet${round}`)
    printDrained('quiet', drain)
    const baseline = await measureBaselines(
      rig,
      `baseline${round}`,
      Math.round(drain.rowsPerInsert),
    )
    printBaselines(baseline)
    const alerting = await measureDrain(rig, rig.alerting, `alerting${round}`)
    printDrained('alerting', alerting)
    drains.push(drain)
    baselines.push(baseline)
    alertings.push(alerting)
  }
  const versions = await readVersions(rig)
  publishReport({
    part: 'drain',
    command: ['npm run bench -- drain', ...args].join(' '),
    versions,
    durability: 'sync_interval: always, Postgres fsync on',
    figures: toFigures(drains, baselines, alertings),
    checks: mergeChecks([
      ...[...drains, ...alertings].flatMap(({ checks }) => checks),
      ...baselines.map(({ check }) => check),
    ]),
  })
}

/** Drains new installs with all for their own, and those of which a thousand are alike. */
async function measureEqual(rig: Rig, rounds: number, args: readonly string[]): Promise<void> {
  const own: Drained[] = []
  const equal: Drained[] = []
  for (let round = 1; round <= rounds; round++) {
    own.push(await measureDrain(rig, rig.quiet, `own${round}`))
    printDrained('own', own.at(-1)!)
    equal.push(await measureDrain(rig, rig.alerting, `equal${round}`))
    printDrained('equal', equal.at(-1)!)
  }
  publishReport({
    part: 'drain',
    command: ['npm run bench -- drain', ...args].join(' '),
    versions: await readVersions(rig),
    durability: 'sync_interval: always, Postgres fsync on',
    figures: toEqualFigures(own, equal),
    checks: mergeChecks([...own, ...equal].flatMap(({ checks }) => checks)),
  })
}

type Fill = Omit<DrainEvents, 'startedAtMs'>

async function startRig(quietEvents: Fill, otherEvents: Fill): Promise<Rig> {
  const startedAtMs = Date.now()
  const [postgres, clickhouse, quiet, alerting, { worker: baseline }] = await Promise.all([
    startPostgres({ settings: { fsync: 'on' } }),
    startClickhouse(),
    fill({ ...quietEvents, startedAtMs }),
    fill({ ...otherEvents, startedAtMs }),
    forkChild('./drain/drain-baseline.ts'),
  ])
  await baseline.request({ do: 'encode', options: quiet.options } satisfies BaselineOrder)
  return { postgres, clickhouse, quiet, alerting, baseline }
}

async function stopRig({ postgres, clickhouse, quiet, alerting, baseline }: Rig): Promise<void> {
  baseline.stop()
  await Promise.all([quiet.nats.close(), alerting.nats.close()])
  await Promise.all([
    postgres.stop(),
    clickhouse.stop(),
    quiet.server.stop(),
    alerting.server.stop(),
  ])
}

async function fill(options: DrainEvents): Promise<Filled> {
  const server = await startNats()
  const nats = await connectNats(server.url, 'bench', log)
  await ensureStreams(nats)
  let waiting: Promise<unknown>[] = []
  for (const message of makeDrainMessages(options)) {
    waiting.push(
      nats.jetstream.publish(telemetrySubject, message, { headers: proveBatch(message) }),
    )
    if (waiting.length === 32) {
      await Promise.all(waiting)
      waiting = []
    }
  }
  await Promise.all(waiting)
  return { options, server, nats }
}

async function measureBaselines(rig: Rig, name: string, rowsPerInsert: number): Promise<Baselines> {
  const from = `${rig.clickhouse.url}/${name}_bytes`
  const url = `${rig.clickhouse.url}/${name}_objects`
  await Promise.all([migrateClickhouse(from), migrateClickhouse(url)])
  const before = readCpuSeconds(rig.clickhouse.pid)
  const insert: BaselineOrder = { do: 'insert', url: from, rowsPerInsert }
  const bytes = await rig.baseline.request<BaselineResult>(insert)
  const spent = readCpuSeconds(rig.clickhouse.pid) - before
  const again: BaselineOrder = { do: 'insertObjects', from, url, rowsPerInsert }
  const objects = await rig.baseline.request<BaselineResult>(again)
  const [one, other] = [await readDigest(from), await readDigest(url)]
  for (const database of [from, url]) await dropDatabase(rig, new URL(database).pathname.slice(1))
  const { events } = rig.quiet.options
  return {
    bytes: { ...bytes, clickhouseUs: (spent / events) * 1e6 },
    objects,
    check: {
      name: 'rows as objects are the rows as bytes',
      ok: one === other && one.startsWith(`${events}\t`),
      detail: `${other} of ${one}`,
    },
  }
}

/** The number of rows and a digest of them; the text of signals is expensive, so one in 20. */
async function readDigest(url: string): Promise<string> {
  const clickhouse = createClickhouse(url, { name: 'bench' })
  const texts = telemetryColumns.map((column) =>
    column === 'signals'
      ? `if(cityHash64(event_id) % 20 = 0, toString(signals), '')`
      : `ifNull(toString(${column}), '')`,
  )
  const result = await clickhouse.query({
    query: `select count(), sum(cityHash64(${texts.join(', ')})) from telemetry`,
    format: 'TabSeparated',
  })
  const digest = (await result.text()).trim()
  await clickhouse.close()
  return digest
}

async function dropDatabase(rig: Rig, database: string): Promise<void> {
  const clickhouse = createClickhouse(rig.clickhouse.url, { name: 'bench', database: 'default' })
  for (const name of [`${database}_analytics`, database]) {
    await clickhouse.command({ query: `drop database if exists ${name} sync` })
  }
  await clickhouse.close()
}

async function measureDrain(rig: Rig, filled: Filled, database: string): Promise<Drained> {
  const { nats, server, options } = filled
  const postgresUrl = await rig.postgres.createDatabase(database)
  const clickhouseUrl = `${rig.clickhouse.url}/${database}`
  await Promise.all([migratePostgres(postgresUrl), migrateClickhouse(clickhouseUrl)])
  const postgres = createPostgres(postgresUrl, { role: 'bench', log })
  for (const tenantId of drainTenants) {
    await insertBareTenants(postgres, [tenantId])
  }
  for (const durable of [scorerConsumer, deciderConsumer]) {
    await nats.manager.consumers.delete(telemetryStream, durable)
  }
  await ensureStreams(nats)
  const scorer = await startMeasured('scorer', {
    NATS_URL: server.urlOf('scorer'),
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    TELEMETRY_KEY: testTelemetryKey,
  })
  const clickhouse = createClickhouse(clickhouseUrl, { name: 'bench' })
  try {
    const timed = await timeDrain(rig, filled, scorer)
    const rowsPerInsert =
      options.events / (await readMetric(scorer.internalUrl, 'di_insert_rows_count'))
    const memoryMb = readMemoryMb(scorer.pid).peak
    const keysWritten = await readMetric(scorer.internalUrl, 'di_identity_keys_stored_total')
    await scorer.stop()
    const checks = await checkDrain({ nats, clickhouse, options, postgres })
    const keyBytes = options.phones ? await readKeyBytes(clickhouse) : 0
    const keys = { rows: keysWritten / options.events, bytes: keyBytes / options.events }
    return { ...timed, rowsPerInsert, memoryMb, checks, keys }
  } finally {
    await scorer.stop()
    await clickhouse.close()
    await postgres.close()
    await dropDatabase(rig, database)
  }
}

/** What the keys of installs take on disk once they are merged. */
async function readKeyBytes(clickhouse: Clickhouse): Promise<number> {
  await clickhouse.command({ query: 'optimize table identity_keys final' })
  const result = await clickhouse.query({
    query: `select toFloat64(sum(bytes_on_disk)) from system.parts
      where database = currentDatabase() and table = 'identity_keys' and active`,
    format: 'JSONCompactEachRow',
  })
  return (await result.json<[number]>())[0]![0]
}

async function timeDrain(
  rig: Rig,
  { nats, server, options }: Filled,
  scorer: MeasuredService,
): Promise<Pick<Drained, 'eventsPerSecond' | 'costs'>> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const limitMs = performance.now() + drainMaxMs
  const readWatermark = async (durable: string) => {
    if (performance.now() > limitMs) throw new Error('the drain takes too long')
    const info = await nats.manager.consumers.info(telemetryStream, durable)
    return info.ack_floor.stream_seq
  }
  const readCosts = () => ({
    scorer: readCpuSeconds(scorer.pid),
    clickhouse: readCpuSeconds(rig.clickhouse.pid),
    postgres: readCpuSeconds(rig.postgres.pid, true),
    nats: readCpuSeconds(server.pid),
  })
  let first = 0
  while (first === 0) {
    first = await readWatermark(scorerConsumer)
    if (first === 0) await sleep(pollMs)
  }
  const begunMs = performance.now()
  const before = readCosts()
  for (const durable of [scorerConsumer, deciderConsumer]) {
    while ((await readWatermark(durable)) < state.last_seq) await sleep(pollMs)
  }
  const seconds = (performance.now() - begunMs) / 1_000
  const after = readCosts()
  const counted = options.events * (1 - first / state.last_seq)
  const toUs = (process: keyof Costs) => ((after[process] - before[process]) / counted) * 1e6
  return {
    eventsPerSecond: counted / seconds,
    costs: {
      scorer: toUs('scorer'),
      clickhouse: toUs('clickhouse'),
      postgres: toUs('postgres'),
      nats: toUs('nats'),
    },
  }
}

type Outcome = {
  nats: Nats
  clickhouse: Clickhouse
  options: DrainEvents
  postgres: ReturnType<typeof createPostgres>
}

async function checkDrain({ nats, clickhouse, options, postgres }: Outcome): Promise<Check[]> {
  const read = async (query: string): Promise<number[]> => {
    const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
    return (await result.json<number[]>())[0]!.map(Number)
  }
  const { state: dead } = await nats.manager.streams.info(deadLetterStream)
  const rows = await read('select count(), uniqExact(event_id) from telemetry final')
  const noted = await read(
    `select sumIf(events, stage = 'stored'), sumIf(events, stage = 'decided'),
       sumIf(length(ids), stage = 'decided') from reconciliation_entries final`,
  )
  const due = await read('select count() from reconciliation_expected_alerts final')
  const raised = await postgres.query<{ alerts: number; deliveries: number; counted: number }>(
    `select (select count(*) from alerts)::int as alerts,
       (select count(*) from deliveries)::int as deliveries,
       (select coalesce(sum(alert_count), 0) from alert_counts_by_day)::int as counted`,
  )
  const { alerts, deliveries, counted } = raised.rows[0]!
  const { events } = options
  // Equal users and networks raise alerts of their own.
  const expected = options.installs === 'equal' ? alerts : expectedAlerts(options)
  const kind = options.installs ?? (options.alerting ? '1 in 5 alerting' : 'no alerts')
  const check = (what: string, found: readonly number[], expected: readonly number[]): Check => ({
    name: `${what}, ${kind}`,
    ok: found.every((value, index) => value === expected[index]),
    detail: `${found.join(' and ')} of ${expected.join(' and ')}`,
  })
  return [
    check('rows, and events in them', rows, [events, events]),
    check('reconciliation: stored, decided, repeats', noted, [events, events, 0]),
    check(
      'alerts, deliveries, counted, due in reconciliation',
      [alerts, deliveries, counted, ...due],
      [...[expected, expected, expected, expected]],
    ),
    check('dead letters', [dead.messages], [0]),
  ]
}

async function readVersions(rig: Rig): Promise<Record<string, string>> {
  const clickhouse = createClickhouse(rig.clickhouse.url, { name: 'bench', database: 'default' })
  const postgres = createPostgres(rig.postgres.url, { role: 'bench', log })
  const versions = {
    nats: rig.quiet.server.version,
    postgres: await readPostgresVersion(postgres),
    clickhouse: await readClickhouseVersion(clickhouse),
  }
  await Promise.all([clickhouse.close(), postgres.close()])
  return versions
}

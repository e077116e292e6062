/**
 * The scorer's query of risk features for a batch, beside growing activity: the time and
 * ClickHouse's CPU per event of loading them for the latest events of a fleet, while `activity` has
 * a million rows and more, beside `SELECT 1` through the same client. An event has three rows
 * there: of its device, which has ten sessions, of its session and of its user. `--rows N,N`
 * chooses the sizes.
 */
import { parseArgs } from 'node:util'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createActivityStore } from '#shared/io/velocity/activity-store.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { untilMergesEnd } from '../drain/merges.ts'
import { readCpuSeconds } from '../measured-process.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { type Spread, toSpread } from '../spread.ts'
import { fillActivity, rowsPerEvent, toSubject } from './activity-rows.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)
const tenantId = 'fleet'
/** A scorer's batch at 2,000 events/s with five inserts a second, and its batch during a drain. */
const batches = [400, 4_000]
const rounds = 7
const mergeLimitMs = 120_000

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { rows: { type: 'string', default: '1000000,10000000,30000000' } },
  })
  const sizes = values.rows.split(',').map(Number)
  const server = await startClickhouse()
  try {
    await migrateClickhouse(server.url)
    const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 300_000 })
    const figures: Figure[] = []
    const checks: Check[] = []
    const perEvent = new Map<number, Spread[]>()
    let events = 0
    for (const rows of sizes) {
      const expected = Math.ceil(rows / rowsPerEvent)
      await fillActivity(clickhouse, { tenantId, from: events, to: expected })
      events = expected
      const parts = await untilMerged(clickhouse)
      print(`${rows} rows in ${parts} parts`)
      for (const batch of batches) {
        const measured = await measure(clickhouse, server.pid, { events, batch })
        checks.push(measured.check)
        perEvent.set(batch, [...(perEvent.get(batch) ?? []), measured.perEvent])
        const where = `${rows / 1e6} million rows, ${parts} parts, of ${batch} events`
        figures.push(
          {
            name: `${where}, each`,
            unit: 'µs',
            value: measured.perEvent,
            baseline: { name: 'SELECT 1', value: measured.baseline },
          },
          { name: `${where}, ClickHouse CPU each`, unit: 'µs', value: measured.cpu },
        )
      }
    }
    for (const [batch, all] of perEvent) {
      const growth = all.at(-1)!.median / all[0]!.median
      const name = `growth from the fewest rows to the most, batches of ${batch}`
      figures.push({ name, unit: 'times', value: toSpread([growth]) })
    }
    const version = await readClickhouseVersion(clickhouse)
    await clickhouse.close()
    publishReport({
      part: 'risk-features',
      command: `npm run bench -- risk-features --rows ${values.rows}`,
      versions: { clickhouse: version },
      durability: 'nothing is written while it is measured',
      figures,
      checks,
    })
  } finally {
    await server.stop()
  }
}

async function untilMerged(clickhouse: Clickhouse): Promise<number> {
  const count = async (query: string) => {
    const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
    return Number((await result.json<[number | string]>())[0]![0])
  }
  await untilMergesEnd(clickhouse, mergeLimitMs)
  return count(`select count() from system.parts where active and table = 'activity'`)
}

async function measure(
  clickhouse: Clickhouse,
  pid: number,
  { events, batch }: { events: number; batch: number },
) {
  const store = createActivityStore(clickhouse)
  const [tookUs, cpuUs, baselineUs]: [number[], number[], number[]] = [[], [], []]
  let answered = 0
  let found = 0
  for (let round = 0; round <= rounds; round++) {
    // Subjects from the whole fleet, at their latest event, never those that were just read.
    const subjects = Array.from({ length: batch }, (_, n) =>
      toSubject(tenantId, Math.floor(((n + round / (rounds + 1)) * events) / batch)),
    )
    const baseline = await timed(() =>
      clickhouse.query({ query: 'select 1' }).then((r) => r.text()),
    )
    const spentBefore = readCpuSeconds(pid)
    const took = await timed(async () => {
      const answers = await store.countActivity(subjects)
      answered += answers.length
      found += answers.filter(
        ({ firstCopy, counts }) => firstCopy !== null || counts.size > 0,
      ).length
    })
    // The first round is cold and does not count.
    if (round === 0) continue
    tookUs.push((took * 1_000) / batch)
    cpuUs.push(((readCpuSeconds(pid) - spentBefore) * 1_000_000) / batch)
    baselineUs.push((baseline * 1_000) / batch)
  }
  const expected = batch * (rounds + 1)
  return {
    perEvent: toSpread(tookUs),
    cpu: toSpread(cpuUs),
    baseline: toSpread(baselineUs),
    check: {
      name: `every one of ${batch} events is answered, and none is a retry or beyond a rule`,
      ok: answered === expected && found === 0,
      detail: `${answered} of ${expected}, ${found} found`,
    },
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

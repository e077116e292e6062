/**
 * `npm run bench -- pages [--events N] [--days D] [--rounds N]`: the queries of the overview over a
 * week beside the week before, and of the fleet page over a week and over all days, on simulated
 * events in a ClickHouse of its own. The baseline is the same page read from events alone, without
 * the counts of whole hours; a check compares every number of the two.
 */
import { parseArgs } from 'node:util'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import {
  fleetLinesMax,
  fleetSignalsMax,
  overviewFlagsMax,
  overviewVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import {
  createHourlyCountStore,
  forgetHourlyCounts,
} from '#shared/io/analytics/hourly-count-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { readCpuSeconds } from '../measured-process.ts'
import { type Figure, publishReport, readClickhouseVersion, single } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { fillEvents, tenantId } from './page-rows.ts'

const pageMaxMs = 500

/** Times and the CPU of ClickHouse, in ms of each round. */
type Measured = { times: number[]; cpu: number[]; answer: string }

type Page = { name: string; read: () => Promise<unknown> }

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '10000000' },
      days: { type: 'string', default: '30' },
      rounds: { type: 'string', default: '5' },
    },
  })
  const [events, days, rounds] = [values.events, values.days, values.rounds].map(Number) as [
    number,
    number,
    number,
  ]
  const server = await startClickhouse({ isMigrated: true })
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 1_800_000 })
  try {
    const nowMs = Date.now()
    await fillEvents(clickhouse, { events, days, nowMs })
    const pages = toPages(clickhouse, { days, nowMs })
    const measuring = { rounds, pid: server.pid }
    const plain = await measure(pages, measuring)
    // As if the last insert was a minute ago: hours are counted once no row comes any more.
    await clickhouse.command({ query: 'truncate table sdk_baselines' })
    const countedMs = await count(clickhouse, days, nowMs)
    const counted = await measure(pages, measuring)
    const toFigure = (name: string, at: number, what: 'times' | 'cpu'): Figure => ({
      name: `${name}, ${events} events${what === 'cpu' ? ', CPU of ClickHouse' : ''}`,
      unit: 'ms',
      value: toSpread(counted[at]![what]),
      baseline: { name: 'from events', value: toSpread(plain[at]![what]) },
      ratio: toRatios(counted[at]![what], plain[at]![what]),
      ...(what === 'times' && { bound: { of: 'value' as const, atMost: pageMaxMs } }),
    })
    const figures = pages.flatMap(({ name }, at) => [
      toFigure(name, at, 'times'),
      toFigure(name, at, 'cpu'),
    ])
    figures.push(single('counting all hours once', 's', countedMs / 1_000))
    publishReport({
      part: 'pages',
      command: ['npm run bench -- pages', ...args].join(' '),
      versions: { clickhouse: await readClickhouseVersion(clickhouse) },
      durability: 'reads only',
      figures,
      checks: pages.map(({ name }, at) => ({
        name: `${name} has the numbers of its events`,
        ok: counted[at]!.answer === plain[at]!.answer,
        detail: `${counted[at]!.answer.length} characters`,
      })),
    })
  } finally {
    await clickhouse.close()
    await server.stop()
  }
}

function toPages(clickhouse: Clickhouse, { days, nowMs }: { days: number; nowMs: number }): Page[] {
  const [overview, fleet] = [createOverviewStore(clickhouse), createFleetStore(clickhouse)]
  const readFleet = (spanDays: number) => async () => {
    const span = {
      tenantId,
      fromMs: Math.floor(nowMs / 60_000) * 60_000 - spanDays * dayMs,
      toMs: nowMs,
      stepSeconds: 86_400,
    }
    const [counts, newDevices] = await Promise.all([
      fleet.readCounts(span),
      fleet.listNewDevices(span),
    ])
    const versions = counts.versions.slice(0, fleetLinesMax)
    return [
      counts,
      newDevices,
      await fleet.listSignals({ ...span, versions, signalsMax: fleetSignalsMax }),
    ]
  }
  const fromMs = nowMs - 7 * dayMs
  const span = { tenantId, beforeMs: fromMs - 7 * dayMs, fromMs, toMs: nowMs }
  return [
    {
      name: 'overview of 7 days',
      read: () =>
        Promise.all([
          overview.readCounts(span, { versionsMax: overviewVersionsMax, stepMs: dayMs }),
          overview.listFlags(span, overviewFlagsMax),
          overview.listSignals(span),
        ]),
    },
    { name: 'fleet of 7 days', read: readFleet(7) },
    { name: `fleet of ${days} days`, read: readFleet(days) },
  ]
}

/** Reads each page in turn; the first reading is not timed. */
async function measure(
  pages: readonly Page[],
  { rounds, pid }: { rounds: number; pid: number },
): Promise<Measured[]> {
  const measured: Measured[] = []
  for (const { read } of pages) {
    const answer = JSON.stringify(await read())
    measured.push({ times: [], cpu: [], answer })
  }
  for (let round = 0; round < rounds; round++) {
    for (const [at, { read }] of pages.entries()) {
      const [startMs, cpu] = [performance.now(), readCpuSeconds(pid)]
      await read()
      measured[at]!.times.push(performance.now() - startMs)
      measured[at]!.cpu.push((readCpuSeconds(pid) - cpu) * 1_000)
    }
  }
  return measured
}

/** Counts as the job of the console does. @returns how long that took */
async function count(clickhouse: Clickhouse, days: number, nowMs: number): Promise<number> {
  const store = createHourlyCountStore(clickhouse)
  const startMs = performance.now()
  await forgetHourlyCounts(clickhouse, tenantId)
  const last = Math.floor(nowMs / hourMs) * hourMs
  for (let toMs = last; toMs > last - (days + 1) * dayMs; toMs -= dayMs) {
    await store.count(null, { fromMs: toMs - dayMs, toMs })
  }
  return performance.now() - startMs
}

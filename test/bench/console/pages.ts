/**
 * `npm run bench -- pages [--events N] [--days D] [--rounds N] [--data DIR] [--only calls]
 * [--alerts N]`: the queries of the overview and of the fleet page over a day, a week and a month
 * on simulated events in a ClickHouse of its own. The baseline is the same page read from events
 * alone, without the counts of whole hours and days, of more than two million events only for a
 * day; a check compares every number of the two. Then the calls of every page, with 100,000 alerts
 * in 3,000 cases. With `--data` the events are kept there for further runs, which measure as of the
 * time when they were made; with `--only calls` such a run leaves out the first part.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import {
  fleetLinesMax,
  fleetSignalsMax,
  overviewFlagsMax,
  overviewVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { createDailyCountStore } from '#shared/io/analytics/counts/daily-count-store.ts'
import {
  createHourlyCountStore,
  forgetHourlyCounts,
} from '#shared/io/analytics/counts/hourly-count-store.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { toBeforeMs, toStepMs } from '../../../services/console/overview/overview-lines.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { readCpuSeconds } from '../measured-process.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion, single } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { measureCalls } from './page-calls.ts'
import { fillEvents, tenantId } from './page-rows.ts'

const pageMaxMs = 500
/** A month of more events is not read from events within the time of a query. */
const comparedEventsMax = 2_000_000

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
      data: { type: 'string' },
      only: { type: 'string' },
      alerts: { type: 'string', default: '100000' },
    },
  })
  const [events, days, rounds] = [values.events, values.days, values.rounds].map(Number) as [
    number,
    number,
    number,
  ]
  const { server, clickhouse, nowMs } = await openEvents({ events, days, data: values.data })
  try {
    const { figures, checks } =
      values.only === 'calls'
        ? { figures: [], checks: [] }
        : await measurePages(clickhouse, { events, days, nowMs, rounds, pid: server.pid })
    figures.push(
      ...(await measureCalls({
        clickhouse,
        clickhousePid: server.pid,
        nowMs,
        rounds,
        alerts: Number(values.alerts),
      })),
    )
    publishReport({
      part: 'pages',
      command: ['npm run bench -- pages', ...args].join(' '),
      versions: { clickhouse: await readClickhouseVersion(clickhouse) },
      durability: 'reads only',
      figures,
      checks,
    })
  } finally {
    await clickhouse.close()
    await server.stop()
  }
}

type Measuring = { events: number; days: number; nowMs: number; rounds: number; pid: number }

/** The queries of the pages, from events alone and from the counts. */
async function measurePages(
  clickhouse: Clickhouse,
  { events, days, nowMs, rounds, pid }: Measuring,
): Promise<{ figures: Figure[]; checks: Check[] }> {
  const pages = toPages(clickhouse, nowMs)
  const measuring = { rounds, pid }
  await forgetHourlyCounts(clickhouse, tenantId)
  const compared = events > comparedEventsMax ? pages.slice(0, 2) : pages
  const plain = await measure(compared, measuring)
  // As if the last insert was a minute ago: hours are counted once no row comes any more.
  await clickhouse.command({ query: 'truncate table sdk_baselines' })
  const countedMs = await count(clickhouse, days, nowMs)
  const counted = await measure(pages, measuring)
  const toFigure = (name: string, at: number, what: 'times' | 'cpu'): Figure => ({
    name: `${name}, ${events} events${what === 'cpu' ? ', CPU of ClickHouse' : ''}`,
    unit: 'ms',
    value: toSpread(counted[at]![what]),
    ...(plain[at] !== undefined && {
      baseline: { name: 'from events', value: toSpread(plain[at][what]) },
      ratio: toRatios(counted[at]![what], plain[at][what]),
    }),
    ...(what === 'times' && { bound: { of: 'value' as const, atMost: pageMaxMs } }),
  })
  const figures = pages.flatMap(({ name }, at) => [
    toFigure(name, at, 'times'),
    toFigure(name, at, 'cpu'),
  ])
  figures.push(single('counting all hours and days once', 's', countedMs / 1_000))
  return {
    figures,
    checks: compared.map(({ name }, at) => ({
      name: `${name} has the numbers of its events`,
      ok: counted[at]!.answer === plain[at]!.answer,
      detail: `${counted[at]!.answer.length} characters`,
    })),
  }
}

type Opening = { events: number; days: number; data: string | undefined }

async function openEvents({ events, days, data }: Opening) {
  const marker = data === undefined ? null : join(data, 'bench-now')
  const isFilled = marker !== null && existsSync(marker)
  const server = await startClickhouse({
    isMigrated: !isFilled,
    ...(data === undefined ? {} : { path: data }),
  })
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 1_800_000 })
  const nowMs = isFilled ? Number(readFileSync(marker, 'utf8')) : Date.now()
  if (!isFilled) await fillEvents(clickhouse, { events, days, nowMs })
  if (marker !== null) writeFileSync(marker, String(nowMs))
  return { server, clickhouse, nowMs }
}

function toPages(clickhouse: Clickhouse, nowMs: number): Page[] {
  const [overview, fleet] = [createOverviewStore(clickhouse), createFleetStore(clickhouse)]
  const toSpan = (days: number) => {
    const fromMs = Math.floor((nowMs - days * dayMs) / hourMs) * hourMs
    const period = { fromMs, toMs: nowMs }
    return { tenantId, ...period, beforeMs: toBeforeMs(period), stepMs: toStepMs(period) }
  }
  const readFleet = (days: number) => async () => {
    const { stepMs, ...own } = toSpan(days)
    const span = { ...own, stepSeconds: stepMs / 1_000 }
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
  const readOverview = (days: number) => () => {
    const { stepMs, ...span } = toSpan(days)
    return Promise.all([
      overview.readCounts(span, { versionsMax: overviewVersionsMax, stepMs }),
      overview.listFlags(span, overviewFlagsMax),
      overview.listSignals(span),
    ])
  }
  return [1, 7, 30].flatMap((days) => [
    { name: `overview of ${days} days`, read: readOverview(days) },
    { name: `fleet of ${days} days`, read: readFleet(days) },
  ])
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
  const [store, daily] = [createHourlyCountStore(clickhouse), createDailyCountStore(clickhouse)]
  const startMs = performance.now()
  const last = Math.floor(nowMs / hourMs) * hourMs
  for (let toMs = last; toMs > last - (days + 1) * dayMs; toMs -= dayMs) {
    await store.count(null, { fromMs: toMs - dayMs, toMs })
  }
  const earliest = Math.floor(nowMs / dayMs - days - 1) * dayMs
  for (const day of await daily.findUnmerged(earliest)) await daily.merge(null, day)
  return performance.now() - startMs
}

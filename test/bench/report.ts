/**
 * The report of a benchmark: figures, each with a baseline of the same run and its target, and the
 * checks without which they are void. It is printed as a table, and saved in `results.json` in
 * place of the part's earlier report.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type FilesCost, measureFiles } from './files-cost.ts'
import { type Spread, toSpread } from './spread.ts'

export type Figure = {
  name: string
  unit: string
  value: Spread
  /** The baseline in the same unit, measured in rounds between those of the value. */
  baseline?: { name: string; value: Spread }
  /** The value of each round divided by its baseline. */
  ratio?: Spread
  /** The target of the median of the ratio or of the value. */
  bound?: { of: 'ratio' | 'value'; atLeast?: number; atMost?: number }
}

/** A figure of one round, with the most that it may be. */
export const single = (name: string, unit: string, value: number, atMost?: number): Figure => ({
  name,
  unit,
  value: toSpread([value]),
  ...(atMost === undefined ? {} : { bound: { of: 'value' as const, atMost } }),
})

/** A condition without which the figures are void. */
export type Check = { name: string; ok: boolean; detail: string }

export type Report = {
  /** As in `npm run bench -- PART`, with what distinguishes it from another report of it. */
  part: string
  /** The command with its options. */
  command: string
  /** The versions of the servers, such as `{ nats: '2.15.1' }`. */
  versions: Record<string, string>
  /** The durability of a 200 or a commit in this run, such as `sync_interval: always`. */
  durability: string
  figures: Figure[]
  checks: Check[]
}

/** For `versions`. */
export async function readPostgresVersion(postgres: {
  query: <T extends object>(text: string) => Promise<{ rows: T[] }>
}): Promise<string> {
  const { rows } = await postgres.query<{ server_version: string }>('show server_version')
  return rows[0]!.server_version
}

/** For `versions`. */
export async function readClickhouseVersion(clickhouse: {
  query: (question: { query: string; format: 'TabSeparated' }) => Promise<{
    text: () => Promise<string>
  }>
}): Promise<string> {
  const result = await clickhouse.query({ query: 'select version()', format: 'TabSeparated' })
  return (await result.text()).trim()
}

const resultsPath = fileURLToPath(new URL('./results.json', import.meta.url))

/** Whether a figure keeps its bound; null when it has none. */
function keepsBound({ bound, ratio, value }: Figure): boolean | null {
  if (bound === undefined) return null
  const { median } = bound.of === 'ratio' ? (ratio ?? value) : value
  return (bound.atLeast ?? -Infinity) <= median && median <= (bound.atMost ?? Infinity)
}

/**
 * Prints a report and saves it in `results.json`. A void one is not saved.
 * @throws when a check failed
 */
export function publishReport(report: Report): void {
  const files = measureFiles()
  print(`\n${report.command}\n${describe(report, files)}\n`)
  for (const figure of report.figures) print(`${toLine(figure)}\n`)
  for (const { name, ok, detail } of report.checks) {
    print(`  ${ok ? 'checked' : 'VOID   '}  ${name}: ${detail}\n`)
  }
  const broken = report.checks.filter(({ ok }) => !ok)
  if (broken.length > 0) throw new Error(`void: ${broken.map(({ name }) => name).join(', ')}`)
  save(report, files)
}

function describe({ versions, durability }: Report, { createUs, syncUs }: FilesCost): string {
  const servers = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const files = `a file ${createUs} µs, a sync ${syncUs} µs`
  return [`Node ${process.versions.node}`, ...servers, durability, files].join('  ')
}

function toLine(figure: Figure): string {
  const { name, unit, value, baseline, ratio } = figure
  const kept = keepsBound(figure)
  return [
    `  ${kept === null ? '      ' : kept ? 'holds ' : 'MISSES'}`,
    name.padEnd(52),
    `${format(value)} ${unit}`,
    baseline === undefined ? '' : `${baseline.name} ${format(baseline.value)}`,
    ratio === undefined ? '' : `ratio ${format(ratio)}`,
    toBoundText(figure),
  ]
    .filter((part) => part !== '')
    .join('  ')
}

function toBoundText({ bound }: Figure): string {
  if (bound === undefined) return ''
  const parts = [
    bound.atLeast === undefined ? '' : `at least ${bound.atLeast}`,
    bound.atMost === undefined ? '' : `at most ${bound.atMost}`,
  ]
  return `(${parts.filter((part) => part !== '').join(', ')})`
}

function format({ median, min, max, rounds }: Spread): string {
  return rounds === 1 ? round(median) : `${round(median)} [${round(min)} .. ${round(max)}]`
}

function round(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

function save(report: Report, files: FilesCost): void {
  const { part, ...rest } = report
  const figures = rest.figures.map((figure) => ({ ...figure, keeps_bound: keepsBound(figure) }))
  const entry = {
    commit: readCommit(),
    ...rest,
    figures,
    versions: { node: process.versions.node, ...rest.versions },
    machine: describeMachine(),
    file_create_us: files.createUs,
    file_sync_us: files.syncUs,
    measured_at: new Date().toISOString(),
  }
  const results = { ...readResults(), [part]: entry }
  const sorted = Object.fromEntries(
    Object.entries(results).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
  )
  writeFileSync(resultsPath, toResultsText(sorted))
}

type SavedReport = { measured_at: string; figures: (Figure & { keeps_bound: boolean | null })[] }

/** Each figure that misses its target, of the reports that were saved in this time. */
export function readMisses(from: Date, duringMs: number): string[] {
  const reports = Object.values(readResults()) as SavedReport[]
  const isOfThen = (atMs: number) => atMs >= from.getTime() && atMs <= from.getTime() + duringMs
  return reports
    .filter(({ measured_at: at }) => isOfThen(Date.parse(at)))
    .flatMap(({ figures }) => figures)
    .filter(({ keeps_bound: kept }) => kept === false)
    .map((figure) => {
      const { median } = (figure.bound!.of === 'ratio' ? figure.ratio : undefined) ?? figure.value
      const unit = figure.bound!.of === 'ratio' ? 'times' : figure.unit
      return `${figure.name}: ${round(median)} ${unit} ${toBoundText(figure)}`
    })
}

/** JSON with one line for each figure, in four significant digits. */
function toResultsText(results: Record<string, unknown>): string {
  const toShort = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(4)) : value
  const figures: string[] = []
  const text = JSON.stringify(
    results,
    (name, value: unknown) => {
      if (name !== 'figures' && name !== 'checks') return value
      return (value as object[]).map((one) => `@@${figures.push(JSON.stringify(one, toShort)) - 1}`)
    },
    2,
  )
  return `${text.replace(/"@@(\d+)"/g, (_, at: string) => figures[Number(at)]!)}\n`
}

/** The short commit of the measured code, with `+` when files but the results differ from it. */
function readCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  try {
    const code = [':/', ':(top,exclude)test/bench/results.json']
    const isChanged = git('status', '--porcelain', '--untracked-files=no', '--', ...code) !== ''
    return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`
  } catch {
    return 'unknown'
  }
}

function readResults(): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(resultsPath, 'utf8')) as Record<string, unknown>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

function describeMachine(): string {
  const cores = cpus()
  const gib = Math.round(totalmem() / 2 ** 30)
  return `${cores.length} cores (${cores[0]?.model.trim() ?? 'unknown'}), ${gib} GiB`
}

function print(text: string): void {
  process.stdout.write(text)
}

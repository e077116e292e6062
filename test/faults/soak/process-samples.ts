/**
 * Memory, open files and connections of every process of a stack, sampled while it runs, and
 * whether they stay flat. A killed process starts again, so growth is judged within the lives of
 * processes that are old enough. Connections are judged by those left after the load.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { childNames, runningPid } from '../support/stack-under-load/stack-children.ts'

export type Sample = {
  child: ChildName
  pid: number
  atMs: number
  megabytes: number
  /** Open files that are not connections. */
  files: number
  connections: number
}

export type Flatness = {
  child: ChildName
  lives: number
  /** Minutes of lives that are long enough to judge growth. */
  judgedMinutes: number
  megabytes: Held
  files: Held
}

type Held = {
  median: number
  most: number
  /** Growth within lives that are long enough, above the usual value early in the run. */
  perHour: number
  /** The upper quartile of the first third of the run, and of the last. */
  usualFirst: number
  usualLast: number
}

/** Heaps, caches and the ten minutes of message ids that NATS remembers fill at first. */
const warmMs = 10 * 60_000
/** Two samples closer than this differ by garbage and short-lived children. */
const apartMs = 5 * 60_000
/** Files of merges and queries are closed within seconds; a leaked one stays open. */
const burstMs = 2 * 60_000

/** Samples all processes every `everyMs`. @returns ends it and returns the samples */
export function sampleProcesses(running: TestStack, everyMs: number): () => Sample[] {
  const samples: Sample[] = []
  const timer = setInterval(() => samples.push(...takeSamples(running)), everyMs)
  return () => {
    clearInterval(timer)
    return samples
  }
}

/** A sample of every running process. */
export function takeSamples(running: TestStack): Sample[] {
  return childNames.flatMap((child) => {
    const pid = runningPid(running, child)
    const sample = pid === null ? null : readSample(child, pid)
    return sample === null ? [] : [sample]
  })
}

/**
 * PostgreSQL has one process per connection, which share its buffers, so only their private memory
 * is counted, over all of them.
 */
function readSample(child: ChildName, pid: number): Sample | null {
  try {
    const pids = child === 'postgres' ? [pid, ...childrenOf(pid)] : [pid]
    const field = child === 'postgres' ? 'RssAnon' : 'VmRSS'
    const bytes = pids.reduce((sum, one) => sum + readKib(one, field) * 1_024, 0)
    const open = pids.flatMap((one) => readTargets(`/proc/${one}/fd`))
    const connections = open.filter((target) => target.startsWith('socket:')).length
    const files = open.length - connections
    return { child, pid, atMs: Date.now(), megabytes: bytes / 1e6, files, connections }
  } catch {
    // The process, or one of its children, has just ended.
    return null
  }
}

/** The targets of the descriptors in a folder, without those closed meanwhile. */
const readTargets = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)]
    } catch {
      return []
    }
  })

function readKib(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
  if (kib === undefined) throw new Error(`process ${pid} has ended`)
  return Number(kib)
}

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)

/** The usage of each child, and its growth within the lives of its processes. */
export function toFlatness(samples: readonly Sample[]): Flatness[] {
  const begunMs = Math.min(...samples.map(({ atMs }) => atMs))
  const thirdMs = (Math.max(...samples.map(({ atMs }) => atMs)) - begunMs) / 3
  return childNames.map((child) => {
    const own = samples.filter((sample) => sample.child === child)
    const lives = [...Map.groupBy(own, (sample) => sample.pid).values()]
    const isWarm = (life: Sample[]) => (one: Sample) => one.atMs - life[0]!.atMs >= warmMs
    const warm = lives.map((life) => life.filter(isWarm(life)))
    const judgedMs = warm.reduce((sum, life) => sum + (life.length < 2 ? 0 : lastsMs(life)), 0)
    const describe = (
      pick: (sample: Sample) => number,
      reduce: (life: readonly Sample[]) => readonly Sample[],
    ): Held => {
      const kept = lives.flatMap(reduce)
      const first = kept.filter(({ atMs }) => atMs <= begunMs + thirdMs)
      const last = kept.filter(({ atMs }) => atMs >= begunMs + 2 * thirdMs)
      const usualFirst = quartile(first.map(pick))
      // Each outage leaves a backlog; its memory is growth only above the usual value before.
      const beyond = (sample: Sample) => Math.max(usualFirst, pick(sample))
      return {
        median: median(own.map(pick)),
        most: Math.max(...own.map(pick)),
        perHour: median(warm.flatMap((life) => slopesOf(reduce(life), beyond))) * 3_600_000,
        usualFirst,
        usualLast: quartile(last.map(pick)),
      }
    }
    return {
      child,
      lives: lives.length,
      judgedMinutes: judgedMs / 60_000,
      megabytes: describe(
        (sample) => sample.megabytes,
        (life) => life,
      ),
      files: describe((sample) => sample.files, betweenBursts),
    }
  })
}

/** The sample with the fewest open files from each two minutes of a life. */
function betweenBursts(life: readonly Sample[]): Sample[] {
  const windows = Map.groupBy(life, ({ atMs }) => Math.floor(atMs / burstMs))
  return [...windows.values()].map((own) => own.reduce((a, b) => (b.files < a.files ? b : a)))
}

const lastsMs = (life: readonly Sample[]) => life.at(-1)!.atMs - life[0]!.atMs

/** Slopes between pairs of samples; their median ignores single garbage collections. */
function slopesOf(life: readonly Sample[], pick: (sample: Sample) => number): number[] {
  const slopes: number[] = []
  for (const [at, first] of life.entries()) {
    for (const second of life.slice(at + 1)) {
      if (second.atMs - first.atMs < apartMs) continue
      slopes.push((pick(second) - pick(first)) / (second.atMs - first.atMs))
    }
  }
  return slopes
}

const median = (values: readonly number[]): number => percentile(values, 0.5)
const quartile = (values: readonly number[]): number => percentile(values, 0.75)

/** Fewer minutes do not allow an estimate of growth per hour. */
const judgedMinutesMin = 15
const filesPerHourMax = 12
/** Relative to the open files: a database opens files as its tables grow. */
const filesGrowthMax = 0.25
const megabytesPerHourMax = 60
const growthShareMax = 0.5

/**
 * Judges the growth within lives that were long enough, and the usual values early and late in the
 * run.
 * @returns what grew
 */
export function judgeFlatness(children: readonly Flatness[]): string[] {
  return children.flatMap(({ child, judgedMinutes, megabytes, files }) => {
    const grown: string[] = []
    const old = judgedMinutes >= judgedMinutesMin
    const most = Math.max(megabytesPerHourMax, megabytes.median * growthShareMax)
    if (old && megabytes.perHour > most) {
      grown.push(`the memory of ${child} grows by ${Math.round(megabytes.perHour)} MB an hour`)
    }
    if (old && files.perHour > Math.max(filesPerHourMax, files.median * filesGrowthMax)) {
      grown.push(`the open files of ${child} grow by ${Math.round(files.perHour)} an hour`)
    }
    if (rises(megabytes, megabytesPerHourMax)) {
      grown.push(`${child} held ${Math.round(megabytes.usualLast)} MB late in the run`)
    }
    if (rises(files, filesPerHourMax)) grown.push(`${child} held ${files.usualLast} files late`)
    return grown
  })
}

/** Above the minimum of the process early in the run, under load. */
const connectionsLeftMax = 12
const earlyMs = 5 * 60_000

/**
 * @param samples of the run
 * @param idle after the load, when unused connections have had time to close
 * @returns the processes that still have connections
 */
export function judgeConnections(samples: readonly Sample[], idle: readonly Sample[]): string[] {
  const begunMs = Math.min(...samples.map(({ atMs }) => atMs))
  return idle.flatMap(({ child, connections }) => {
    const early = samples.filter((one) => one.child === child && one.atMs <= begunMs + earlyMs)
    const least = Math.min(...early.map((one) => one.connections))
    if (connections <= least + connectionsLeftMax) return []
    return [`${child} holds ${connections} unused connections, and had ${least} early`]
  })
}

const rises = ({ usualFirst, usualLast }: Held, least: number): boolean =>
  usualLast > usualFirst + Math.max(least, usualFirst * growthShareMax)

/**
 * Memory, open files and connections of every process of a stack, sampled while it runs, and
 * whether they stay flat: judged over the lives of its processes, since one that was killed starts
 * anew, and only once a process has warmed up. Connections come and go with those at their other
 * end, so of these it is judged what is left once nobody uses them.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { childNames, runningPid } from '../support/stack-under-load/stack-children.ts'

export type Sample = {
  child: ChildName
  pid: number
  atMs: number
  megabytes: number
  /** Open files that are no connections. */
  files: number
  connections: number
}

export type Flatness = {
  child: ChildName
  lives: number
  /** Minutes of lives that are old enough to be judged by how they grow. */
  judgedMinutes: number
  megabytes: Held
  files: Held
}

type Held = {
  median: number
  most: number
  /** By how much the lives that are old enough grew, beyond what was usual early in the run. */
  perHour: number
  /**
   * What three quarters of the samples of the first third of the run stay below, and of the last,
   * whichever processes there were.
   */
  usualFirst: number
  usualLast: number
}

/** Heaps, caches and the ten minutes of message ids that NATS remembers fill at first. */
const warmMs = 10 * 60_000
/** Moments closer than this tell of garbage and children that come and go. */
const apartMs = 5 * 60_000
/**
 * What merges and questions open is closed within seconds; what nobody closes is there then, too.
 */
const burstMs = 2 * 60_000

/** Takes a sample of all every so often. @returns ends it and hands out the samples */
export function sampleParts(running: TestStack, everyMs: number): () => Sample[] {
  const samples: Sample[] = []
  const timer = setInterval(() => samples.push(...takeSamples(running)), everyMs)
  return () => {
    clearInterval(timer)
    return samples
  }
}

/** What every process that runs holds at the moment. */
export function takeSamples(running: TestStack): Sample[] {
  return childNames.flatMap((child) => {
    const pid = runningPid(running, child)
    const sample = pid === null ? null : readSample(child, pid)
    return sample === null ? [] : [sample]
  })
}

/**
 * PostgreSQL is a process for each connection and shares its buffers among them, so of these only
 * what is their own is counted, over all of them.
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
    // It, or one of its children, ended just now.
    return null
  }
}

/** What the descriptors in a folder stand for; those that were closed meanwhile are left out. */
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

/** What each child held, and by how much it grew within the lives of its processes. */
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
      // Each outage leaves a backlog, and a life steps up to what that takes: no growth until it
      // needs more than those before it did.
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

/** The samples of a life with the fewest open files in each two minutes. */
function betweenBursts(life: readonly Sample[]): Sample[] {
  const windows = Map.groupBy(life, ({ atMs }) => Math.floor(atMs / burstMs))
  return [...windows.values()].map((own) => own.reduce((a, b) => (b.files < a.files ? b : a)))
}

const lastsMs = (life: readonly Sample[]) => life.at(-1)!.atMs - life[0]!.atMs

/**
 * Between moments of a life: a collection of garbage here and there does not move their median.
 */
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

const median = (values: readonly number[]): number => ranked(values, 0.5)
const quartile = (values: readonly number[]): number => ranked(values, 0.75)

function ranked(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * rank)] ?? Number.NaN
}

/** Fewer minutes than these say nothing of an hour. */
const judgedMinutesMin = 15
const filesPerHourMax = 12
/** Of what is open anyway: a database opens files as its tables get more. */
const filesGrowthMax = 0.25
const megabytesPerHourMax = 60
const growthShareMax = 0.5

/**
 * Judged by how the lives grew that were old enough, and for those that were not by what the child
 * usually held early and late in the run.
 * @returns what grew in words
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

/** More than that beyond what a process had at its quietest, early and under load. */
const connectionsLeftMax = 12
const earlyMs = 5 * 60_000

/**
 * @param samples of the run
 * @param idle once the load had ended and what nobody used had time to close
 * @returns which processes still hold connections, in words
 */
export function judgeConnections(samples: readonly Sample[], idle: readonly Sample[]): string[] {
  const begunMs = Math.min(...samples.map(({ atMs }) => atMs))
  return idle.flatMap(({ child, connections }) => {
    const early = samples.filter((one) => one.child === child && one.atMs <= begunMs + earlyMs)
    const least = Math.min(...early.map((one) => one.connections))
    if (connections <= least + connectionsLeftMax) return []
    return [`${child} holds ${connections} connections that nobody uses, and had ${least} early`]
  })
}

const rises = ({ usualFirst, usualLast }: Held, least: number): boolean =>
  usualLast > usualFirst + Math.max(least, usualFirst * growthShareMax)

/**
 * Memory and open files of every process of a stack, sampled while it runs, and whether they stay
 * flat: judged over the lives of its processes, since one that was killed starts anew, and only
 * once a process has warmed up. Of open files what stays between bursts of connections is judged.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { PartName } from '../../deploy/local/state-files.ts'
import type { TestStack } from '../support/stack.ts'
import { partNames, runningPid } from './kills-parts.ts'

export type Sample = { part: PartName; pid: number; atMs: number; megabytes: number; files: number }

export type Flatness = {
  part: PartName
  lives: number
  /** Minutes of lives that are old enough to be judged by how they grow. */
  judgedMinutes: number
  megabytes: Held
  files: Held
}

type Held = {
  median: number
  most: number
  /** Of the lives that are old enough. */
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
/** Moments closer than this tell of garbage and parts that come and go. */
const apartMs = 5 * 60_000
/** Connections of a burst are closed within seconds; what nobody closes is still there then. */
const burstMs = 2 * 60_000

/** Takes a sample of all every so often. @returns ends it and hands out the samples */
export function sampleParts(running: TestStack, everyMs: number): () => Sample[] {
  const samples: Sample[] = []
  const take = () => {
    for (const part of partNames) {
      const pid = runningPid(running, part)
      const sample = pid === null ? null : readSample(part, pid)
      if (sample !== null) samples.push(sample)
    }
  }
  const timer = setInterval(take, everyMs)
  return () => {
    clearInterval(timer)
    return samples
  }
}

/**
 * PostgreSQL is a process for each connection and shares its buffers among them, so of these only
 * what is their own is counted, over all of them.
 */
function readSample(part: PartName, pid: number): Sample | null {
  try {
    const pids = part === 'postgres' ? [pid, ...childrenOf(pid)] : [pid]
    const field = part === 'postgres' ? 'RssAnon' : 'VmRSS'
    const bytes = pids.reduce((sum, one) => sum + readKib(one, field) * 1_024, 0)
    const files = pids.reduce((sum, one) => sum + readdirSync(`/proc/${one}/fd`).length, 0)
    return { part, pid, atMs: Date.now(), megabytes: bytes / 1e6, files }
  } catch {
    // It, or one of its children, ended just now.
    return null
  }
}

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

/** What each part held, and by how much it grew within the lives of its processes. */
export function toFlatness(samples: readonly Sample[]): Flatness[] {
  const begunMs = Math.min(...samples.map(({ atMs }) => atMs))
  const thirdMs = (Math.max(...samples.map(({ atMs }) => atMs)) - begunMs) / 3
  return partNames.map((part) => {
    const own = samples.filter((sample) => sample.part === part)
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
      return {
        median: median(own.map(pick)),
        most: Math.max(...own.map(pick)),
        perHour: median(warm.flatMap((life) => slopesOf(reduce(life), pick))) * 3_600_000,
        usualFirst: quartile(first.map(pick)),
        usualLast: quartile(last.map(pick)),
      }
    }
    return {
      ...{ part, lives: lives.length, judgedMinutes: judgedMs / 60_000 },
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

/** Between moments of a life: a collection of garbage here and there does not move their median. */
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
 * Judged by how the lives grew that were old enough, and for those that were not by what the part
 * usually held early and late in the run.
 * @returns what grew in words
 */
export function judgeFlatness(parts: readonly Flatness[]): string[] {
  return parts.flatMap(({ part, judgedMinutes, megabytes, files }) => {
    const grown: string[] = []
    const old = judgedMinutes >= judgedMinutesMin
    const most = Math.max(megabytesPerHourMax, megabytes.median * growthShareMax)
    if (old && megabytes.perHour > most) {
      grown.push(`the memory of ${part} grows by ${Math.round(megabytes.perHour)} MB an hour`)
    }
    if (old && files.perHour > Math.max(filesPerHourMax, files.median * filesGrowthMax)) {
      grown.push(`the open files of ${part} grow by ${Math.round(files.perHour)} an hour`)
    }
    if (rises(megabytes, megabytesPerHourMax)) {
      grown.push(`${part} held ${Math.round(megabytes.usualLast)} MB late in the run`)
    }
    if (rises(files, filesPerHourMax)) grown.push(`${part} held ${files.usualLast} files late`)
    return grown
  })
}

const rises = ({ usualFirst, usualLast }: Held, least: number): boolean =>
  usualLast > usualFirst + Math.max(least, usualFirst * growthShareMax)

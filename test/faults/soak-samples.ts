/**
 * Memory and open files of every process of a stack, sampled while it runs, and whether they stay
 * flat: judged over the lives of its processes, since one that was killed starts anew, and only
 * once a process has warmed up.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { PartName } from '../../deploy/local/state-files.ts'
import type { TestStack } from '../support/stack.ts'
import { partNames, runningPid } from './kills-parts.ts'

export type Sample = { part: PartName; pid: number; atMs: number; megabytes: number; files: number }

export type Flatness = {
  part: PartName
  lives: number
  /** Minutes of lives that are old enough to be judged. */
  judgedMinutes: number
  megabytes: { median: number; most: number; perHour: number }
  files: { median: number; most: number; perHour: number }
}

/** Heaps, caches and the ten minutes of message ids that NATS remembers fill at first. */
const warmMs = 3 * 60_000

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
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
}

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)

/** What each part held, and by how much it grew within the lives of its processes. */
export function toFlatness(samples: readonly Sample[]): Flatness[] {
  return partNames.map((part) => {
    const own = samples.filter((sample) => sample.part === part)
    const lives = [...Map.groupBy(own, (sample) => sample.pid).values()]
    const warm = lives.map((life) => life.filter(({ atMs }) => atMs - life[0]!.atMs >= warmMs))
    const judgedMs = warm.reduce((sum, life) => sum + (life.length < 2 ? 0 : lastsMs(life)), 0)
    const describe = (pick: (sample: Sample) => number) => ({
      median: median(own.map(pick)),
      most: Math.max(...own.map(pick)),
      perHour: median(warm.flatMap((life) => slopesOf(life, pick))) * 3_600_000,
    })
    return {
      ...{ part, lives: lives.length, judgedMinutes: judgedMs / 60_000 },
      megabytes: describe((sample) => sample.megabytes),
      files: describe((sample) => sample.files),
    }
  })
}

const lastsMs = (life: readonly Sample[]) => life.at(-1)!.atMs - life[0]!.atMs

/** Between any two moments of a life: a collection of garbage here and there does not move these. */
function slopesOf(life: readonly Sample[], pick: (sample: Sample) => number): number[] {
  const slopes: number[] = []
  for (const [at, first] of life.entries()) {
    for (const second of life.slice(at + 1)) {
      slopes.push((pick(second) - pick(first)) / (second.atMs - first.atMs))
    }
  }
  return slopes
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

/** Fewer minutes than these say nothing of an hour. */
const judgedMinutesMin = 10
const filesPerHourMax = 12
const megabytesPerHourMax = 60
const growthShareMax = 0.5

/** @returns what grew in words; of a part that could not be judged, nothing */
export function judgeFlatness(parts: readonly Flatness[]): string[] {
  return parts
    .filter(({ judgedMinutes }) => judgedMinutes >= judgedMinutesMin)
    .flatMap(({ part, megabytes, files }) => {
      const grown: string[] = []
      const most = Math.max(megabytesPerHourMax, megabytes.median * growthShareMax)
      if (megabytes.perHour > most) {
        grown.push(`the memory of ${part} grows by ${Math.round(megabytes.perHour)} MB an hour`)
      }
      if (files.perHour > filesPerHourMax) {
        grown.push(`the open files of ${part} grow by ${Math.round(files.perHour)} an hour`)
      }
      return grown
    })
}

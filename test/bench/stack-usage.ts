/**
 * The resource usage of each process of a local stack: CPU between two moments, memory every few
 * seconds, and the scorer's own metrics of a batch's stages.
 */
import type { TestStack } from '../support/process/stack.ts'
import { readCpuSeconds, readMemoryMb, readPssMb } from './measured-process.ts'

export type Usage = Record<string, number>

/** CPU seconds so far by process: all parts of the stack, and `stack`, which runs them. */
export function readCpu({ stack, pid }: TestStack): Usage {
  const usage: Usage = {}
  for (const [name, part] of Object.entries(stack.pids)) {
    // Each of Postgres' connections is a process.
    usage[name] = readCpuSeconds(part, name === 'postgres')
  }
  usage.stack = readCpuSeconds(pid)
  return usage
}

/** Memory in MB of each of these processes: its own, and its share of what several use. */
export function readPss({ stack, pid }: TestStack): Usage {
  const usage: Usage = {}
  for (const [name, part] of Object.entries(stack.pids)) {
    usage[name] = readPssMb(part, name === 'postgres')
  }
  usage.stack = readPssMb(pid)
  return usage
}

export type MemorySample = { atSeconds: number; megabytes: Usage }

/** Samples the resident memory of every part of the stack until it is stopped. */
export function sampleMemory(test: TestStack, everyMs = 10_000): () => MemorySample[] {
  const samples: MemorySample[] = []
  const startMs = performance.now()
  const { pids } = test.stack
  const sample = () => {
    const megabytes = Object.fromEntries(
      Object.entries(pids).map(([name, pid]) => [name, readMemoryMb(pid).now]),
    )
    samples.push({ atSeconds: (performance.now() - startMs) / 1_000, megabytes })
  }
  const timer = setInterval(sample, everyMs)
  return () => {
    clearInterval(timer)
    sample()
    return samples
  }
}

/**
 * The growth of memory in MB per minute: the median of the slopes between any two samples, which
 * single garbage collections do not change.
 */
export function toSlope(samples: readonly MemorySample[], name: string): number {
  const slopes: number[] = []
  for (const [index, first] of samples.entries()) {
    for (const second of samples.slice(index + 1)) {
      const minutes = (second.atSeconds - first.atSeconds) / 60
      slopes.push((second.megabytes[name]! - first.megabytes[name]!) / minutes)
    }
  }
  slopes.sort((a, b) => a - b)
  return slopes[slopes.length >> 1] ?? 0
}

/** Sums and counts of every histogram of a process, by name and labels. */
export type Sums = Map<string, { sum: number; count: number }>

/** @param url of a service's internal listener */
export async function readSums(url: string): Promise<Sums> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const sums: Sums = new Map()
  for (const [, name, labels, value] of text.matchAll(
    /^(\w+)_sum(?:\{([^}]*)\})? ([\d.e+-]+)$/gm,
  )) {
    sums.set(`${name} ${labels ?? ''}`, { sum: Number(value), count: 0 })
  }
  for (const [, name, labels, value] of text.matchAll(
    /^(\w+)_count(?:\{([^}]*)\})? ([\d.e+-]+)$/gm,
  )) {
    const one = sums.get(`${name} ${labels ?? ''}`)
    if (one !== undefined) one.count = Number(value)
  }
  return sums
}

/** The difference of two readings: mean and number of the matching series. */
export function toMeans(
  before: Sums,
  after: Sums,
  pattern: RegExp,
): { key: string; mean: number; count: number }[] {
  return [...after]
    .filter(([key]) => pattern.test(key))
    .map(([key, { sum, count }]) => {
      const earlier = before.get(key) ?? { sum: 0, count: 0 }
      const more = count - earlier.count
      return { key, count: more, mean: more === 0 ? 0 : (sum - earlier.sum) / more }
    })
    .filter(({ count }) => count > 0)
}

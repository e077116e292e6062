/**
 * Counts signal flips: how often a signal of one device changed between detected and clean. A
 * device that is rooted in one session and clean in the next hides something in one of them. Counts
 * are as of an event's stream offset, so later events and repetitions do not change them.
 */
import { type SignalBits, watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { countUpTo, type Moment } from './windowed-counts.ts'

/** One stored event of the device. It may be stored several times. */
export type FlipObservation = SignalBits &
  Moment & {
    /** Identifies the event: equal for a redelivery and for a client's retry of the same bytes. */
    event: string
  }

/** The most flips of any one signal, and which signal that is; null when none flipped. */
export type FlipCount = { flips: number; signal: string | null }

/**
 * Counts flips in the window of each event: among the device's observations up to its stream
 * offset, received less than `windowMs` before it. An observation that did not measure a signal is
 * skipped for that signal. An event that is stored several times counts at its first place in the
 * window.
 *
 * Times need not rise with stream offsets, because each edge has its own clock. So the observations
 * of a window are no range of stream offsets. A segment tree over all offsets holds those in the
 * window, for one signal after the other, and observations are removed in the order of their time.
 * @param observations in any order, repetitions allowed
 * @param events the events to count for
 * @returns one count for each event, in their order; of equal counts the signal listed first
 */
export function countSignalFlips(
  observations: readonly FlipObservation[],
  events: readonly Moment[],
  windowMs: number,
): FlipCount[] {
  const counts: FlipCount[] = events.map(() => ({ flips: 0, signal: null }))
  const plan = planSweep(observations, events, windowMs)
  const contested = findContested(plan.sorted)
  const tree = createFlipTree(plan.sorted.length)
  for (const bit of contested) {
    const signal = watchedSignals[bit] ?? null
    sweep(plan, bit, tree, (index, flips) => {
      const count = counts[index]!
      if (flips <= count.flips) return
      count.flips = flips
      count.signal = signal
    })
  }
  return counts
}

/** Bits that are detected in some observation and clean in another: only those can have flipped. */
function findContested(observations: readonly SignalBits[]): number[] {
  const detected = [0, 0]
  const clean = [0, 0]
  for (const one of observations) {
    for (const half of [0, 1] as const) {
      detected[half]! |= one.detected[half]
      clean[half]! |= one.clean[half]
    }
  }
  const both = [detected[0]! & clean[0]!, detected[1]! & clean[1]!]
  const bits = watchedSignals.map((_, bit) => bit)
  return bits.filter((bit) => (both[bit >> 5]! & (1 << (bit & 31))) !== 0)
}

type Plan = {
  /** By stream offset. */
  sorted: FlipObservation[]
  /** For each, the index of the next one of the same event; -1 for the last. */
  next: Int32Array
  /** 1 for the first observation of its event. */
  first: Uint8Array
  /** Indexes by time: the order in which they leave the window. */
  leaving: number[]
  /** Windows by their start; the first `prefix` observations are not after the event. */
  queries: { index: number; afterMs: number; prefix: number }[]
}

function planSweep(
  observations: readonly FlipObservation[],
  events: readonly Moment[],
  windowMs: number,
): Plan {
  let earliestMs = Number.POSITIVE_INFINITY
  for (const { atMs } of events) earliestMs = Math.min(earliestMs, atMs - windowMs)
  const sorted = observations
    .filter((one) => one.atMs > earliestMs)
    .sort((a, b) => a.streamOffset - b.streamOffset || a.atMs - b.atMs)
  const next = new Int32Array(sorted.length).fill(-1)
  const first = new Uint8Array(sorted.length)
  const last = new Map<string, number>()
  sorted.forEach(({ event }, index) => {
    const before = last.get(event)
    if (before === undefined) first[index] = 1
    else next[before] = index
    last.set(event, index)
  })
  const leaving = sorted.map((_, index) => index).sort((a, b) => sorted[a]!.atMs - sorted[b]!.atMs)
  const queries = events
    .map(({ streamOffset, atMs }, index) => {
      return { index, afterMs: atMs - windowMs, prefix: countUpTo(sorted, streamOffset) }
    })
    .sort((a, b) => a.afterMs - b.afterMs)
  return { sorted, next, first, leaving, queries }
}

/** Counts the flips of one signal in every window. */
function sweep(
  plan: Plan,
  bit: number,
  tree: FlipTree,
  report: (index: number, flips: number) => void,
): void {
  const { sorted, next, leaving } = plan
  const half = bit < 32 ? 0 : 1
  const mask = 1 << (bit & 31)
  const leafAt = (index: number): number => {
    const one = sorted[index]!
    if ((one.detected[half] & mask) !== 0) return detectedLeaf
    return (one.clean[half] & mask) !== 0 ? cleanLeaf : noRun
  }
  const present = Uint8Array.from(plan.first)
  tree.fill((index) => (present[index] === 1 ? leafAt(index) : noRun))
  let left = 0
  for (const { index, afterMs, prefix } of plan.queries) {
    for (; left < leaving.length && sorted[leaving[left]!]!.atMs <= afterMs; left++) {
      const gone = leaving[left]!
      if (present[gone] === 0) continue
      present[gone] = 0
      tree.set(gone, noRun)
      let successor = next[gone]!
      while (successor !== -1 && sorted[successor]!.atMs <= afterMs) successor = next[successor]!
      if (successor === -1) continue
      present[successor] = 1
      tree.set(successor, leafAt(successor))
    }
    report(index, tree.countFlips(prefix))
  }
}

// A run of observations as one number: the first value in bits 2 and 3, the last in bits 0 and 1,
// the flips above. One number per node makes the tree twice as fast as three arrays.
const noRun = 0
const detectedLeaf = 0b0101
const cleanLeaf = 0b1010

function join(left: number, right: number): number {
  if (left === noRun) return right
  if (right === noRun) return left
  const flip = (left & 0b0011) === (right & 0b1100) >> 2 ? 0 : 0b10000
  return (left & ~0b0011) + (right & ~0b1100) + flip
}

type FlipTree = {
  /** Sets every place. */
  fill: (leafAt: (index: number) => number) => void
  set: (index: number, leaf: number) => void
  /** Flips among the first `prefix` places. */
  countFlips: (prefix: number) => number
}

/** A segment tree over places: each node is the run of everything below it. */
function createFlipTree(length: number): FlipTree {
  let size = 1
  while (size < length) size *= 2
  const runs = new Int32Array(2 * size)
  return {
    fill: (leafAt) => {
      for (let index = 0; index < length; index++) runs[size + index] = leafAt(index)
      for (let node = size - 1; node >= 1; node--) {
        runs[node] = join(runs[2 * node]!, runs[2 * node + 1]!)
      }
    },
    set: (index, leaf) => {
      let node = size + index
      if (runs[node] === leaf) return
      runs[node] = leaf
      for (node >>= 1; node >= 1; node >>= 1) {
        runs[node] = join(runs[2 * node]!, runs[2 * node + 1]!)
      }
    },
    countFlips: (prefix) => {
      if (prefix >= size) return runs[1]! >> 4
      let run = noRun
      let node = 1
      // Descends to the first excluded place and joins every subtree to the left of the path.
      for (let rest = prefix, half = size >> 1; half >= 1; half >>= 1) {
        node *= 2
        if (rest < half) continue
        run = join(run, runs[node]!)
        node++
        rest -= half
      }
      return run >> 4
    },
  }
}

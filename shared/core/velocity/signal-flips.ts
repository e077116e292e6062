/**
 * How often a signal of one device went from detected to clean or back: a device that is rooted in
 * one session and spotless in the next hides something in one of them. Watched are the boolean
 * signals graded high or critical, each as one bit of two 64-bit words, so that ClickHouse can keep
 * them beside every event. Counts are as of an event's place in the stream, so neither what comes
 * later nor what comes twice changes them.
 */
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'

/**
 * The watched signals; a signal's bit is its index. Stored bits mean what this list said when they
 * were written: it only ever grows at its end, to at most 64, and a signal that is no longer known
 * keeps its place.
 */
export const watchedSignals: readonly string[] = [
  'root.su_binary',
  'root.root_management_app',
  'root.magisk_detected',
  'root.kernelsu_detected',
  'root.apatch_detected',
  'root.zygisk_detected',
  'root.root_hiding',
  'root.rw_system_paths',
  'root.selinux_permissive',
  'root.adb_root',
  'root.jailbroken',
  'root.jb_files_openable',
  'root.jb_restricted_writable',
  'root.jb_fork_allowed',
  'root.jb_symlinks',
  'root.jb_dylib_injected',
  'emulator.is_emulator',
  'emulator.is_simulator',
  'emulator.emulator_packages',
  'emulator.emulator_sensors',
  'emulator.cloud_phone',
  'emulator.device_farm_suspected',
  'debugger.debugger_attached',
  'debugger.ptrace_detected',
  'debugger.frida_detected',
  'debugger.frida_maps',
  'debugger.frida_dbus_reply',
  'debugger.xposed_detected',
  'debugger.native_hooks',
  'debugger.memdisk_mismatch',
  'debugger.symbol_or_runtime_hook',
  'debugger.breakpoint_detected',
  'debugger.watchpoint_detected',
  'debugger.memory_scanned',
  'debugger.automation_detected',
  'debugger.callback_suppressed',
  'tamper.signature_mismatch',
  'tamper.package_name_mismatch',
  'tamper.bundle_id_mismatch',
  'tamper.code_integrity_failed',
  'tamper.library_injected',
  'tamper.device_info_spoofed',
  'tamper.attestation_nonce_mismatch',
  'tamper.attestation_failed',
  'tamper.app_attest_valid',
  'ecosystem.malware_detected',
  'ecosystem.remote_control_active',
  'ecosystem.location_spoofed',
  'ecosystem.camera_hijack',
  'ecosystem.virtual_camera',
  'network.mitm_detected',
  'network.pinning_failed',
  'network.ssl_downgrade',
  'network.forged_request',
]

/** Signals whose bad value is false. */
export const detectedWhenFalse: ReadonlySet<string> = new Set(['tamper.app_attest_valid'])

/** 64 bits as two unsigned halves of 32: bits 0..31, then 32..63. */
export type BitHalves = readonly [low: number, high: number]
/** A signal that was not measured is in neither word. */
export type SignalBits = { detected: BitHalves; clean: BitHalves }

type Watched = { name: string; half: 0 | 1; mask: number; detectedValue: boolean }

const watchedOf = categories.map((category) => ({ category, signals: toWatched(category) }))

function toWatched(category: Category): Watched[] {
  return watchedSignals.flatMap((path, bit) => {
    const [owner, name] = path.split('.')
    if (owner !== category) return []
    const detectedValue = !detectedWhenFalse.has(path)
    return [{ name: name!, half: bit < 32 ? 0 : 1, mask: 1 << (bit & 31), detectedValue }]
  })
}

/**
 * Which watched signals an event found detected, and which clean. It looks for each watched signal
 * rather than at each that was sent, so thousands of keys cost no more than a few.
 */
export function toSignalBits(signals: Signals): SignalBits {
  let detectedLow = 0
  let detectedHigh = 0
  let cleanLow = 0
  let cleanHigh = 0
  for (const { category, signals: watched } of watchedOf) {
    const sent = signals[category] as Signals[Category] | undefined
    if (sent === undefined) continue
    for (const { name, half, mask, detectedValue } of watched) {
      const value = sent[name]
      if (typeof value !== 'boolean') continue
      if (value === detectedValue) {
        if (half === 0) detectedLow |= mask
        else detectedHigh |= mask
      } else if (half === 0) cleanLow |= mask
      else cleanHigh |= mask
    }
  }
  return {
    detected: [detectedLow >>> 0, detectedHigh >>> 0],
    clean: [cleanLow >>> 0, cleanHigh >>> 0],
  }
}

/** One event of the device, wherever and however often it was stored. */
export type FlipSighting = SignalBits & {
  /** Tells events apart: the same in a redelivered event and in a client's retry of its bytes. */
  event: string
  /** Its place in the stream. */
  streamOffset: number
  /** When it was received, in ms since 1970. */
  atMs: number
}

/** The most flips of any one signal, and which signal that is; null when none flipped. */
export type FlipCount = { flips: number; signal: string | null }

/**
 * Counts flips in the window of each asked event: among the device's sightings up to its stream
 * offset, received less than `windowMs` before it. An event that did not measure a signal is passed
 * over for it; an event that is there several times counts where it first stands in the window.
 *
 * Times need not rise with stream offsets, since edges have clocks of their own. So what a window
 * takes in is no range of stream offsets: a tree over all of them answers for any selection, one
 * signal after the other, while sightings leave it in the order of their time.
 * @param sightings in any order, repetitions allowed; what is outside every window changes nothing
 * @returns one count for each asked event, in their order; of equal ones the signal listed first
 */
export function countSignalFlips(
  sightings: readonly FlipSighting[],
  asked: readonly { streamOffset: number; atMs: number }[],
  windowMs: number,
): FlipCount[] {
  const counts: FlipCount[] = asked.map(() => ({ flips: 0, signal: null }))
  const plan = planSweep(sightings, asked, windowMs)
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

/** Bits that some sighting has detected and another has clean: only those can have flipped. */
function findContested(sightings: readonly SignalBits[]): number[] {
  const detected = [0, 0]
  const clean = [0, 0]
  for (const one of sightings) {
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
  sorted: FlipSighting[]
  /** Of each, the next one of the same event, -1 when it is the last. */
  next: Int32Array
  /** Those that begin as the first of their event. */
  first: Uint8Array
  /** Indexes by time: the order in which they leave. */
  leaving: number[]
  /** By the beginning of their windows; `prefix` sightings are not after the asked event. */
  questions: { index: number; afterMs: number; prefix: number }[]
}

function planSweep(
  sightings: readonly FlipSighting[],
  asked: readonly { streamOffset: number; atMs: number }[],
  windowMs: number,
): Plan {
  let earliestMs = Number.POSITIVE_INFINITY
  for (const { atMs } of asked) earliestMs = Math.min(earliestMs, atMs - windowMs)
  const sorted = sightings
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
  const questions = asked
    .map(({ streamOffset, atMs }, index) => {
      return { index, afterMs: atMs - windowMs, prefix: countUpTo(sorted, streamOffset) }
    })
    .sort((a, b) => a.afterMs - b.afterMs)
  return { sorted, next, first, leaving, questions }
}

function countUpTo(sorted: readonly FlipSighting[], streamOffset: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]!.streamOffset <= streamOffset) low = middle + 1
    else high = middle
  }
  return low
}

/** Answers every question for one signal. */
function sweep(
  plan: Plan,
  bit: number,
  tree: FlipTree,
  answer: (index: number, flips: number) => void,
): void {
  const { sorted, next, leaving } = plan
  const half = bit < 32 ? 0 : 1
  const mask = 1 << (bit & 31)
  const leafAt = (index: number): number => {
    const one = sorted[index]!
    if ((one.detected[half] & mask) !== 0) return detectedLeaf
    return (one.clean[half] & mask) !== 0 ? cleanLeaf : nothing
  }
  const present = Uint8Array.from(plan.first)
  tree.fill((index) => (present[index] === 1 ? leafAt(index) : nothing))
  let left = 0
  for (const { index, afterMs, prefix } of plan.questions) {
    for (; left < leaving.length && sorted[leaving[left]!]!.atMs <= afterMs; left++) {
      const gone = leaving[left]!
      if (present[gone] === 0) continue
      present[gone] = 0
      tree.set(gone, nothing)
      let heir = next[gone]!
      while (heir !== -1 && sorted[heir]!.atMs <= afterMs) heir = next[heir]!
      if (heir === -1) continue
      present[heir] = 1
      tree.set(heir, leafAt(heir))
    }
    answer(index, tree.countFlips(prefix))
  }
}

// A run of sightings as one number: the first value in bits 2 and 3, the last in bits 0 and 1, the
// flips above. One number makes the tree twice as fast as three arrays.
const nothing = 0
const detectedLeaf = 0b0101
const cleanLeaf = 0b1010

function join(left: number, right: number): number {
  if (left === nothing) return right
  if (right === nothing) return left
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

/** A binary tree over places, each node the run of all that is below it. */
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
      let run = nothing
      let node = 1
      // Goes down to the first place that is left out, and takes along what is left of the way.
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

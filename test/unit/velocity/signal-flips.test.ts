// Flips of signals: the list of watched signals never changes but at its end, bits keep the three
// states of a signal apart, and counts are those of the definition for any order and repetition.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import {
  countSignalFlips,
  type FlipCount,
  type FlipSighting,
  toSignalBits,
  watchedSignals,
} from '#shared/core/velocity/signal-flips.ts'
import { seed } from '../../support/process/seed.ts'

const none: Signals = {
  root: {},
  emulator: {},
  debugger: {},
  tamper: {},
  ecosystem: {},
  network: {},
}
const bitOf = (path: string) => watchedSignals.indexOf(path)

/** The paths that a pair of halves has. */
function pathsOf(halves: readonly [number, number]): string[] {
  const word = BigInt(halves[0]) | (BigInt(halves[1]) << 32n)
  return watchedSignals.filter((_, bit) => ((word >> BigInt(bit)) & 1n) === 1n)
}

describe('the watched signals', () => {
  it('keep their bits: the list changes at its end only', () => {
    // Stored bits mean what the list said when they were written. Add lines, never change one.
    const frozen = `
      root.su_binary root.root_management_app root.magisk_detected root.kernelsu_detected
      root.apatch_detected root.zygisk_detected root.root_hiding root.rw_system_paths
      root.selinux_permissive root.adb_root root.jailbroken root.jb_files_openable
      root.jb_restricted_writable root.jb_fork_allowed root.jb_symlinks root.jb_dylib_injected
      emulator.is_emulator emulator.is_simulator emulator.emulator_packages
      emulator.emulator_sensors emulator.cloud_phone emulator.device_farm_suspected
      debugger.debugger_attached debugger.ptrace_detected debugger.frida_detected
      debugger.frida_maps debugger.frida_dbus_reply debugger.xposed_detected
      debugger.native_hooks debugger.memdisk_mismatch debugger.symbol_or_runtime_hook
      debugger.breakpoint_detected debugger.watchpoint_detected debugger.memory_scanned
      debugger.automation_detected debugger.callback_suppressed tamper.signature_mismatch
      tamper.package_name_mismatch tamper.bundle_id_mismatch tamper.code_integrity_failed
      tamper.library_injected tamper.device_info_spoofed tamper.attestation_nonce_mismatch
      tamper.attestation_failed tamper.app_attest_valid ecosystem.malware_detected
      ecosystem.remote_control_active ecosystem.location_spoofed ecosystem.camera_hijack
      ecosystem.virtual_camera network.mitm_detected network.pinning_failed
      network.ssl_downgrade network.forged_request`
    const paths = frozen.trim().split(/\s+/)
    expect(paths).toHaveLength(54)
    expect(watchedSignals.slice(0, paths.length)).toEqual(paths)
    expect(new Set(watchedSignals).size).toBe(watchedSignals.length)
    expect(watchedSignals.length).toBeLessThanOrEqual(64)
  })

  it('are every boolean of the catalog that is graded high or critical', () => {
    const grave = categories.flatMap((category) =>
      Object.entries(signalCatalog[category])
        .filter(([, { type, grade }]) => type === 'boolean' && /^(high|critical)$/.test(grade))
        .map(([name]) => `${category}.${name}`),
    )
    for (const path of grave) expect(watchedSignals).toContain(path)
  })
})

describe('the bits of an event', () => {
  it('tell detected from clean from not measured', () => {
    const { detected, clean } = toSignalBits({
      ...none,
      root: { su_binary: true, jailbroken: false, magisk_detected: null, busybox_binary: true },
      network: { forged_request: true, ssl_downgrade: false, unknown: true },
    })
    expect(pathsOf([...detected])).toEqual(['root.su_binary', 'network.forged_request'])
    expect(pathsOf([...clean])).toEqual(['root.jailbroken', 'network.ssl_downgrade'])
  })

  it('turn around for a signal whose bad value is false', () => {
    const valid = toSignalBits({ ...none, tamper: { app_attest_valid: true } })
    const invalid = toSignalBits({ ...none, tamper: { app_attest_valid: false } })
    expect(pathsOf([...valid.clean])).toEqual(['tamper.app_attest_valid'])
    expect(pathsOf([...invalid.detected])).toEqual(['tamper.app_attest_valid'])
    expect([valid.detected, invalid.clean]).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  it('are unsigned halves, one bit for one signal', () => {
    for (const [bit, path] of watchedSignals.entries()) {
      const [category, name] = path.split('.') as [keyof Signals, string]
      const reversed = path === 'tamper.app_attest_valid'
      const { detected, clean } = toSignalBits({ ...none, [category]: { [name]: !reversed } })
      expect(clean).toEqual([0, 0])
      expect(detected).toEqual(bit < 32 ? [2 ** bit, 0] : [0, 2 ** (bit - 32)])
    }
  })

  it('are none for signals that are no signals', () => {
    const nothing = { detected: [0, 0], clean: [0, 0] }
    expect(toSignalBits(none)).toEqual(nothing)
    expect(toSignalBits('text' as unknown as Signals)).toEqual(nothing)
    const root = { su_binary: 'true', jailbroken: 1, root_hiding: [true] }
    expect(toSignalBits({ ...none, root })).toEqual(nothing)
  })
})

const dayMs = 86_400_000

/** Sightings from marks: `D` detected, `C` clean, `-` not measured, one a second. */
function ofMarks(marks: string, path = 'debugger.frida_detected'): FlipSighting[] {
  const bit = bitOf(path)
  const set: [number, number] = bit < 32 ? [(1 << bit) >>> 0, 0] : [0, (1 << (bit - 32)) >>> 0]
  return [...marks].map((mark, index) => ({
    event: `e-${index}`,
    streamOffset: index + 1,
    atMs: index * 1000,
    detected: mark === 'D' ? set : [0, 0],
    clean: mark === 'C' ? set : [0, 0],
  }))
}

describe('flips', () => {
  const last = (sightings: readonly FlipSighting[]) => ({
    streamOffset: Math.max(...sightings.map((one) => one.streamOffset)),
    atMs: Math.max(...sightings.map((one) => one.atMs)),
  })
  const countAtEnd = (sightings: readonly FlipSighting[], windowMs = dayMs) =>
    countSignalFlips(sightings, [last(sightings)], windowMs)[0]!

  it.each([
    ['D', 0],
    ['DDDD', 0],
    ['DC', 1],
    ['CD', 1],
    ['DCDC', 3],
    ['DDCCDD', 2],
    ['D-D', 0],
    ['-D-', 0],
    ['D--C', 1],
    ['C-D-C', 2],
  ])('of %s are %d', (marks, flips) => {
    const signal = flips === 0 ? null : 'debugger.frida_detected'
    expect(countAtEnd(ofMarks(marks))).toEqual({ flips, signal })
  })

  it('are as of the event: what comes later in the stream does not count', () => {
    const sightings = ofMarks('DCDCD')
    const counts = countSignalFlips(sightings, sightings, dayMs).map((one) => one.flips)
    expect(counts).toEqual([0, 1, 2, 3, 4])
  })

  it('need both ends in the window', () => {
    const sightings = ofMarks('DC')
    expect(countAtEnd(sightings, 1000).flips).toBe(0)
    expect(countAtEnd(sightings, 1001).flips).toBe(1)
  })

  it('are those of one signal, never the sum, and it is named', () => {
    const one = ofMarks('DCDC', 'root.su_binary')
    const more = ofMarks('CDCDC', 'network.forged_request').map((sighting) => ({
      ...sighting,
      event: `more-${sighting.event}`,
      streamOffset: sighting.streamOffset + 0.5,
    }))
    const both = [...one, ...more]
    expect(countAtEnd(both)).toEqual({ flips: 4, signal: 'network.forged_request' })
    const equal = [...one, ...more.slice(0, 4)]
    expect(countAtEnd(equal)).toEqual({ flips: 3, signal: 'root.su_binary' })
  })

  it('are not changed by a redelivery, nor by a retry of an earlier event', () => {
    const sightings = ofMarks('DC')
    const retry = { ...sightings[0]!, streamOffset: 3, atMs: 2000 }
    const asked = [{ streamOffset: 9, atMs: 2000 }]
    for (const known of [sightings, [...sightings, ...sightings], [...sightings, retry, retry]]) {
      expect(countSignalFlips(known, asked, dayMs)[0]!.flips).toBe(1)
    }
  })

  it('take a retry for the event itself where the window has left the first one behind', () => {
    const sightings = ofMarks('DC')
    const retry = { ...sightings[0]!, streamOffset: 3, atMs: 2000 }
    const asked = [{ streamOffset: 3, atMs: 2000 }]
    expect(countSignalFlips([...sightings, retry], asked, 1500)[0]!.flips).toBe(1)
    expect(countSignalFlips([sightings[1]!, retry], asked, 1500)[0]!.flips).toBe(1)
  })

  it('of nothing are none', () => {
    expect(countSignalFlips([], [{ streamOffset: 1, atMs: 1 }], dayMs)).toEqual([
      { flips: 0, signal: null },
    ])
    expect(countSignalFlips(ofMarks('DC'), [], dayMs)).toEqual([])
  })

  it('are those of a plain model, for any places, times, bits and repetitions', () => {
    process.stdout.write(`flips seed ${seed}\n`)
    const event = fc.record({
      detected: fc.integer({ min: 0, max: 15 }),
      clean: fc.integer({ min: 0, max: 15 }),
      places: fc.array(
        fc.record({
          streamOffset: fc.integer({ min: 1, max: 400 }),
          atMs: fc.integer({ min: 0, max: 60 }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    })
    const device = fc.array(event, { maxLength: 24 }).map((events) => {
      const taken = new Map<number, string>()
      return events.flatMap(({ detected, clean, places }, index) =>
        places
          // A place in the stream is that of one event, received at one time.
          .filter(
            ({ streamOffset }) => !taken.has(streamOffset) && taken.set(streamOffset, `${index}`),
          )
          .map(({ streamOffset, atMs }) => ({
            event: `e-${index}`,
            streamOffset,
            atMs,
            detected: toHalves(detected),
            clean: toHalves(clean & ~detected),
          })),
      )
    })
    const asked = fc.array(
      fc.record({
        streamOffset: fc.integer({ min: 0, max: 401 }),
        atMs: fc.integer({ min: 0, max: 70 }),
      }),
      { maxLength: 12 },
    )
    let found = 0
    fc.assert(
      fc.property(device, asked, fc.integer({ min: 1, max: 80 }), (known, questions, windowMs) => {
        const repeated = [...known, ...known.slice(0, 5)].reverse()
        const counts = countSignalFlips(repeated, questions, windowMs)
        const expected = questions.map((one) => modelFlips(known, one, windowMs))
        expect(counts).toEqual(expected)
        found = Math.max(found, ...counts.map((one) => one.flips))
      }),
      { seed, numRuns: 1500 },
    )
    expect(found).toBeGreaterThan(3)
  })

  it('of a flooding device are counted in time', () => {
    const sightings: FlipSighting[] = Array.from({ length: 20_000 }, (_, index) => {
      const on = index % 2 === 0
      return {
        event: `e-${index}`,
        streamOffset: index,
        atMs: index * 4 + (index % 7) * 3,
        detected: on ? [0xffffffff, 0x3fffff] : [0, 0],
        clean: on ? [0, 0] : [0xffffffff, 0x3fffff],
      }
    })
    const startedMs = performance.now()
    const counts = countSignalFlips(sightings, sightings.slice(-2000), 60_000)
    // Every signal flips with every event; one that flips usually is one alone.
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    expect(counts.every((one) => one.flips > 10_000)).toBe(true)
  })
})

/** Bits 0, 1 and 32, 33 of the words: two in each half. */
const toHalves = (bits: number): [number, number] => [bits & 3, bits >> 2]

function modelFlips(
  known: readonly FlipSighting[],
  asked: { streamOffset: number; atMs: number },
  windowMs: number,
): FlipCount {
  const events = new Set<string>()
  const seen = known
    .filter((one) => one.streamOffset <= asked.streamOffset && one.atMs > asked.atMs - windowMs)
    .sort((a, b) => a.streamOffset - b.streamOffset)
    .filter((one) => !events.has(one.event) && events.add(one.event))
  let best: FlipCount = { flips: 0, signal: null }
  watchedSignals.forEach((signal, bit) => {
    const has = ([low, high]: readonly [number, number]) =>
      ((bit < 32 ? low : high) & (1 << (bit & 31))) !== 0
    const values = seen.flatMap((one) => (has(one.detected) ? 'D' : has(one.clean) ? 'C' : []))
    const flips = values.filter((value, index) => index > 0 && value !== values[index - 1]).length
    if (flips > best.flips) best = { flips, signal }
  })
  return best
}

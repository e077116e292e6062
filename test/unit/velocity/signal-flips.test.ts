// Signal flips: counts match the definition for any order and repetition of observations.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { countSignalFlips, type FlipObservation } from '#shared/core/velocity/signal-flips.ts'
import { seed } from '../../support/process/seed.ts'
import { countFlipsByDefinition } from '../../support/velocity/signal-flips-model.ts'

const bitOf = (path: string) => watchedSignals.indexOf(path)

const dayMs = 86_400_000

/** Observations from marks: `D` detected, `C` clean, `-` not measured, one a second. */
function ofMarks(marks: string, path = 'debugger.frida_detected'): FlipObservation[] {
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
  const last = (observations: readonly FlipObservation[]) => ({
    streamOffset: Math.max(...observations.map((one) => one.streamOffset)),
    atMs: Math.max(...observations.map((one) => one.atMs)),
  })
  const countAtEnd = (observations: readonly FlipObservation[], windowMs = dayMs) =>
    countSignalFlips(observations, [last(observations)], windowMs)[0]!

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

  it('equal those of the reference model, for any offsets, times, bits and repetitions', () => {
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
          // A stream offset belongs to one event, received at one time.
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
    const queries = fc.array(
      fc.record({
        streamOffset: fc.integer({ min: 0, max: 401 }),
        atMs: fc.integer({ min: 0, max: 70 }),
      }),
      { maxLength: 12 },
    )
    let found = 0
    fc.assert(
      fc.property(device, queries, fc.integer({ min: 1, max: 80 }), (known, events, windowMs) => {
        const repeated = [...known, ...known.slice(0, 5)].reverse()
        const counts = countSignalFlips(repeated, events, windowMs)
        const expected = events.map((one) => countFlipsByDefinition(known, one, windowMs))
        expect(counts).toEqual(expected)
        found = Math.max(found, ...counts.map((one) => one.flips))
      }),
      { seed, numRuns: 1500 },
    )
    expect(found).toBeGreaterThan(3)
  })

  it('of a flooding device are counted within the time limit of a test', () => {
    const observations: FlipObservation[] = Array.from({ length: 20_000 }, (_, index) => {
      const on = index % 2 === 0
      return {
        event: `e-${index}`,
        streamOffset: index,
        atMs: index * 4 + (index % 7) * 3,
        detected: on ? [0xffffffff, 0x3fffff] : [0, 0],
        clean: on ? [0, 0] : [0xffffffff, 0x3fffff],
      }
    })
    const counts = countSignalFlips(observations, observations.slice(-2000), 60_000)
    // Every signal flips with every event; one that flips usually is one alone.
    expect(counts.every((one) => one.flips > 10_000)).toBe(true)
  })
})

/** Bits 0, 1 and 32, 33 of the words: two in each half. */
const toHalves = (bits: number): [number, number] => [bits & 3, bits >> 2]

/** The undecided bytes of an edge, against a model with every event. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tenantUndecidedBytesMin, undecidedShare } from '#shared/core/base/limits/stream.ts'
import { toUndecidedLimit } from '#shared/core/telemetry/streams/stream-capacity.ts'
import { createUndecidedBytes } from '#shared/core/telemetry/streams/undecided-bytes.ts'

const gb = 1024 ** 3

describe('undecided bytes', () => {
  it('are those of messages above the low watermark, as of the last observation', () => {
    const step = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.integer({ min: 1, max: 1_000 }),
      decided: fc.double({ min: 0, max: 1, noNaN: true }),
      observe: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const counted = createUndecidedBytes()
        const events: { sequence: number; tenant: string; bytes: number }[] = []
        let low = 0
        steps.forEach(({ tenant, bytes, decided, observe }, index) => {
          const sequence = index + 1
          counted.add(sequence, tenant, bytes)
          events.push({ sequence, tenant, bytes })
          if (!observe) return
          low = Math.max(low, Math.floor(decided * sequence))
          const newestBefore = counted.newest()
          counted.observe({ lowWatermark: low, lastSequence: sequence, newestBefore })
          for (const one of ['a', 'b', 'c']) {
            const exact = events
              .filter((event) => event.tenant === one && event.sequence > low)
              .reduce((sum, event) => sum + event.bytes, 0)
            const all = events.filter((event) => event.tenant === one)
            expect(counted.of(one)).toBeGreaterThanOrEqual(exact)
            expect(counted.of(one)).toBeLessThanOrEqual(
              all.reduce((sum, event) => sum + event.bytes, 0),
            )
          }
        })
        const end = { lowWatermark: steps.length, lastSequence: steps.length }
        counted.observe({ ...end, newestBefore: counted.newest() })
        for (const one of ['a', 'b', 'c']) expect(counted.of(one)).toBe(0)
      }),
    )
  })

  it('stay exact in sum while nothing is decided', () => {
    const counted = createUndecidedBytes()
    const observe = (lowWatermark: number, lastSequence: number) =>
      counted.observe({ lowWatermark, lastSequence, newestBefore: counted.newest() })
    for (let sequence = 1; sequence <= 5_000; sequence++) {
      counted.add(sequence, 'a', 10)
      observe(0, sequence)
    }
    expect(counted.of('a')).toBe(50_000)
    observe(2_500, 5_000)
    expect(counted.of('a')).toBeGreaterThanOrEqual(25_000)
    expect(counted.of('a')).toBeLessThan(25_000 + 10 * 32)
    observe(5_000, 5_000)
    expect(counted.of('a')).toBe(0)
  })

  it('are dropped when the stream is recreated or put back, which is reported, and only then', () => {
    const counted = createUndecidedBytes()
    counted.add(1_000, 'a', 10)
    // Stored during the query of the stream, whose answer does not include it.
    expect(counted.observe({ lowWatermark: 0, lastSequence: 999, newestBefore: 0 })).toBe(false)
    expect(counted.of('a')).toBe(10)
    const newestBefore = counted.newest()
    expect(counted.observe({ lowWatermark: 0, lastSequence: 3, newestBefore })).toBe(true)
    expect(counted.of('a')).toBe(0)
    counted.add(4, 'a', 7)
    expect(counted.of('a')).toBe(7)
  })
})

describe('the share of a tenant', () => {
  const streamWith = (undecidedBytes: number, decidedBytes = 0) => ({
    bytesMax: 16 * gb,
    bytes: undecidedBytes + decidedBytes,
    undecidedBytes,
  })

  it('leaves space for any number of flooding tenants and edges', () => {
    for (const edges of [1, 3]) {
      for (const tenants of [1, 4, 16]) {
        const waiting = Array.from({ length: edges * tenants }, () => 0)
        for (let round = 0; round < 2_000; round++) {
          waiting.forEach((bytes, at) => {
            const all = waiting.reduce((sum, one) => sum + one, 0)
            if (bytes < toUndecidedLimit(streamWith(all), undecidedShare, edges))
              waiting[at]! += gb / 64
          })
        }
        const used = waiting.reduce((sum, one) => sum + one, 0) / (16 * gb)
        const expected = (3 * tenants) / (3 * tenants + 1)
        expect(used).toBeGreaterThan(expected - 0.05)
        expect(used).toBeLessThan(1)
      }
    }
  })

  it('leaves space for another tenant, also where no scorer trims what is decided', () => {
    for (const decided of [0, 0.3, 0.55, 0.74]) {
      const decidedBytes = decided * 16 * gb
      const fill = (others: number) => {
        let bytes = 0
        while (
          bytes < toUndecidedLimit(streamWith(others + bytes, decidedBytes), undecidedShare, 1)
        ) {
          bytes += gb / 256
        }
        return bytes
      }
      const lone = fill(0)
      const rest = 16 * gb - decidedBytes
      expect(lone).toBeGreaterThan(0.89 * Math.min(rest, (0.75 / 0.9) * 16 * gb))
      const comer = fill(lone)
      expect(comer).toBeGreaterThan(0.5 * (rest - lone))
      expect(lone + comer).toBeLessThan(rest)
    }
  })

  it('is never below the guaranteed minimum', () => {
    expect(toUndecidedLimit(streamWith(16 * gb), undecidedShare, 1)).toBe(16 * 1024 ** 2)
    const bytes = 4 * 1024 ** 2
    const small = { bytesMax: bytes, bytes, undecidedBytes: bytes }
    expect(toUndecidedLimit(small, undecidedShare, 1)).toBe(tenantUndecidedBytesMin)
  })
})

/** The arithmetic of the telemetry stream: what may be trimmed, when, and when to warn. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  streamBytesPerSecondMax,
  trimFromShare,
  trimToShare,
} from '#shared/core/base/limits/stream.ts'
import {
  isTrimDue,
  planTrim,
  type StreamFill,
  toTrimCheckMs,
  toUndecidedBytes,
  toUndecidedWarning,
} from '#shared/core/telemetry/streams/stream-capacity.ts'

const mb = 1024 ** 2
const fillOf = (change: Partial<StreamFill>): StreamFill => ({
  bytes: 80 * mb,
  bytesMax: 100 * mb,
  messages: 1_000,
  firstSequence: 1,
  lastSequence: 1_000,
  ...change,
})

describe('planTrim', () => {
  it('leaves messages that fit', () => {
    expect(isTrimDue(fillOf({ bytes: 74 * mb }))).toBe(false)
    expect(isTrimDue(fillOf({ bytes: 75 * mb }))).toBe(true)
    expect(planTrim(fillOf({ bytes: trimToShare * 100 * mb }), 1_000)).toBeNull()
    expect(isTrimDue(fillOf({ bytesMax: Number.POSITIVE_INFINITY }))).toBe(false)
  })

  it('removes the oldest messages, as many as needed', () => {
    // 25 MB of 80 too much: 312.5 of 1,000 messages.
    expect(planTrim(fillOf({}), 1_000)).toBe(314)
    expect(planTrim(fillOf({ firstSequence: 5_001, lastSequence: 6_000 }), 6_000)).toBe(5_314)
  })

  it('never removes undecided messages, and returns null when nothing can be removed', () => {
    expect(planTrim(fillOf({}), 100)).toBe(101)
    expect(planTrim(fillOf({}), 0)).toBeNull()
    fc.assert(
      fc.property(
        fc.record({
          bytes: fc.integer({ min: 1, max: 2_000 * mb }),
          bytesMax: fc.integer({ min: mb, max: 1_000 * mb }),
          messages: fc.integer({ min: 1, max: 10_000 }),
          firstSequence: fc.integer({ min: 1, max: 1_000_000 }),
          span: fc.integer({ min: 1, max: 100_000 }),
        }),
        fc.integer({ min: 0, max: 1_200_000 }),
        ({ span, ...fill }, lowWatermark) => {
          const lastSequence = fill.firstSequence + span - 1
          const keepFrom = planTrim({ ...fill, lastSequence }, lowWatermark)
          if (keepFrom === null) return
          expect(keepFrom).toBeLessThanOrEqual(lowWatermark + 1)
          expect(keepFrom).toBeGreaterThan(fill.firstSequence)
        },
      ),
    )
  })
})

it('checks before the space above the trim level can fill up', () => {
  for (const bytesMax of [4 * mb, 64 * mb, 1024 * mb, 16 * 1024 * mb]) {
    const filled = (toTrimCheckMs(bytesMax) / 1_000) * streamBytesPerSecondMax
    expect(filled).toBeLessThanOrEqual((1 - trimFromShare) * bytesMax)
  }
  expect(toTrimCheckMs(16 * 1024 * mb)).toBe(1_000)
})

describe('the undecided bytes', () => {
  it('are estimated by messages', () => {
    expect(toUndecidedBytes(fillOf({}), 750)).toBe(20 * mb)
    expect(toUndecidedBytes(fillOf({}), 1_200)).toBe(0)
    expect(toUndecidedBytes(fillOf({ messages: 0, bytes: 0 }), 0)).toBe(0)
    // Half of the messages were erased.
    expect(toUndecidedBytes(fillOf({ messages: 500 }), 0)).toBe(80 * mb)
    expect(toUndecidedBytes(fillOf({ firstSequence: 901 }), 0)).toBe(8 * mb)
  })

  it('cause a warning long before the stream is full', () => {
    expect(toUndecidedWarning(59 * mb, 100 * mb)).toBeNull()
    expect(toUndecidedWarning(60 * mb, 100 * mb)).toBe('is 60 % full of undecided events')
    expect(toUndecidedWarning(60 * mb, Number.POSITIVE_INFINITY)).toBeNull()
  })
})

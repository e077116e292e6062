// Offsets of a stream that was put back to an earlier copy, any number of times.
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { offsetsPerMessage, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import {
  createStreamOffsets,
  type StreamIncarnation,
  toNextIncarnation,
} from '#shared/core/telemetry/streams/stream-offsets.ts'

const createdMs = 1_700_000_000_000

describe('the offsets of a stream', () => {
  it('depend on its creation alone while it was never put back', () => {
    const other = { createdMs: createdMs + 1, firstSequence: 1, baseMs: createdMs + 99 }
    const offsets = createStreamOffsets(createdMs, [other])
    expect(offsets.of(7)).toBe(toStreamOffset(createdMs, 7))
    expect(offsets.findSequence(offsets.of(7) + 3)).toBe(7)
  })

  it('are never used twice and only rise, however often it is put back', () => {
    const putBack = fc.record({ kept: fc.nat(200), added: fc.integer({ min: 1, max: 200 }) })
    fc.assert(
      fc.property(fc.array(putBack, { maxLength: 6 }), fc.nat(10), (all, pendingMax) => {
        const incarnations: StreamIncarnation[] = []
        const inUse = new Set<number>()
        let last = 0
        let newestOffset = 0
        const append = (count: number) => {
          const offsets = createStreamOffsets(createdMs, incarnations)
          for (let left = count; left > 0; left--) {
            const offset = offsets.of(++last)
            expect(offset).toBeGreaterThan(newestOffset)
            expect(inUse.has(offset)).toBe(false)
            expect(offsets.findSequence(offset)).toBe(last)
            inUse.add(offset)
            newestOffset = offset
          }
        }
        append(100)
        for (const { kept, added } of all) {
          const before = createStreamOffsets(createdMs, incarnations)
          last = Math.min(last, kept)
          const known = { newestOffset, pendingMax, nowMs: createdMs }
          const next = toNextIncarnation({ createdMs, firstSequence: last + 1 }, known)
          incarnations.push(next)
          const after = createStreamOffsets(createdMs, incarnations)
          // What the copy holds keeps its offset.
          for (const sequence of [1, last]) {
            if (sequence <= last) expect(after.of(sequence)).toBe(before.of(sequence))
          }
          expect(after.findSequence(newestOffset)).toBeNull()
          const margin = pendingMax * offsetsPerMessage
          expect(after.of(last + 1)).toBeGreaterThan(newestOffset + margin)
          append(added)
        }
      }),
    )
  })
})

test('an incarnation begins as a stream of its instant, however many messages came before', () => {
  const baseMs = createdMs + 99
  const incarnation = { createdMs, firstSequence: 50_000_000_000, baseMs }
  const offsets = createStreamOffsets(createdMs, [incarnation])
  expect(offsets.of(incarnation.firstSequence)).toBe(toStreamOffset(baseMs, 1))
})

test('an incarnation does not begin before the present', () => {
  const known = { newestOffset: 0, pendingMax: 0, nowMs: createdMs + 5 }
  expect(toNextIncarnation({ createdMs, firstSequence: 3 }, known).baseMs).toBe(createdMs + 5)
})

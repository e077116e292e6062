import { describe, expect, it } from 'vitest'
import { toIntervalMs } from '#shared/io/nats/consume/consume.ts'

const limits = {
  batchMessagesMax: 1_000,
  batchBytesMax: 16 * 1024 * 1024,
  batchIntervalMs: 180,
  batchIntervalMaxMs: 300,
  linger: { maxMs: 700, halfBytes: 256 * 1024 },
}
const kb = 1024

describe('the interval between batches', () => {
  it('is longest after an almost empty batch, and half as long after so many bytes', () => {
    expect(toIntervalMs(limits, { tookMs: 20, bytes: 0 })).toBe(700)
    expect(toIntervalMs(limits, { tookMs: 20, bytes: 256 * kb })).toBe(350)
  })

  it('only falls as batches grow, down to the minimum', () => {
    const sizes = [0, 2, 20, 200, 500, 1_000, 2_000, 16_000]
    const intervals = sizes.map((size) => toIntervalMs(limits, { tookMs: 20, bytes: size * kb }))
    expect(intervals).toEqual(intervals.toSorted((a, b) => b - a))
    expect(intervals.at(-1)).toBe(180)
  })

  it('is twice the duration of a slow large batch, within its bounds', () => {
    const after = (tookMs: number) => toIntervalMs(limits, { tookMs, bytes: 16 * 1024 * kb })
    expect([50, 120, 400].map(after)).toEqual([180, 240, 300])
  })

  it('settles at a constant rate instead of swinging', () => {
    for (const bytesPerSecond of [20, 200, 1_000, 4_000].map((size) => size * kb)) {
      let intervalMs = 180
      const next = () => {
        const bytes = (bytesPerSecond * intervalMs) / 1_000
        return toIntervalMs(limits, { tookMs: 20, bytes })
      }
      for (let n = 0; n < 100; n++) intervalMs = next()
      expect(next()).toBeCloseTo(intervalMs, 0)
    }
  })

  it('does not depend on size where there is no linger', () => {
    const { linger: _, ...plain } = limits
    expect(toIntervalMs(plain, { tookMs: 20, bytes: 0 })).toBe(180)
  })
})

/** The token bucket: never more than its rate and burst, and a correct Retry-After. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fullBucket, takeToken } from '../../../shared/core/http/rate-limit.ts'

const rate = fc.record({
  perSecond: fc.double({ min: 0.01, max: 5_000, noNaN: true }),
  burst: fc.double({ min: 0.1, max: 5_000, noNaN: true }),
})
const gaps = fc.array(fc.double({ min: 0, max: 2_000, noNaN: true }), { maxLength: 300 })

describe('a token bucket', () => {
  it('lets a burst through and then its rate', () => {
    const ten = { perSecond: 10, burst: 5 }
    const bucket = fullBucket(ten, 0)
    const at = (nowMs: number) => takeToken(bucket, ten, nowMs).allowed
    expect([0, 0, 0, 0, 0, 0].map(at)).toEqual([true, true, true, true, true, false])
    expect([99, 101, 101, 199, 202].map(at)).toEqual([false, true, false, false, true])
    expect(Array.from({ length: 7 }, () => at(60_000)).filter(Boolean)).toHaveLength(5)
  })

  it('never lets through more than burst + rate × time, over any interval', () => {
    fc.assert(
      fc.property(rate, gaps, (rate, gaps) => {
        const bucket = fullBucket(rate, 0)
        let nowMs = 0
        const allowedAt: number[] = []
        for (const gap of gaps) {
          nowMs += gap
          if (takeToken(bucket, rate, nowMs).allowed) allowedAt.push(nowMs)
        }
        for (let from = 0; from < allowedAt.length; from++) {
          const seconds = (allowedAt.at(-1)! - allowedAt[from]!) / 1000
          const most = Math.max(1, rate.burst) + seconds * rate.perSecond
          expect(allowedAt.length - from).toBeLessThanOrEqual(most + 1e-6)
        }
      }),
    )
  })

  it('lets a request through after Retry-After', () => {
    fc.assert(
      fc.property(rate, fc.nat(200), (rate, requests) => {
        const bucket = fullBucket(rate, 0)
        let refused = takeToken(bucket, rate, 0)
        for (let at = 0; at < requests && refused.allowed; at++) {
          refused = takeToken(bucket, rate, 0)
        }
        if (refused.allowed) return
        expect(Number.isInteger(refused.retryAfterSeconds)).toBe(true)
        expect(refused.retryAfterSeconds).toBeGreaterThanOrEqual(1)
        const laterMs = refused.retryAfterSeconds * 1000 + 1e-6
        expect(takeToken(bucket, rate, laterMs).allowed).toBe(true)
      }),
    )
  })

  it('lets requests through even when its burst is less than one', () => {
    const slow = { perSecond: 0.5, burst: 0.2 }
    const bucket = fullBucket(slow, 0)
    expect(takeToken(bucket, slow, 0).allowed).toBe(true)
    expect(takeToken(bucket, slow, 0)).toMatchObject({ allowed: false, retryAfterSeconds: 2 })
    expect(takeToken(bucket, slow, 2_000).allowed).toBe(true)
  })

  it('adds no tokens for a clock that stands still or runs backward', () => {
    const one = { perSecond: 1, burst: 1 }
    const bucket = fullBucket(one, 10_000)
    expect(takeToken(bucket, one, 10_000).allowed).toBe(true)
    expect(takeToken(bucket, one, 0).allowed).toBe(false)
    expect(takeToken(bucket, one, 10_000).allowed).toBe(false)
    expect(takeToken(bucket, one, 11_000).allowed).toBe(true)
  })
})

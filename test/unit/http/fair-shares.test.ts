/** Fair shares of an edge, with a clock and an edge of a known capacity. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { busyShare, fairCapacityMin } from '#shared/core/base/limits/ingest.ts'
import { createFairShares, toFairLevel } from '#shared/core/http/fair-shares.ts'

const served = (demand: number, level: number) => Math.min(demand, level)
const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const demandsOf = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), {
  minLength: 2,
  maxLength: 20,
})
const capacityOf = fc.double({ min: 1, max: 1_000, noNaN: true })

describe('the fair level', () => {
  it('never serves more than the capacity, and each demand of an equal part in full', () => {
    fc.assert(
      fc.property(demandsOf, capacityOf, (demands, capacity) => {
        const level = toFairLevel(demands, capacity)
        expect(sumOf(demands.map((one) => served(one, level)))).toBeLessThanOrEqual(capacity + 1e-9)
        expect(level).toBeGreaterThanOrEqual(capacity / demands.length - 1e-9)
      }),
    )
  })

  it('leaves nothing unused that the largest could use', () => {
    fc.assert(
      fc.property(demandsOf, capacityOf, (demands, capacity) => {
        const level = toFairLevel(demands, capacity)
        const [largest, ...others] = [...demands].sort((a, b) => b - a)
        expect(largest).toBeGreaterThanOrEqual(0)
        expect(level + sumOf(others.map((one) => served(one, level)))).toBeCloseTo(capacity, 6)
      }),
    )
  })

  it('is no limit for a tenant alone', () => {
    expect(toFairLevel([1e12], 1)).toBe(Number.POSITIVE_INFINITY)
    expect(toFairLevel([], 1)).toBe(Number.POSITIVE_INFINITY)
  })
})

const mib = 1024 ** 2
const costOf = 1_500

type Sender = {
  tenantId: string
  /** Bytes per second that it tries to send, from and until these ms. */
  rate: number
  fromMs?: number
  untilMs?: number
  /** Has a rate of its own, which its operator set. */
  fixed?: boolean
}

/**
 * An edge that takes `capacity` bytes per second: each millisecond it takes what is granted up to
 * that, and it is as busy as the part of its capacity that was used.
 */
function simulate(senders: readonly Sender[], forMs: number, capacity = 32 * mib) {
  let nowMs = 0
  let used = 0
  let readMs = 0
  const shares = createFairShares(() => {
    const pressure = used / ((capacity * (nowMs - readMs)) / 1_000)
    used = 0
    readMs = nowMs
    return Math.min(1, pressure)
  }, 0)
  /** By tenant: what was granted and refused in each 100 ms. */
  const granted = new Map(senders.map(({ tenantId }) => [tenantId, [] as number[]]))
  const refused = new Map(senders.map(({ tenantId }) => [tenantId, [] as number[]]))
  const due = new Map<string, number>()
  for (; nowMs < forMs; nowMs++) {
    const slice = Math.floor(nowMs / 100)
    let left = capacity / 1_000
    const round = senders.map((_, at) => senders[(at + nowMs) % senders.length]!)
    for (const { tenantId, rate, fromMs = 0, untilMs = forMs, fixed } of round) {
      if (nowMs < fromMs || nowMs >= untilMs) continue
      const toSend = (due.get(tenantId) ?? 0) + rate / 1_000
      let sent = 0
      while (sent + costOf <= toSend && left > 0) {
        sent += costOf
        let retry = 0
        if (fixed === true) shares.note(tenantId, costOf, nowMs)
        else retry = shares.take(tenantId, costOf, nowMs)
        const counts = (retry === 0 ? granted : refused).get(tenantId)!
        counts[slice] = (counts[slice] ?? 0) + costOf
        if (retry !== 0) continue
        left -= costOf
        used += costOf
      }
      due.set(tenantId, Math.min(toSend - sent, rate / 10))
    }
  }
  const rateOf = (counts: Map<string, number[]>) => (tenantId: string, from: number, to: number) =>
    sumOf(
      Array.from({ length: (to - from) / 100 }, (_, n) => {
        return counts.get(tenantId)![from / 100 + n] ?? 0
      }),
    ) /
    ((to - from) / 1_000)
  return { granted: rateOf(granted), refused: rateOf(refused), level: () => shares.level(nowMs) }
}

describe('the shares of an edge', () => {
  const flood = { tenantId: 'flood', rate: 100 * mib }
  const light = { tenantId: 'light', rate: 0.3 * mib }

  it('give a tenant alone all that the edge takes, without one refusal', () => {
    const { granted, refused } = simulate([flood], 5_000)
    expect(refused('flood', 0, 5_000)).toBe(0)
    expect(granted('flood', 0, 5_000)).toBeGreaterThan(0.98 * 32 * mib)
  })

  it('cut it within a second when another one comes, which is never refused', () => {
    const senders = [flood, { ...light, fromMs: 3_000 }]
    const { granted, refused } = simulate(senders, 8_000)
    expect(refused('flood', 0, 3_000)).toBe(0)
    expect(refused('light', 3_000, 8_000)).toBe(0)
    expect(granted('light', 3_000, 8_000)).toBeGreaterThan(0.99 * light.rate)
    const room = busyShare * 32 * mib
    expect(granted('flood', 4_000, 8_000)).toBeLessThan(1.05 * room)
    expect(granted('flood', 4_000, 8_000)).toBeGreaterThan(0.9 * (room - light.rate))
    for (let ms = 4_000; ms < 8_000; ms += 500) {
      expect(granted('flood', ms, ms + 500)).toBeLessThan(1.1 * room)
    }
  })

  it('let a tenant send at once what it did not send before, up to a second of its share', () => {
    let used = 0
    let readMs = 0
    let nowMs = 0
    const shares = createFairShares(() => {
      const pressure = used / ((32 * mib * (nowMs - readMs)) / 1_000)
      readMs = nowMs
      used = 0
      return Math.min(1, pressure)
    }, 0)
    const take = (tenantId: string) => {
      const retry = shares.take(tenantId, costOf, nowMs)
      if (retry === 0) used += costOf
      return retry
    }
    let refused = 0
    for (; nowMs < 3_000; nowMs++) {
      for (let n = 0; n < 25; n++) take('flood')
      if (nowMs % 500 === 0) for (let n = 0; n < 2_000; n++) refused += take('bursts')
    }
    // 2,000 of 1.5 KB twice a second are 6 MB/s, below half of the 17 MB/s that the two may take.
    expect(refused).toBe(0)
  })

  it('give back what others no longer use within a second', () => {
    const senders = [flood, { ...light, untilMs: 3_000 }]
    const { granted, refused } = simulate(senders, 6_000)
    expect(refused('flood', 1_000, 3_000)).toBeGreaterThan(0)
    expect(refused('flood', 4_200, 6_000)).toBe(0)
    expect(granted('flood', 4_200, 6_000)).toBeGreaterThan(0.98 * 32 * mib)
  })

  it('divide the whole edge equally among those that want more, however much each sends', () => {
    const senders = [
      { tenantId: 'a', rate: 100 * mib },
      { tenantId: 'b', rate: 30 * mib },
      { tenantId: 'small', rate: 4 * mib },
    ]
    const { granted, refused } = simulate(senders, 10_000)
    expect(refused('small', 0, 10_000)).toBe(0)
    const [a, b] = [granted('a', 2_000, 10_000), granted('b', 2_000, 10_000)]
    expect(a / b).toBeGreaterThan(0.9)
    expect(a / b).toBeLessThan(1.1)
    const all = a + b + granted('small', 2_000, 10_000)
    expect(all).toBeGreaterThan(0.9 * busyShare * 32 * mib)
    const two = simulate(senders.slice(0, 2), 10_000)
    expect(two.granted('a', 2_000, 10_000) + two.granted('b', 2_000, 10_000)).toBeGreaterThan(
      0.9 * 32 * mib,
    )
  })

  it('refuse nobody while the edge has room for all', () => {
    const senders = [{ ...flood, rate: 11 * mib }, light, { tenantId: 'third', rate: 3 * mib }]
    const { refused } = simulate(senders, 5_000)
    for (const { tenantId } of senders) expect(refused(tenantId, 0, 5_000)).toBe(0)
  })

  it('count what tenants with a rate of their own take, and do not cut them', () => {
    const senders = [flood, { tenantId: 'paid', rate: 6 * mib, fixed: true }]
    const { granted } = simulate(senders, 6_000)
    expect(granted('paid', 1_000, 6_000)).toBeGreaterThan(0.98 * 6 * mib)
    expect(granted('flood', 2_000, 6_000)).toBeLessThan(1.1 * (busyShare * 32 - 6) * mib)
  })

  it('do not follow an edge that strangers keep busy below a minimum', () => {
    let nowMs = 0
    const shares = createFairShares(() => 1, 0)
    let refused = 0
    for (; nowMs < 5_000; nowMs += 1) {
      if (shares.take('a', 1_024, nowMs) !== 0) refused++
      if (nowMs % 10 === 0 && shares.take('b', 1_024, nowMs) !== 0) refused++
    }
    expect(refused).toBe(0)
    expect(shares.level(nowMs)).toBeGreaterThan(busyShare * fairCapacityMin - 200 * 1_024)
  })

  it('are never refused below the fair share, whatever the others do', () => {
    const others = fc.array(
      fc.record({
        rate: fc.double({ min: 0.1 * mib, max: 100 * mib, noNaN: true }),
        fromMs: fc.integer({ min: 0, max: 3_000 }),
        lastsMs: fc.integer({ min: 100, max: 3_000 }),
      }),
      { minLength: 1, maxLength: 5 },
    )
    fc.assert(
      fc.property(others, (list) => {
        const senders = list.map(({ rate, fromMs, lastsMs }, n) => {
          return { tenantId: `other-${n}`, rate, fromMs, untilMs: fromMs + lastsMs }
        })
        const capacity = 16 * mib
        const fair = (busyShare * capacity) / (senders.length + 1)
        const small = { tenantId: 'small', rate: 0.7 * fair }
        const { refused } = simulate([...senders, small], 4_000, capacity)
        expect(refused('small', 0, 4_000)).toBe(0)
      }),
      { numRuns: 30 },
    )
  })
})

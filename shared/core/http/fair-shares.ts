/**
 * Shares what one process can take among the tenants that send to it. A tenant may use all that
 * others leave: alone it has no limit. While others are active too, the shares are max-min fair: a
 * tenant that needs less than an equal share gets what it needs, and the others divide what is
 * left. It is plain state: the caller passes the monotonic time, and how busy the process was.
 *
 * What the process can take is measured: what it took, divided by how busy it was. It is measured
 * only while the process is busy. While it is not, the estimate grows, since there is more room.
 */
import {
  activeTenantMs,
  busyShare,
  fairCapacityGrowth,
  fairCapacityMin,
  fairTickMs,
} from '#shared/core/base/limits/ingest.ts'

export type FairShares = {
  /** Counts what a tenant with a rate of its own takes: less is left for the others. */
  note: (tenantId: string, cost: number, nowMs: number) => void
  /** Takes from a tenant's share. @returns 0 when it may, else the seconds until it may again */
  take: (tenantId: string, cost: number, nowMs: number) => number
  /** What one tenant may take per second now; `Infinity` while nothing is contended. */
  level: (nowMs: number) => number
}

type Share = {
  /** Cost per second that it asks for, smoothed, whether granted or not. */
  demand: number
  /** Cost asked for and taken since the last tick. */
  asked: number
  taken: number
  tokens: number
  /** When it last asked, was last refused, and had its tokens filled. */
  askedMs: number
  refusedMs: number
  filledMs: number
}

/** How much of its value a smoothed demand keeps at each tick. */
const demandKept = 0.8

/** A tenant above its share takes it in even steps of this part of a second. */
const stepSeconds = 0.1

/**
 * The level up to which every demand is served in full, when the largest may take all that the
 * others leave. Water filling: the sum of what is served never exceeds the capacity, and a demand
 * of an equal part of it is always served.
 * @param demands of each active tenant, in cost per second
 * @returns `Infinity` for a lone tenant: no other tenant needs a share
 */
export function toFairLevel(demands: readonly number[], capacity: number): number {
  if (demands.length < 2) return Number.POSITIVE_INFINITY
  const ascending = [...demands].sort((a, b) => a - b)
  let left = capacity
  for (let at = 0; at < ascending.length - 1; at++) {
    const equal = left / (ascending.length - at)
    if (ascending[at]! >= equal) return equal
    left -= ascending[at]!
  }
  return left
}

/** @param readPressure how busy the process was since the last call, from 0 to 1 */
export function createFairShares(readPressure: () => number, startMs: number): FairShares {
  const shares = new Map<string, Share>()
  let capacity = Number.POSITIVE_INFINITY
  let level = Number.POSITIVE_INFINITY
  let tickMs = startMs

  const measureCapacity = (takenPerSecond: number, ticks: number) => {
    const pressure = readPressure()
    capacity =
      pressure >= busyShare
        ? Math.max(fairCapacityMin, takenPerSecond / pressure)
        : capacity * fairCapacityGrowth ** ticks
  }

  /** The most tokens: what it left unused of a second, and one step at least. */
  const toTokensMax = ({ demand }: Share) => Math.max(stepSeconds * level, level - demand)

  const tick = (nowMs: number) => {
    const seconds = (nowMs - tickMs) / 1_000
    const ticks = (nowMs - tickMs) / fairTickMs
    tickMs = nowMs
    let taken = 0
    let someoneIsBelow = false
    for (const [tenantId, share] of shares) {
      taken += share.taken
      const kept = demandKept ** ticks
      share.demand = kept * share.demand + (1 - kept) * (share.asked / seconds)
      share.asked = 0
      share.taken = 0
      if (nowMs - share.askedMs > activeTenantMs) shares.delete(tenantId)
      else if (nowMs - share.refusedMs > activeTenantMs) someoneIsBelow = true
    }
    measureCapacity(taken / seconds, ticks)
    const demands = [...shares.values()].map(({ demand }) => demand)
    // Room is kept only for tenants below their share: it makes their waits short.
    level = toFairLevel(demands, someoneIsBelow ? busyShare * capacity : capacity)
  }

  const ask = (tenantId: string, cost: number, nowMs: number): Share => {
    if (nowMs - tickMs >= fairTickMs) tick(nowMs)
    let share = shares.get(tenantId)
    if (share === undefined) {
      share = {
        demand: 0,
        asked: 0,
        taken: 0,
        tokens: Number.POSITIVE_INFINITY,
        askedMs: nowMs,
        refusedMs: Number.NEGATIVE_INFINITY,
        filledMs: nowMs,
      }
      shares.set(tenantId, share)
    }
    share.asked += cost
    share.askedMs = nowMs
    return share
  }

  return {
    note: (tenantId, cost, nowMs) => {
      ask(tenantId, cost, nowMs).taken += cost
    },
    take: (tenantId, cost, nowMs) => {
      const share = ask(tenantId, cost, nowMs)
      if (level !== Number.POSITIVE_INFINITY) {
        const filled = share.tokens + (level * (nowMs - share.filledMs)) / 1_000
        share.tokens = Math.min(toTokensMax(share), filled)
        share.filledMs = nowMs
        if (share.tokens < 0) {
          share.refusedMs = nowMs
          return Math.max(1, Math.ceil(-share.tokens / level))
        }
        // The last one may overdraw: a share smaller than a body would refuse every body.
        share.tokens -= cost
      }
      share.taken += cost
      return 0
    },
    level: (nowMs) => (nowMs - tickMs > activeTenantMs ? Number.POSITIVE_INFINITY : level),
  }
}

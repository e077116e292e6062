/**
 * Percentiles of risk scores among a tenant's sessions, as of the last hour: one distribution for
 * each tenant and hour, read when it is first asked for and kept in memory. A reader waits briefly
 * for the first one; while the next is read the last one answers. Without one there is no
 * percentile: nothing fails because it cannot be read.
 */
import { LRUCache } from 'lru-cache'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import {
  percentileDays,
  percentileReadLimits,
  percentileRetryMs,
  percentileTenantsMax,
  percentileWaitMs,
} from '#shared/core/base/limits/outcomes.ts'
import { type ScoreCounts, toRiskPercentile } from '#shared/core/outcomes/score-distribution.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import { within } from '#shared/io/process/pause.ts'
import type { ScoreStore } from './score-store.ts'

/** A member of an answer, which is left out while the percentile is unknown. */
export type PercentileField = { risk_percentile?: number }

export type RiskPercentiles = {
  /** @param score a risk score of the tenant */
  find: (question: { tenantId: string; score: number }) => Promise<PercentileField>
}

type Kept = {
  /** The distribution that answers, and the hour before which its sessions began. */
  counts: ScoreCounts | null
  hour: number
  reading: Promise<void> | null
  /** After a failure nothing is read before this instant. */
  retryAtMs: number
}

type PercentileDeps = {
  countScores: ScoreStore['countScores']
  limited: QueryLimiter
  /** The wall clock. */
  nowMs: () => number
}

export function createRiskPercentiles(deps: PercentileDeps): RiskPercentiles {
  const tenants = new LRUCache<string, Kept>({ max: percentileTenantsMax })
  const read: ScoreStore['countScores'] = (range) => deps.countScores(range)
  const countScores = deps.limited('risk_percentile', percentileReadLimits, read)
  const keep = (tenantId: string): Kept => {
    const present = tenants.get(tenantId)
    if (present !== undefined) return present
    const kept: Kept = { counts: null, hour: 0, reading: null, retryAtMs: 0 }
    tenants.set(tenantId, kept)
    return kept
  }
  const refresh = async (tenantId: string, kept: Kept, hour: number): Promise<void> => {
    const untilMs = hour * hourMs
    try {
      const sinceMs = untilMs - percentileDays * dayMs
      kept.counts = await countScores({ tenantId, sinceMs, untilMs })
      kept.hour = hour
    } catch {
      // The limiter and the client of ClickHouse have counted it.
      kept.retryAtMs = deps.nowMs() + percentileRetryMs
    } finally {
      kept.reading = null
    }
  }
  return {
    find: async ({ tenantId, score }) => {
      const kept = keep(tenantId)
      const hour = Math.floor(deps.nowMs() / hourMs)
      const isDue = kept.hour !== hour && deps.nowMs() >= kept.retryAtMs
      if (isDue) kept.reading ??= refresh(tenantId, kept, hour)
      if (kept.counts === null && kept.reading !== null) {
        await within(kept.reading, percentileWaitMs)
      }
      // An hour older is still near; more is not "the last hour".
      if (kept.counts === null || hour - kept.hour > 1) return {}
      const percentile = toRiskPercentile(kept.counts, score)
      return percentile === null ? {} : { risk_percentile: percentile }
    },
  }
}

/**
 * One token bucket per tenant, in this process's memory. A call takes one token, a change or a
 * response with many rows takes more. Every response has the header fields of the IETF draft on
 * rate limits; a rejection has `Retry-After`.
 */
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'
import { restBurst, restRatePerSecond, rowsPerCall } from '#shared/core/base/limits/rest-api.ts'
import { cachedTenantsMax } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type Bucket,
  chargeTokens,
  fullBucket,
  type Rate,
  takeToken,
  toRateLimitFields,
} from '#shared/core/http/rate-limit.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

export type RateLimits = {
  /**
   * Takes the tenant's tokens for a call and sets the headers.
   * @param own the tenant's own rate, or null for the product's default
   * @param calls tokens; more than the burst take a full bucket
   * @throws Problem rate_limited
   */
  take: (tenantId: string, tenantRate: Rate | null, reply: FastifyReply, calls: number) => void
  /** Charges the rows of a response beyond the call itself. */
  chargeRows: (tenantId: string, tenantRate: Rate | null, rows: number, reply: FastifyReply) => void
  /** Charges calls beyond the call itself: the bucket may owe them. */
  chargeCalls: (
    tenantId: string,
    tenantRate: Rate | null,
    calls: number,
    reply: FastifyReply,
  ) => void
}

const defaultRate: Rate = { perSecond: restRatePerSecond, burst: restBurst }

/** Creates the limits. @param monotonicMs a clock that never goes back */
export function createRateLimits(monotonicMs: () => number, metrics: Metrics): RateLimits {
  const refused = metrics.counter<'tenant'>(
    'di_api_rate_limited_total',
    'Calls rejected because their tenant was over its rate',
    ['tenant'],
  )
  const buckets = new LRUCache<string, Bucket>({ max: cachedTenantsMax })
  const findBucket = (tenantId: string, rate: Rate): Bucket => {
    let bucket = buckets.get(tenantId)
    if (bucket === undefined) {
      bucket = fullBucket(rate, monotonicMs())
      buckets.set(tenantId, bucket)
    }
    return bucket
  }
  const setHeaders = (reply: FastifyReply, bucket: Bucket, rate: Rate): void => {
    const fields = toRateLimitFields(bucket, rate)
    reply.header('ratelimit-policy', fields.policy)
    reply.header('ratelimit', fields.limit)
  }
  const chargeCalls: RateLimits['chargeCalls'] = (tenantId, tenantRate, calls, reply) => {
    if (calls <= 0) return
    const rate = tenantRate ?? defaultRate
    const bucket = findBucket(tenantId, rate)
    chargeTokens(bucket, rate, calls)
    setHeaders(reply, bucket, rate)
  }
  return {
    chargeCalls,
    chargeRows: (tenantId, tenantRate, rows, reply) =>
      chargeCalls(tenantId, tenantRate, Math.ceil(rows / rowsPerCall) - 1, reply),
    take: (tenantId, tenantRate, reply, calls) => {
      const rate = tenantRate ?? defaultRate
      const bucket = findBucket(tenantId, rate)
      const { allowed, retryAfterSeconds } = takeToken(bucket, rate, monotonicMs(), calls)
      setHeaders(reply, bucket, rate)
      if (allowed) return
      refused.inc({ tenant: tenantId })
      throw new Problem('rate_limited', 'The tenant is over its rate of calls.', {
        retryAfterSeconds,
      })
    },
  }
}

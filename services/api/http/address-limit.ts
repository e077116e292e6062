/**
 * A rate for each source address, for calls without a key. An address beyond its rate is refused
 * without a query, so it delays no other.
 */
import { LRUCache } from 'lru-cache'
import {
  verdictKeyAddressesMax,
  verdictKeyCallsBurst,
  verdictKeyCallsPerSecond,
} from '#shared/core/base/limits/rest-api.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Bucket, fullBucket, type Rate, takeToken } from '#shared/core/http/rate-limit.ts'
import { toSourceKey } from '#shared/io/http/connection-guard.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

const rate: Rate = { perSecond: verdictKeyCallsPerSecond, burst: verdictKeyCallsBurst }

/**
 * @param monotonicMs a clock that never goes back
 * @returns takes a call of an address; throws Problem rate_limited
 */
export function createAddressLimit(
  monotonicMs: () => number,
  metrics: Metrics,
): (address: string) => void {
  const refused = metrics.counter(
    'di_api_address_limited_total',
    'Calls without a key that were rejected because their address was over its rate',
  )
  const buckets = new LRUCache<string, Bucket>({ max: verdictKeyAddressesMax })
  return (address) => {
    const source = toSourceKey(address)
    let bucket = buckets.get(source)
    if (bucket === undefined) {
      bucket = fullBucket(rate, monotonicMs())
      buckets.set(source, bucket)
    }
    const { allowed, retryAfterSeconds } = takeToken(bucket, rate, monotonicMs(), 1)
    if (allowed) return
    refused.inc()
    throw new Problem('rate_limited', 'The address asks for the verdict keys too often.', {
      retryAfterSeconds,
    })
  }
}

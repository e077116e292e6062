/**
 * A token bucket as a value: the caller keeps the state and passes the monotonic time. Edges and
 * the REST API have one per tenant.
 */

/** `perSecond` tokens are added up to `burst`, which counts as 1 when it is less. */
export type Rate = { perSecond: number; burst: number }

export type Bucket = { tokens: number; atMs: number }

type RateDecision = {
  allowed: boolean
  /** Seconds until enough tokens are there again, at least 1 when refused. */
  retryAfterSeconds: number
}

/** The values of the rate limit header fields. */
export type RateLimitFields = {
  /** `RateLimit-Policy`: the burst, and the seconds in which an empty bucket fills. */
  policy: string
  /** `RateLimit`: whole tokens left, and seconds until the bucket is full. */
  limit: string
}

/** A bucket smaller than one token would refuse everything. */
const sizeOf = (rate: Rate) => Math.max(1, rate.burst)

/** A full bucket. */
export function fullBucket(rate: Rate, nowMs: number): Bucket {
  return { tokens: sizeOf(rate), atMs: nowMs }
}

/**
 * Takes tokens if there are enough. It changes the bucket in place to save allocations.
 * @param cost tokens; a cost above the bucket's size takes a full bucket
 */
export function takeToken(bucket: Bucket, rate: Rate, nowMs: number, cost = 1): RateDecision {
  const needed = Math.min(cost, sizeOf(rate))
  const elapsedMs = Math.max(0, nowMs - bucket.atMs)
  bucket.tokens = Math.min(sizeOf(rate), bucket.tokens + (elapsedMs * rate.perSecond) / 1000)
  bucket.atMs = Math.max(bucket.atMs, nowMs)
  if (bucket.tokens >= needed) {
    bucket.tokens -= needed
    return { allowed: true, retryAfterSeconds: 0 }
  }
  const waitSeconds = (needed - bucket.tokens) / rate.perSecond
  return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(waitSeconds)) }
}

/**
 * Charges tokens after a call whose cost was not known before. The bucket can go negative by its
 * size; later calls are refused until it has refilled.
 */
export function chargeTokens(bucket: Bucket, rate: Rate, tokens: number): void {
  bucket.tokens = Math.max(bucket.tokens - tokens, -sizeOf(rate))
}

/**
 * The state of a bucket as RateLimit header fields (draft-ietf-httpapi-ratelimit-headers-10).
 * @param bucket directly after `takeToken`
 */
export function toRateLimitFields(bucket: Bucket, rate: Rate): RateLimitFields {
  const size = sizeOf(rate)
  const window = Math.max(1, Math.ceil(size / rate.perSecond))
  const fullSeconds = Math.ceil((size - bucket.tokens) / rate.perSecond)
  return {
    policy: `"tenant";q=${Math.floor(size)};w=${window}`,
    limit: `"tenant";r=${Math.max(0, Math.floor(bucket.tokens))};t=${fullSeconds}`,
  }
}

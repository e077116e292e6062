/**
 * A token bucket as a pure value: the caller keeps the state and hands in the monotonic time. Used
 * per tenant at the edge and on the REST API.
 */

/** `perSecond` tokens flow in up to `burst`, which counts as one when it is less. */
export type Rate = { perSecond: number; burst: number }

export type Bucket = { tokens: number; atMs: number }

export type RateDecision = {
  allowed: boolean
  /** Seconds until enough tokens are there again, at least 1 when refused. */
  retryAfterSeconds: number
}

/** A rate as its header fields say it. */
export type RateLimitFields = {
  /** `RateLimit-Policy`: the burst, and the seconds in which it flows in. */
  policy: string
  /** `RateLimit`: whole tokens left, and seconds until all are there again. */
  limit: string
}

/** A bucket that cannot hold a whole token would never let anything through. */
const sizeOf = (rate: Rate) => Math.max(1, rate.burst)

/** A full bucket. */
export function fullBucket(rate: Rate, nowMs: number): Bucket {
  return { tokens: sizeOf(rate), atMs: nowMs }
}

/**
 * Takes tokens if there are as many. Changes the bucket in place, so the hot path allocates little.
 * @param cost tokens; one that the bucket cannot hold takes all of a full one
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
 * Takes tokens for what a call turned out to cost. The bucket may owe as much as it holds when it
 * is full: the calls that follow wait until the debt is paid.
 */
export function chargeTokens(bucket: Bucket, rate: Rate, tokens: number): void {
  bucket.tokens = Math.max(bucket.tokens - tokens, -sizeOf(rate))
}

/**
 * Where a bucket stands, as the IETF's draft on RateLimit header fields has it (structured fields,
 * draft-ietf-httpapi-ratelimit-headers-10).
 * @param bucket as `takeToken` has just left it
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

/**
 * How often a password, a code or a token may be tried: per account and per address, in bounded
 * memory. A pair of account and address that signed in before has a limit of its own, so that
 * guesses from elsewhere do not lock an operator out. Accounts that do not exist are limited alike.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Problem } from '#shared/core/http/problem.ts'
import { type Bucket, fullBucket, type Rate, takeToken } from '#shared/core/http/rate-limit.ts'
import { toSourceKey } from '#shared/io/http/connection-guard.ts'
import type { HashClass } from '#shared/io/operators/password-hash.ts'

/** Ten tries at once, then one a minute: 1,450 a day. */
const ofAccount: Rate = { perSecond: 1 / 60, burst: 10 }
/** An office behind one address: thirty tries at once, then one in five seconds. */
const ofAddress: Rate = { perSecond: 0.2, burst: 30 }
/** Accounts, addresses and known pairs that are counted, at some 200 bytes each. */
const countedMax = 10_000

export type Attempt = {
  hashClass: HashClass
  /** The attempt was right: it does not count, and the pair is known from now on. */
  succeeded: () => void
}

export type TokenAttempt = {
  /** The attempt was right: so many tries do not count. */
  succeeded: (tries?: number) => void
}

export type AttemptLimits = {
  /**
   * Counts an attempt before it is checked, so that attempts at the same time count too.
   * @param attempt.email what is signed in to, as it was typed
   * @throws Problem rate_limited
   */
  begin: (attempt: { email: string; address: string }) => Attempt
  /**
   * The same for an operator with a session: guesses of others at the account do not count here.
   * @throws Problem rate_limited
   */
  beginSignedIn: (attempt: { operatorId: string; address: string }) => TokenAttempt
  /**
   * Counts a try of an invitation's token, or of a sign-in through the identity provider.
   * @throws Problem rate_limited
   */
  beginToken: (address: string) => TokenAttempt
}

/** @param nowMs a clock that never goes back */
export function createAttemptLimits(nowMs: () => number): AttemptLimits {
  const buckets = new LRUCache<string, Bucket>({ max: countedMax })
  const known = new LRUCache<string, true>({ max: countedMax })
  const take = (key: string, rate: Rate): Bucket => {
    const bucket = buckets.get(key) ?? fullBucket(rate, nowMs())
    buckets.set(key, bucket)
    const { allowed, retryAfterSeconds } = takeToken(bucket, rate, nowMs())
    if (!allowed) throw tooMany(retryAfterSeconds)
    return bucket
  }
  return {
    begin: ({ email, address }) => {
      const source = toSourceKey(address)
      // A digest, because a stranger chooses the length of the text.
      const account = hash('sha256', email, 'base64url')
      const pair = `${account} ${source}`
      const isKnown = known.has(pair)
      const taken = isKnown
        ? [take(`pair ${pair}`, ofAccount)]
        : [take(`address ${source}`, ofAddress), take(`account ${account}`, ofAccount)]
      return {
        hashClass: isKnown ? 'known' : 'stranger',
        succeeded: () => {
          known.set(pair, true)
          for (const bucket of taken) bucket.tokens++
        },
      }
    },
    beginSignedIn: ({ operatorId, address }) =>
      toAttempt(take(`operator ${operatorId} ${toSourceKey(address)}`, ofAccount)),
    beginToken: (address) => toAttempt(take(`address ${toSourceKey(address)}`, ofAddress)),
  }
}

const toAttempt = (taken: Bucket): TokenAttempt => ({
  succeeded: (tries = 1) => {
    taken.tokens += tries
  },
})

/** A 429 for a caller who has tried too often, or for whom no hash can be computed now. */
export const tooMany = (retryAfterSeconds: number): Problem =>
  new Problem('rate_limited', 'Too many attempts; try again later.', { retryAfterSeconds })

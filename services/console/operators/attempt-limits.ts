/**
 * How often a password, a code or a token may be tried: per account and per address, in bounded
 * memory. A pair of account and address that signed in before has a limit of its own, so that
 * guesses from elsewhere do not lock an operator out. Accounts that do not exist are limited alike.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import {
  triesCountedMax,
  triesOfAccount,
  triesOfAddress,
  triesOfOperator,
} from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Bucket, fullBucket, type Rate, takeToken } from '#shared/core/http/rate-limit.ts'
import { toSourceKey } from '#shared/io/http/connection-guard.ts'

/** Whose limit was reached, a metric label. `session` is an operator at one address. */
export const limitedBys = ['account', 'address', 'operator', 'session'] as const

export type LimitedBy = (typeof limitedBys)[number]

export type Attempt = {
  /** The source address of a caller that no sign-in is known of; null for a known one. */
  stranger: string | null
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
   * It counts for the operator as well, unless the operator signed in from this address before.
   * @throws Problem rate_limited
   */
  beginSignedIn: (attempt: { operatorId: string; address: string }) => TokenAttempt
  /**
   * Counts a try of an invitation's token, or of a sign-in through the identity provider.
   * @throws Problem rate_limited
   */
  beginToken: (address: string) => TokenAttempt
  /** Notes that an operator signed in from an address. */
  noteSignedIn: (attempt: { operatorId: string; address: string }) => void
}

/**
 * @param nowMs a clock that never goes back
 * @param onLimited called for each attempt that is refused
 */
export function createAttemptLimits(
  nowMs: () => number,
  onLimited: (by: LimitedBy) => void,
): AttemptLimits {
  const buckets = new LRUCache<string, Bucket>({ max: triesCountedMax })
  const known = new LRUCache<string, true>({ max: triesCountedMax })
  const take = (by: LimitedBy, value: string, rate: Rate): Bucket => {
    const key = `${by} ${value}`
    const bucket = buckets.get(key) ?? fullBucket(rate, nowMs())
    buckets.set(key, bucket)
    const { allowed, retryAfterSeconds } = takeToken(bucket, rate, nowMs())
    if (allowed) return bucket
    onLimited(by)
    throw tooMany(retryAfterSeconds)
  }
  return {
    begin: ({ email, address }) => {
      const source = toSourceKey(address)
      // A digest, because a stranger chooses the length of the text.
      const account = hash('sha256', email, 'base64url')
      const pair = `${account} ${source}`
      const isKnown = known.has(pair)
      const taken = isKnown
        ? [take('account', pair, triesOfAccount)]
        : [take('address', source, triesOfAddress), take('account', account, triesOfAccount)]
      return {
        stranger: isKnown ? null : source,
        succeeded: () => {
          known.set(pair, true)
          for (const bucket of taken) bucket.tokens++
        },
      }
    },
    beginSignedIn: ({ operatorId, address }) => {
      const session = toPair(operatorId, address)
      const taken = [take('session', session, triesOfAccount)]
      if (!known.has(session)) taken.push(take('operator', operatorId, triesOfOperator))
      return toAttempt(taken)
    },
    beginToken: (address) => toAttempt([take('address', toSourceKey(address), triesOfAddress)]),
    noteSignedIn: ({ operatorId, address }) => void known.set(toPair(operatorId, address), true),
  }
}

const toPair = (operatorId: string, address: string) => `${operatorId} ${toSourceKey(address)}`

const toAttempt = (taken: readonly Bucket[]): TokenAttempt => ({
  succeeded: (tries = 1) => {
    for (const bucket of taken) bucket.tokens += tries
  },
})

/** A 429 for a caller who has tried too often, or for whom no hash can be computed now. */
export const tooMany = (retryAfterSeconds: number): Problem =>
  new Problem('rate_limited', 'Too many attempts; try again later.', { retryAfterSeconds })

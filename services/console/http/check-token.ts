/**
 * The check of the admin token, and what slows guessing: a wrong token is answered late once an
 * address, or all of them together, sent a few; a bounded number of such answers is under way, and
 * while there are as many, more attempts are refused unseen, right or wrong. Each wrong token is
 * counted and logged; the audit log has one row for all of a minute.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Problem } from '#shared/core/http/problem.ts'
import { type Bucket, fullBucket, type Rate, takeToken } from '#shared/core/http/rate-limit.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createRefusalAudit } from './refusal-audit.ts'

export type TokenCheckDeps = {
  adminToken: string
  postgres: Queryable
  log: Log
  metrics: Metrics
  /** A clock that never goes back. */
  nowMs: () => number
  /** The delay of a slowed answer, 1,000 ms by default. */
  slowedMs?: number
  /**
   * How long wrong tokens are counted before an audit row is written, a minute by default.
   */
  auditEveryMs?: number
}

export type TokenCheck = {
  /** @throws Problem unauthorized, or rate_limited */
  check: (request: FastifyRequest) => Promise<void>
  /** Writes the pending counts to the audit log. */
  close: () => Promise<void>
}

/** Wrong tokens that are answered at once: per address ten, then one in five seconds; in all. */
const ofAddress: Rate = { perSecond: 0.2, burst: 10 }
const ofAll: Rate = { perSecond: 2, burst: 100 }
/** Late answers under way, so many guesses a second: per address, and in all. */
const lateOfAddressMax = 4
const lateMax = 64
const slowedDefaultMs = 1_000
/** Addresses that are counted separately; the oldest are forgotten first. */
const addressesMax = 10_000
/** An address that has shown the right token is not held up by others' wrong ones for so long. */
const knownMs = 3_600_000

type Guesser = { bucket: Bucket; late: number }

export function createTokenCheck(deps: TokenCheckDeps): TokenCheck {
  const { adminToken, log, metrics, nowMs, slowedMs = slowedDefaultMs } = deps
  const expected = hash('sha256', adminToken, 'buffer')
  const wrong = metrics.counter<'answer'>(
    'di_console_wrong_tokens_total',
    'Calls with a wrong admin token, and calls refused unseen while too many of these came',
    ['answer'],
  )
  const guessers = new LRUCache<string, Guesser>({ max: addressesMax })
  const known = new LRUCache<string, true>({ max: addressesMax, ttl: knownMs })
  const all = fullBucket(ofAll, nowMs())
  const audit = createRefusalAudit({
    postgres: deps.postgres,
    log,
    action: 'admin_token.refused',
    message: 'wrong admin tokens were sent',
    everyMs: deps.auditEveryMs,
  })
  let late = 0

  const findGuesser = (address: string): Guesser => {
    const found = guessers.get(address)
    if (found !== undefined) return found
    const guesser = { bucket: fullBucket(ofAddress, nowMs()), late: 0 }
    guessers.set(address, guesser)
    return guesser
  }
  const refuseWrong = async (address: string): Promise<never> => {
    audit.note(address)
    const guesser = findGuesser(address)
    const atOnce =
      takeToken(guesser.bucket, ofAddress, nowMs()).allowed &&
      takeToken(all, ofAll, nowMs()).allowed
    wrong.inc({ answer: atOnce ? 'refused' : 'slowed' })
    if (!atOnce) {
      late++
      guesser.late++
      await pause(slowedMs)
      guesser.late--
      late--
    }
    throw new Problem('unauthorized', 'The admin API needs the admin token as a bearer token.')
  }
  return {
    close: audit.close,
    check: async (request) => {
      const { ip: address, headers, raw } = request
      const sent = readBearer(headers.authorization)
      if (sent === null) {
        throw new Problem('unauthorized', 'The admin API needs the admin token as a bearer token.')
      }
      const crowded = late >= lateMax && !known.has(address)
      if (crowded || (guessers.peek(address)?.late ?? 0) >= lateOfAddressMax) {
        wrong.inc({ answer: 'limited' })
        audit.note(address)
        const retryAfterSeconds = Math.ceil(slowedMs / 1_000)
        const detail = 'Too many wrong admin tokens were sent; try again in a moment.'
        throw new Problem('rate_limited', detail, { retryAfterSeconds })
      }
      // Digests have one length, so the comparison takes the same time whatever was sent.
      if (!timingSafeEqual(hash('sha256', sent, 'buffer'), expected)) {
        log.debug({ source: address }, 'a wrong admin token was sent')
        return await refuseWrong(address)
      }
      known.set(address, true)
      proveConnection(raw.socket)
    },
  }
}

/** The token of `Bearer TOKEN`, or null when there is none to compare. */
function readBearer(authorization: string | undefined): string | null {
  if (authorization === undefined) return null
  return authorization.slice(0, 7).toLowerCase() === 'bearer ' ? authorization.slice(7) : null
}

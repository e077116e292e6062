/**
 * Notices a receiver that fails most of what it is sent, from its latest attempts of this process.
 * What follows from that (the hold, its probes) is kept in Postgres, for all processes. Pure but
 * for its memory.
 */
import {
  breakerAttemptsMax,
  breakerAttemptsMin,
  breakerFailedShare,
  breakerWindowMs,
} from '#shared/core/limits.ts'

export type Breaker = {
  /** Notes an attempt. @returns whether the webhook's deliveries are to be held */
  note: (tenantId: string, url: string, ok: boolean, nowMs: number) => boolean
}

/** Webhooks that are remembered: each is a few hundred bytes, and only failing ones are. */
const webhooksMax = 10_000

type Noted = { ok: boolean; atMs: number }

/** Remembers nothing of webhooks whose attempts succeed. */
export function createBreaker(): Breaker {
  const latest = new Map<string, Noted[]>()
  return {
    note: (tenantId, url, ok, nowMs) => {
      const key = `${tenantId} ${url}`
      let noted = latest.get(key)
      if (noted === undefined) {
        if (ok) return false
        if (latest.size >= webhooksMax) latest.clear()
        noted = []
        latest.set(key, noted)
      }
      noted.push({ ok, atMs: nowMs })
      while (noted.length > breakerAttemptsMax || nowMs - noted[0]!.atMs > breakerWindowMs) {
        noted.shift()
      }
      const failed = noted.reduce((sum, one) => sum + (one.ok ? 0 : 1), 0)
      if (failed === 0) latest.delete(key)
      return noted.length >= breakerAttemptsMin && failed >= noted.length * breakerFailedShare
    },
  }
}

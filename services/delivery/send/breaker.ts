/**
 * Notices a receiver that fails most of what it is sent, from its latest attempts of this process.
 * What follows from that (the hold, its probes) is kept in Postgres, for all processes. Pure but
 * for its memory.
 */
import { LRUCache } from 'lru-cache'
import {
  breakerAttemptsMax,
  breakerAttemptsMin,
  breakerFailedShare,
  breakerWindowMs,
  webhooksRememberedMax,
} from '#shared/core/deliveries/delivery-limits.ts'

export type Breaker = {
  /** Notes an attempt. @returns whether the webhook's deliveries are to be held */
  note: (tenantId: string, url: string, ok: boolean, nowMs: number) => boolean
}

type Noted = { ok: boolean; atMs: number }

/** Remembers nothing of webhooks whose attempts succeed. */
export function createBreaker(): Breaker {
  // One of each tenant, least recently tried first to go: what fails now is never forgotten.
  const latest = new LRUCache<string, { url: string; noted: Noted[] }>({
    max: webhooksRememberedMax,
  })
  return {
    note: (tenantId, url, ok, nowMs) => {
      const known = latest.get(tenantId)
      const noted = known?.url === url ? known.noted : []
      if (noted.length === 0) {
        if (ok) return false
        latest.set(tenantId, { url, noted })
      }
      noted.push({ ok, atMs: nowMs })
      while (noted.length > breakerAttemptsMax || nowMs - noted[0]!.atMs > breakerWindowMs) {
        noted.shift()
      }
      const failed = noted.reduce((sum, one) => sum + (one.ok ? 0 : 1), 0)
      if (failed === 0) latest.delete(tenantId)
      return noted.length >= breakerAttemptsMin && failed >= noted.length * breakerFailedShare
    },
  }
}

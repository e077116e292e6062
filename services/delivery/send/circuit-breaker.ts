/**
 * Decides when a webhook's circuit opens, from the latest attempts of this process. The state of
 * the circuit and its half-open probes are in Postgres, for all processes.
 */
import { LRUCache } from 'lru-cache'
import {
  breakerAttemptsMax,
  breakerAttemptsMin,
  breakerFailedShare,
  breakerWindowMs,
  webhooksCachedMax,
} from '#shared/core/base/limits/deliveries.ts'

type CircuitBreaker = {
  /**
   * Records an attempt. A half-open probe that succeeds ends what was before it.
   * @returns whether the webhook's circuit must open
   */
  record: (tenantId: string, url: string, attempt: Attempt) => boolean
}

type Attempt = {
  ok: boolean
  /** Whether it is a half-open probe. */
  probe: boolean
  /** On the monotonic clock. */
  atMs: number
}

/** Keeps no state of webhooks whose attempts succeed. */
export function createCircuitBreaker(): CircuitBreaker {
  // One webhook per tenant; the least recently used is evicted first.
  const latest = new LRUCache<string, { url: string; attempts: Attempt[] }>({
    max: webhooksCachedMax,
  })
  return {
    record: (tenantId, url, attempt) => {
      const { ok, probe, atMs } = attempt
      if (ok && probe) {
        latest.delete(tenantId)
        return false
      }
      const found = latest.get(tenantId)
      const attempts = found?.url === url ? found.attempts : []
      if (attempts.length === 0) {
        if (ok) return false
        latest.set(tenantId, { url, attempts })
      }
      attempts.push(attempt)
      while (attempts.length > breakerAttemptsMax || atMs - attempts[0]!.atMs > breakerWindowMs) {
        attempts.shift()
      }
      const failed = attempts.reduce((sum, one) => sum + (one.ok ? 0 : 1), 0)
      if (failed === 0) latest.delete(tenantId)
      const isFailing = failed >= attempts.length * breakerFailedShare
      return !ok && isFailing && attempts.length >= breakerAttemptsMin
    },
  }
}

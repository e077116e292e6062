/**
 * Limits the webhook requests in flight: in total, per tenant, and for retries within both, so that
 * first attempts always have capacity that retries cannot take. A tenant's limit adapts to its
 * receiver: it halves while requests hang and doubles while they succeed quickly. A tenant whose
 * receiver is dead ends up with a limit of one.
 */
import { LRUCache } from 'lru-cache'
import { tenantLimitsCachedMax } from '#shared/core/base/limits/deliveries.ts'
import type { DeliveryQueue } from '#shared/io/deliveries/claim-deliveries.ts'

export type SendLimits = {
  /** Requests in flight in total. */
  total: number
  /** Retries among them. */
  retries: number
  /** The largest limit of one tenant, for a receiver that answers quickly. */
  perTenant: number
}

export type SendLimiter = {
  /** Acquires up to `wanted` slots for a queue. @returns how many */
  acquire: (queue: DeliveryQueue, wanted: number) => number
  release: (queue: DeliveryQueue, count: number) => void
  /** Adapts the tenant's limit to a request that ended. Call it before its slot is released. */
  recordRequest: (tenantId: string, durationMs: number, ok: boolean) => void
  available: () => number
  inFlight: () => number
}

/** Enough for a quick receiver, and a small risk with an unknown one. */
const initialLimit = 4

/** A quick request doubles the tenant's limit; a slow one halves it. */
const quickMs = 2_000
const slowMs = 5_000

type TenantInFlight = { all: number; retries: number; limit: number }

export function createSendLimiter(limits: SendLimits): SendLimiter {
  const tenants = new Map<string, TenantInFlight>()
  // Limits of tenants with nothing in flight. An evicted tenant starts at the initial limit again.
  const idleLimits = new LRUCache<string, number>({ max: tenantLimitsCachedMax })
  let inFlight = 0
  let retriesInFlight = 0

  const findTenant = (tenantId: string): TenantInFlight =>
    tenants.get(tenantId) ?? {
      all: 0,
      retries: 0,
      limit: Math.min(idleLimits.get(tenantId) ?? initialLimit, limits.perTenant),
    }
  const capacityOf = ({ tenantId, retry }: DeliveryQueue): number => {
    const tenant = findTenant(tenantId)
    const { limit } = tenant
    const left = Math.min(limits.total - inFlight, limit - tenant.all)
    if (!retry) return Math.max(0, left)
    // Retries get half of the tenant's limit: its new alerts do not wait behind its own backlog.
    const retriesLeft = Math.max(1, limit >> 1) - tenant.retries
    return Math.max(0, Math.min(left, limits.retries - retriesInFlight, retriesLeft))
  }
  const add = ({ tenantId, retry }: DeliveryQueue, count: number): void => {
    const tenant = findTenant(tenantId)
    tenant.all += count
    inFlight += count
    if (retry) {
      tenant.retries += count
      retriesInFlight += count
    }
    if (tenant.all > 0) {
      tenants.set(tenantId, tenant)
      return
    }
    tenants.delete(tenantId)
    if (tenant.limit === initialLimit) idleLimits.delete(tenantId)
    else idleLimits.set(tenantId, tenant.limit)
  }

  return {
    acquire: (queue, wanted) => {
      const count = Math.min(wanted, capacityOf(queue))
      if (count > 0) add(queue, count)
      return count
    },
    release: (queue, count) => {
      if (count > 0) add(queue, -count)
    },
    recordRequest: (tenantId, durationMs, ok) => {
      const tenant = tenants.get(tenantId)
      if (tenant === undefined) return
      const { limit } = tenant
      // A receiver that fails quickly keeps its limit: otherwise its backlog goes out in one burst.
      const afterQuick = ok ? limit * 2 : limit
      const afterOther = durationMs < slowMs ? limit : limit >> 1
      const next = durationMs < quickMs ? afterQuick : afterOther
      tenant.limit = Math.max(1, Math.min(next, limits.perTenant))
    },
    available: () => limits.total - inFlight,
    inFlight: () => inFlight,
  }
}

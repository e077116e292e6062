/** Bounds concurrent queries per tenant, so that no tenant takes all connections to a database. */
import { unavailable } from '#shared/core/http/problem.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantSemaphore, type SemaphoreLimits } from '#shared/io/process/tenant-semaphore.ts'

/** Bounds one kind of queries; those without a tenant share the bounds of one. */
export type QueryLimiter = <Query extends { tenantId?: string | undefined }, Result>(
  name: string,
  limits: SemaphoreLimits,
  run: (query: Query) => Promise<Result>,
) => (query: Query) => Promise<Result>

/**
 * @param counter the name of the metric that counts rejected queries
 * @returns a limiter; what it bounds throws Problem unavailable when its tenant waited too long
 */
export function createQueryLimiter(metrics: Metrics, counter: string): QueryLimiter {
  const rejected = metrics.counter(
    counter,
    'Queries rejected because their tenant had too many in flight',
    ['query'],
  )
  return (name, limits, run) => {
    const semaphore = createTenantSemaphore(limits)
    return async (query) => {
      const permit = await semaphore.acquire(query.tenantId ?? '')
      if (permit === null) {
        rejected.inc({ query: name })
        throw unavailable('The tenant has too many queries in flight.')
      }
      try {
        return await run(query)
      } finally {
        permit.release()
      }
    }
  }
}

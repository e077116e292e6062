/**
 * A semaphore shared fairly by tenants: it bounds concurrent work per tenant and in total. Callers
 * beyond the bounds wait in a first-in-first-out queue per tenant, with a maximum length and wait.
 * Free permits go to the queues in round-robin order: a long queue of one tenant delays no other.
 */

export type SemaphoreLimits = {
  /** Permits of one tenant. */
  perTenant: number
  total: number
  /** Maximum length of one tenant's queue. */
  queuePerTenant: number
  waitMs: number
}

export type Permit = {
  /** Releases the permit. Calling it again does nothing. */
  release: () => void
}

export type TenantSemaphore = {
  /** @returns a permit, or null when the tenant's queue is full or the wait is over */
  acquire: (tenantId: string) => Promise<Permit | null>
}

type Waiter = { start: () => void }

export function createTenantSemaphore(limits: SemaphoreLimits): TenantSemaphore {
  const running = new Map<string, number>()
  /** The queues of tenants that wait, in round-robin order. */
  const queues = new Map<string, Set<Waiter>>()
  let total = 0

  const isFree = (tenantId: string) =>
    total < limits.total && (running.get(tenantId) ?? 0) < limits.perTenant

  function issuePermit(tenantId: string): Permit {
    total++
    running.set(tenantId, (running.get(tenantId) ?? 0) + 1)
    let released = false
    const release = () => {
      if (released) return
      released = true
      total--
      const left = running.get(tenantId)! - 1
      if (left === 0) running.delete(tenantId)
      else running.set(tenantId, left)
      startNext()
    }
    return { release }
  }

  function startNext(): void {
    for (const [tenantId, queue] of queues) {
      if (!isFree(tenantId)) continue
      const [next] = queue
      dequeue(tenantId, next!)
      // Move the tenant to the end of the round, if it still has waiters.
      if (queues.delete(tenantId)) queues.set(tenantId, queue)
      next!.start()
      return
    }
  }

  function dequeue(tenantId: string, waiter: Waiter): void {
    const queue = queues.get(tenantId)!
    queue.delete(waiter)
    if (queue.size === 0) queues.delete(tenantId)
  }

  return {
    acquire: async (tenantId) => {
      if (isFree(tenantId)) return issuePermit(tenantId)
      const queue = queues.get(tenantId) ?? new Set()
      if (queue.size >= limits.queuePerTenant) return null
      queues.set(tenantId, queue)
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          dequeue(tenantId, waiter)
          resolve(null)
        }, limits.waitMs)
        const waiter: Waiter = {
          start: () => {
            clearTimeout(timer)
            resolve(issuePermit(tenantId))
          },
        }
        queue.add(waiter)
      })
    },
  }
}

/**
 * Who may ask a database now: a few queries of each tenant and a few in all; the others wait, each
 * tenant's in the order in which they came, and not without end. Free places go round among the
 * tenants that wait, so a long queue of one delays no other.
 */

export type TurnLimits = {
  /** Queries of one tenant at once. */
  ofTenant: number
  inAll: number
  /** How many of one tenant may wait. */
  waiting: number
  waitMs: number
}

export type Turn = {
  /** Ends the turn; calling it again does nothing. */
  end: () => void
  /**
   * Gives the place to other tenants although the query goes on: it still counts among its own
   * tenant's. Calling it again does nothing.
   */
  yieldPlace: () => void
}

export type Turns = {
  /** Resolves with a turn, or with null when there is none to be had in time. */
  take: (tenantId: string) => Promise<Turn | null>
}

type Waiting = { begin: () => void }

export function createTurns(limits: TurnLimits): Turns {
  const running = new Map<string, number>()
  /** The tenants that wait, in the order in which they get the next places. */
  const queues = new Map<string, Set<Waiting>>()
  let inAll = 0

  const hasPlace = (tenantId: string) =>
    inAll < limits.inAll && (running.get(tenantId) ?? 0) < limits.ofTenant

  function begin(tenantId: string): Turn {
    inAll++
    running.set(tenantId, (running.get(tenantId) ?? 0) + 1)
    let hasItsPlace = true
    let ended = false
    const yieldPlace = () => {
      if (!hasItsPlace) return
      hasItsPlace = false
      inAll--
      beginNext()
    }
    const end = () => {
      if (ended) return
      ended = true
      const left = running.get(tenantId)! - 1
      if (left === 0) running.delete(tenantId)
      else running.set(tenantId, left)
      if (hasItsPlace) yieldPlace()
      else beginNext()
    }
    return { end, yieldPlace }
  }

  function beginNext(): void {
    for (const [tenantId, queue] of queues) {
      if (!hasPlace(tenantId)) continue
      const [next] = queue
      leave(tenantId, next!)
      // To the end of the line, with those that still wait.
      if (queues.delete(tenantId)) queues.set(tenantId, queue)
      next!.begin()
      return
    }
  }

  function leave(tenantId: string, waiting: Waiting): void {
    const queue = queues.get(tenantId)!
    queue.delete(waiting)
    if (queue.size === 0) queues.delete(tenantId)
  }

  return {
    take: async (tenantId) => {
      if (hasPlace(tenantId)) return begin(tenantId)
      const queue = queues.get(tenantId) ?? new Set()
      if (queue.size >= limits.waiting) return null
      queues.set(tenantId, queue)
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          leave(tenantId, mine)
          resolve(null)
        }, limits.waitMs)
        const mine: Waiting = {
          begin: () => {
            clearTimeout(timer)
            resolve(begin(tenantId))
          },
        }
        queue.add(mine)
      })
    },
  }
}

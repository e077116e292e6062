/**
 * Who may ask a database now: a few questions of each tenant and a few in all; the others wait for
 * their turn in the order in which they came, and not without end. So whatever one tenant asks, the
 * others find a place.
 */

export type TurnLimits = {
  /** Questions of one tenant at once. */
  ofTenant: number
  inAll: number
  /** How many of one tenant may wait. */
  waiting: number
  waitMs: number
}

/** Ends the turn; calling it again does nothing. */
export type EndTurn = () => void

export type Turns = {
  /** Resolves with the turn's end, or with null when there is none to be had in time. */
  take: (tenantId: string) => Promise<EndTurn | null>
}

type Waiting = { tenantId: string; begin: () => void }

export function createTurns(limits: TurnLimits): Turns {
  const running = new Map<string, number>()
  const queue: Waiting[] = []
  const waiting = new Map<string, number>()
  let inAll = 0

  const hasPlace = (tenantId: string) =>
    inAll < limits.inAll && (running.get(tenantId) ?? 0) < limits.ofTenant

  function begin(tenantId: string): EndTurn {
    inAll++
    running.set(tenantId, (running.get(tenantId) ?? 0) + 1)
    let ended = false
    return () => {
      if (ended) return
      ended = true
      inAll--
      const left = running.get(tenantId)! - 1
      if (left === 0) running.delete(tenantId)
      else running.set(tenantId, left)
      beginNext()
    }
  }

  const countWaiting = (tenantId: string, change: 1 | -1): void => {
    const count = (waiting.get(tenantId) ?? 0) + change
    if (count === 0) waiting.delete(tenantId)
    else waiting.set(tenantId, count)
  }

  function beginNext(): void {
    const index = queue.findIndex(({ tenantId }) => hasPlace(tenantId))
    if (index >= 0) queue.splice(index, 1)[0]!.begin()
  }

  return {
    take: async (tenantId) => {
      if (hasPlace(tenantId)) return begin(tenantId)
      if ((waiting.get(tenantId) ?? 0) >= limits.waiting) return null
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          queue.splice(queue.indexOf(mine), 1)
          countWaiting(tenantId, -1)
          resolve(null)
        }, limits.waitMs)
        const mine: Waiting = {
          tenantId,
          begin: () => {
            clearTimeout(timer)
            countWaiting(tenantId, -1)
            resolve(begin(tenantId))
          },
        }
        countWaiting(tenantId, 1)
        queue.push(mine)
      })
    },
  }
}

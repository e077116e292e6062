/**
 * A budget in bytes for bodies that are not complete, over all connections. Who sends slowly costs
 * memory for as long as it takes; over the budget the oldest of these bodies is given up, which is
 * the slowest of them.
 */
export type IncompleteBody = {
  /** Gives it up: answers its sender and ends the connection. */
  cut: () => void
}

export type BodyBudget = {
  /** Counts bytes that are held of a body; may cut this one or an older one. */
  hold: (body: IncompleteBody, bytes: number) => void
  /** The body is complete, refused or gone: nothing of it is held as incomplete any more. */
  release: (body: IncompleteBody) => void
  bytes: () => number
}

/** @param bytesMax over all bodies */
export function createBodyBudget(bytesMax: number): BodyBudget {
  /** The oldest first. */
  const held = new Map<IncompleteBody, number>()
  let total = 0
  const release = (body: IncompleteBody): void => {
    total -= held.get(body) ?? 0
    held.delete(body)
  }
  return {
    hold: (body, bytes) => {
      held.set(body, (held.get(body) ?? 0) + bytes)
      total += bytes
      while (total > bytesMax) {
        const [oldest] = held.keys()
        if (oldest === undefined) return
        release(oldest)
        oldest.cut()
      }
    },
    release,
    bytes: () => total,
  }
}

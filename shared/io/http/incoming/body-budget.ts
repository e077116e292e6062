/**
 * Limits the memory of incomplete bodies over all connections. Above the limit the oldest
 * incomplete body is refused: it belongs to the slowest client.
 */
export type IncompleteBody = {
  /** Refuses it and ends its connection. */
  cut: () => void
}

export type BodyBudget = {
  /** Adds received bytes of a body; may cut this body or an older one. */
  add: (body: IncompleteBody, bytes: number) => void
  /** Removes a body that is complete, refused or disconnected. */
  release: (body: IncompleteBody) => void
  /** Bytes of all incomplete bodies. */
  bytes: () => number
}

/** @param bytesMax over all bodies */
export function createBodyBudget(bytesMax: number): BodyBudget {
  /** Oldest first. */
  const sizes = new Map<IncompleteBody, number>()
  let total = 0
  const release = (body: IncompleteBody): void => {
    total -= sizes.get(body) ?? 0
    sizes.delete(body)
  }
  return {
    add: (body, bytes) => {
      sizes.set(body, (sizes.get(body) ?? 0) + bytes)
      total += bytes
      while (total > bytesMax) {
        const [oldest] = sizes.keys()
        if (oldest === undefined) return
        release(oldest)
        oldest.cut()
      }
    },
    release,
    bytes: () => total,
  }
}

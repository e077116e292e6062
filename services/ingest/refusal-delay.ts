/**
 * Holds the answer to a tenant over a limit of its own for a moment. A client that sends its next
 * request as soon as it has an answer then costs this edge a few requests a second instead of
 * thousands. So many answers are held at once and no more: the others leave at once, since each
 * held one keeps a connection that another tenant may need.
 */

export type RefusalDelay = {
  /** Calls `answer` after a moment, or at once. */
  hold: (answer: () => void) => void
  /** Answers that are held now. */
  held: () => number
}

export type RefusalDelayOptions = {
  later: (run: () => void, ms: number) => void
  /** A process that stops answers at once. */
  stopping: () => boolean
  holdMs: number
  heldMax: number
}

export function createRefusalDelay(options: RefusalDelayOptions): RefusalDelay {
  const { later, stopping, holdMs, heldMax } = options
  let held = 0
  return {
    held: () => held,
    hold: (answer) => {
      if (held >= heldMax || stopping()) return answer()
      held++
      later(() => {
        held--
        answer()
      }, holdMs)
    },
  }
}

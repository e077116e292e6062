/**
 * Faults of edges while credentials are rotated: paused, killed and started again, disconnected
 * from NATS, a wall clock that jumps. A fault has ended when its edge accepts telemetry again.
 */
import type { EdgeProcess } from '../support/rotations/edge-processes.ts'

export const faultKinds = ['pause', 'kill', 'cut', 'clock'] as const
export type FaultKind = (typeof faultKinds)[number]

export type EdgeFaults = {
  /**
   * Begins a fault that lasts until `until` settles. Does nothing when the edge already has a
   * fault.
   */
  begin: (edge: number, kind: FaultKind, until: Promise<unknown>) => void
  /** Edges with a fault that has not ended. A wrong clock does not count. */
  active: () => number
  /** Resolves when every fault has ended. */
  over: () => Promise<void>
}

/** An edge that takes longer to recover fails the run. */
const recoveryLimitMs = 20_000

export function createEdgeFaults(edges: EdgeProcess[]): EdgeFaults {
  const active = new Map<number, Promise<void>>()

  const inject = async (edge: EdgeProcess, kind: FaultKind, until: Promise<unknown>) => {
    if (kind === 'pause') edge.pause()
    else if (kind === 'kill') await edge.kill()
    else edge.cut()
    await until
    const endedMs = performance.now()
    if (kind === 'pause') edge.resume()
    else if (kind === 'kill') edge.launch()
    else edge.mend()
    while (!(await edge.isReady())) {
      if (performance.now() - endedMs > recoveryLimitMs) {
        throw new Error(`${edge.name} did not recover from "${kind}": ${await edge.describe()}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  return {
    begin: (at, kind, until) => {
      const edge = edges[at]!
      if (active.has(at)) return
      if (kind === 'clock') {
        edge.jumpClock()
        return
      }
      const ended = inject(edge, kind, until)
      active.set(at, ended)
      // An edge that does not recover stays in the list, so `over` rejects.
      ended.then(
        () => active.delete(at),
        () => undefined,
      )
    },
    active: () => active.size,
    over: async () => {
      await Promise.all(active.values())
    },
  }
}

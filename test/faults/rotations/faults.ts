/**
 * What happens to edges while credentials are rotated: paused, killed and started again, cut off
 * from NATS, a wall clock that jumps. A fault is over when its edge takes telemetry again.
 */
import type { EdgeProcess } from '../support/rotations/edge-processes.ts'

export const faultKinds = ['pause', 'kill', 'cut', 'clock'] as const
export type FaultKind = (typeof faultKinds)[number]

export type EdgeFaults = {
  /**
   * Begins a fault, unless its edge has one already; the edge is well again some time after
   * `until` has been settled.
   */
  begin: (edge: number, kind: FaultKind, until: Promise<unknown>) => void
  /** Edges that are at fault, or have not recovered. A wrong clock is no fault to recover from. */
  active: () => number
  /** Resolves when every edge is well, and stays so. */
  over: () => Promise<void>
  counts: Record<FaultKind, number>
  /** How long edges took from the end of a fault to taking telemetry again. */
  recoveriesMs: number[]
}

/** How long an edge may take to recover before the run is given up. */
const recoveryLimitMs = 20_000

export function createEdgeFaults(edges: EdgeProcess[]): EdgeFaults {
  const active = new Map<number, Promise<void>>()
  const counts = { pause: 0, kill: 0, cut: 0, clock: 0 }
  const recoveriesMs: number[] = []

  const suffer = async (edge: EdgeProcess, kind: FaultKind, until: Promise<unknown>) => {
    if (kind === 'pause') edge.pause()
    else if (kind === 'kill') await edge.kill()
    else edge.cut()
    await until
    const endedMs = performance.now()
    if (kind === 'pause') edge.resume()
    else if (kind === 'kill') edge.start()
    else edge.mend()
    while (!(await edge.ready())) {
      if (performance.now() - endedMs > recoveryLimitMs) {
        throw new Error(`${edge.name} did not recover from "${kind}": ${await edge.explain()}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    recoveriesMs.push(performance.now() - endedMs)
  }

  return {
    begin: (at, kind, until) => {
      const edge = edges[at]!
      if (active.has(at)) return
      counts[kind]++
      if (kind === 'clock') {
        edge.jumpClock()
        return
      }
      const ended = suffer(edge, kind, until)
      active.set(at, ended)
      // One that does not recover stays in the list: `over` tells.
      ended.then(
        () => active.delete(at),
        () => undefined,
      )
    },
    active: () => active.size,
    over: async () => {
      await Promise.all(active.values())
    },
    counts,
    recoveriesMs,
  }
}

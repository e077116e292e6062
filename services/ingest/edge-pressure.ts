/**
 * How busy this edge is, from 0 to 1: the part of the time that its event loop worked, or how full
 * the queue for the broker is, whichever is more. Waiting for a CPU that others use counts as work,
 * so an edge on a crowded machine knows that it can take less.
 */
import { performance } from 'node:perf_hooks'

/**
 * @param queueFill how full the queue is, from 0 to 1 or more
 * @returns reads the pressure since the last call
 */
export function createPressureReader(queueFill: () => number): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return Math.min(1, Math.max(utilization, queueFill()))
  }
}

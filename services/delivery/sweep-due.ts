/**
 * Finds what no hint will tell of: retries that have become due, deliveries whose hint was lost or
 * whose process died, tenants that were resumed. The only thing that runs while nothing happens.
 */
import type { Lane } from '#shared/io/delivery-claim-store.ts'
import type { Log } from '#shared/io/log.ts'
import type { DeliveryMetrics } from './metrics.ts'

export type SweepDeps = {
  findDueLanes: (nowMs: number) => Promise<(Lane & { oldestDueAtMs: number })[]>
  countDue: (nowMs: number) => Promise<number>
  wake: (lane: Lane) => void
  nowMs: () => number
  everyMs: number
  log: Log
  metrics: DeliveryMetrics
}

/** Counting walks what is due, so it is done more rarely than finding. */
const sweepsPerCount = 5

/** Sweeps at once and then again and again, each time a pause after the last one ended. */
export function startSweep(deps: SweepDeps): { stop: () => Promise<void> } {
  const { log, metrics } = deps
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let failing = false
  let sweeps = 0

  const sweep = async (): Promise<void> => {
    const nowMs = deps.nowMs()
    try {
      const lanes = await deps.findDueLanes(nowMs)
      for (const { tenantId, retry } of lanes) deps.wake({ tenantId, retry })
      const oldestMs = Math.min(nowMs, ...lanes.map(({ oldestDueAtMs }) => oldestDueAtMs))
      metrics.oldestDueSeconds.set((nowMs - oldestMs) / 1_000)
      if (sweeps++ % sweepsPerCount === 0) metrics.due.set(await deps.countDue(nowMs))
      metrics.sweeps.inc({ result: 'ok' })
      if (failing) log.info('the sweep for due deliveries works again')
      failing = false
    } catch (error) {
      metrics.sweeps.inc({ result: 'failed' })
      if (!failing) log.warn({ err: error }, 'the sweep for due deliveries fails')
      failing = true
    }
  }
  const repeat = async (): Promise<void> => {
    await sweep()
    if (!stopped) timer = setTimeout(() => (running = repeat()), deps.everyMs)
  }
  let running = repeat()
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}

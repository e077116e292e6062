/**
 * Finds what no hint will tell of: retries that have become due, deliveries whose hint was lost or
 * whose process died, tenants that were resumed. The only thing that runs while nothing happens.
 */
import type { DueLane, Lane } from '#shared/io/deliveries/delivery-claim-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { DeliveryMetrics } from '../metrics.ts'

export type SweepDeps = {
  findDueLanes: () => Promise<DueLane[]>
  countDue: () => Promise<number>
  wake: (lane: Lane) => void
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
    try {
      const lanes = await deps.findDueLanes()
      for (const { tenantId, retry } of lanes) deps.wake({ tenantId, retry })
      const oldestMs = lanes.reduce((most, { overdueMs }) => Math.max(most, overdueMs), 0)
      metrics.oldestDueSeconds.set(oldestMs / 1_000)
      if (sweeps++ % sweepsPerCount === 0) metrics.due.set(await deps.countDue())
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

/**
 * Periodically finds due deliveries without a hint: retries, deliveries whose hint was lost or
 * whose process died, and those of resumed tenants.
 */
import type { DeliveryQueue } from '#shared/io/deliveries/claim-deliveries.ts'
import type { DueQueue } from '#shared/io/deliveries/find-due-deliveries.ts'
import type { FailingWebhook } from '#shared/io/deliveries/find-failing-webhooks.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { DeliveryMetrics } from '../metrics.ts'

type SweepDeps = {
  findDueQueues: () => Promise<DueQueue[]>
  countDue: () => Promise<number>
  findFailing: () => Promise<FailingWebhook[]>
  wake: (queue: DeliveryQueue) => void
  everyMs: number
  monotonicMs: () => number
  log: Log
  metrics: DeliveryMetrics
}

/** Counting reads every due delivery and every webhook, so it runs less often. */
const sweepsPerCount = 5

/** Sweeps at once, and again `everyMs` after the end of each sweep. */
export function startSweep(deps: SweepDeps): { stop: () => Promise<void> } {
  const { log, metrics, monotonicMs } = deps
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let failing = false
  let sweeps = 0
  let oldestMs = 0
  let sweptAtMs = monotonicMs()

  const sweep = async (): Promise<void> => {
    try {
      const queues = await deps.findDueQueues()
      for (const { tenantId, retry } of queues) deps.wake({ tenantId, retry })
      oldestMs = queues.reduce((most, { overdueMs }) => Math.max(most, overdueMs), 0)
      sweptAtMs = monotonicMs()
      metrics.oldestDueSeconds.set(oldestMs / 1_000)
      if (sweeps++ % sweepsPerCount === 0) {
        metrics.due.set(await deps.countDue())
        const webhooks = await deps.findFailing()
        metrics.failing.reset()
        for (const { tenantId, forMs } of webhooks) {
          metrics.failing.set({ tenant: tenantId }, forMs / 1_000)
        }
      }
      metrics.sweeps.inc({ result: 'ok' })
      if (failing) log.info('the sweep for due deliveries works again')
      failing = false
    } catch (error) {
      metrics.sweeps.inc({ result: 'failed' })
      // What became due meanwhile waits as long as this at most.
      metrics.oldestDueSeconds.set((oldestMs + monotonicMs() - sweptAtMs) / 1_000)
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

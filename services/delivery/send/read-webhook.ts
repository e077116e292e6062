/**
 * The webhook of a tenant as it is now, for many senders at once: everybody who asks while a read
 * is under way shares the next one. An answer is therefore never older than its question.
 */
import type { CurrentWebhook, WebhooksRead } from '#shared/io/deliveries/delivery-store.ts'

/** A webhook with the moment, on the monotonic clock, until which its secret may sign. */
export type FreshWebhook = CurrentWebhook & { signUntilMs: number }

export type ReadWebhook = (tenantId: string) => Promise<FreshWebhook | null>

export type ReadWebhookDeps = {
  /** One statement for many tenants. */
  read: (tenantIds: readonly string[]) => Promise<WebhooksRead>
  /** Lets what is read from now on sign for this long. */
  extendLease: (leaseMs: number) => Promise<void>
  monotonicMs: () => number
  /** How many statements may be under way at once. */
  readsMax?: number
}

type Waiting = {
  tenantId: string
  resolve: (webhook: FreshWebhook | null) => void
  reject: (error: unknown) => void
}

/** Reads webhooks whose secrets may still sign when they arrive, however slow the database is. */
export function createReadWebhook(deps: ReadWebhookDeps): ReadWebhook {
  const { read, extendLease, monotonicMs, readsMax = 2 } = deps
  let waiting: Waiting[] = []
  let reads = 0

  const readInTime = async (tenantIds: readonly string[]) => {
    for (;;) {
      const begunMs = monotonicMs()
      const { webhooks, secretLeaseMs } = await read(tenantIds)
      const tookMs = monotonicMs() - begunMs
      // Half of it is left for signing, and for a read that takes somewhat longer.
      if (tookMs > secretLeaseMs / 2) await extendLease(2 * tookMs)
      const signUntilMs = begunMs + secretLeaseMs
      if (monotonicMs() < signUntilMs) return { webhooks, signUntilMs }
    }
  }
  const readNext = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    reads += 1
    try {
      const tenantIds = [...new Set(batch.map(({ tenantId }) => tenantId))]
      const { webhooks, signUntilMs } = await readInTime(tenantIds)
      for (const { tenantId, resolve } of batch) {
        const webhook = webhooks.get(tenantId)
        resolve(webhook === undefined ? null : { ...webhook, signUntilMs })
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      reads -= 1
      if (waiting.length > 0) void readNext()
    }
  }

  return (tenantId) =>
    new Promise((resolve, reject) => {
      waiting.push({ tenantId, resolve, reject })
      if (reads < readsMax) void readNext()
    })
}

/**
 * Reads the current webhook of a tenant. Requests that arrive during a read share the next one, so
 * a result is never older than its request.
 */
import type { CurrentWebhook, WebhooksRead } from '#shared/io/deliveries/read-webhooks.ts'

/** A webhook with the monotonic time until which its secret may sign. */
export type FreshWebhook = CurrentWebhook & { signUntilMs: number }

export type ReadWebhook = (tenantId: string) => Promise<FreshWebhook | null>

type ReadWebhookDeps = {
  /** One statement for many tenants. */
  read: (tenantIds: readonly string[]) => Promise<WebhooksRead>
  /** Extends the lease of secrets that are read from now on. */
  extendLease: (leaseMs: number) => Promise<void>
  monotonicMs: () => number
  /** Maximum number of concurrent statements. */
  readsMax?: number
}

type Request = {
  tenantId: string
  resolve: (webhook: FreshWebhook | null) => void
  reject: (error: unknown) => void
}

/** Retries until the secrets may still sign when they arrive, however slow the database is. */
export function createReadWebhook(deps: ReadWebhookDeps): ReadWebhook {
  const { read, extendLease, monotonicMs, readsMax = 2 } = deps
  let waiting: Request[] = []
  let reads = 0

  const readInTime = async (tenantIds: readonly string[]) => {
    for (;;) {
      const startMs = monotonicMs()
      const { webhooks, secretLeaseMs } = await read(tenantIds)
      const tookMs = monotonicMs() - startMs
      // Leave half of the lease for signing and for a slower read.
      if (tookMs > secretLeaseMs / 2) await extendLease(2 * tookMs)
      const signUntilMs = startMs + secretLeaseMs
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

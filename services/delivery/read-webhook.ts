/**
 * The webhook of a tenant as it is now, for many senders at once: everybody who asks while a read
 * is under way shares the next one. An answer is therefore never older than its question.
 */
import type { CurrentWebhook } from '#shared/io/delivery-store.ts'

/** A webhook with the moment, on the monotonic clock, after which it may have changed. */
export type FreshWebhook = CurrentWebhook & { readAtMs: number }

export type ReadWebhook = (tenantId: string) => Promise<FreshWebhook | null>

type Waiting = {
  tenantId: string
  resolve: (webhook: FreshWebhook | null) => void
  reject: (error: unknown) => void
}

/**
 * @param read one statement for many tenants
 * @param readsMax how many statements may be under way at once
 */
export function createReadWebhook(
  read: (tenantIds: readonly string[]) => Promise<Map<string, CurrentWebhook>>,
  monotonicMs: () => number,
  readsMax = 2,
): ReadWebhook {
  let waiting: Waiting[] = []
  let reads = 0

  const readNext = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    reads += 1
    const readAtMs = monotonicMs()
    try {
      const found = await read([...new Set(batch.map(({ tenantId }) => tenantId))])
      for (const { tenantId, resolve } of batch) {
        const webhook = found.get(tenantId)
        resolve(webhook === undefined ? null : { ...webhook, readAtMs })
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

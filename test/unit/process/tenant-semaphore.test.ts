// The semaphore of tenants: bounds per tenant and in total, and round-robin order.
import { describe, expect, it } from 'vitest'
import { createTenantSemaphore, type Permit } from '#shared/io/process/tenant-semaphore.ts'

const limits = { perTenant: 1, total: 2, queuePerTenant: 8, waitMs: 60_000 }

/** Acquires permits under names and records the order in which they start. */
function createRun(own: Partial<typeof limits> = {}) {
  const semaphore = createTenantSemaphore({ ...limits, ...own })
  const started: string[] = []
  const permits = new Map<string, Permit>()
  const acquire = (name: string) =>
    semaphore.acquire(name[0]!).then((permit) => {
      if (permit === null) return started.push(`${name} rejected`)
      permits.set(name, permit)
      return started.push(name)
    })
  /** Resolves after everything that can start has started. */
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { acquire, permits, started, settled }
}

describe('the semaphore of tenants', () => {
  it('gives one tenant no more permits than its limit', async () => {
    const { acquire, started, settled } = createRun()
    for (const name of ['a1', 'a2', 'b1']) void acquire(name)
    await settled()
    expect(started).toEqual(['a1', 'b1'])
  })

  it('serves the queues in round-robin order: a long queue delays no other tenant', async () => {
    const { acquire, started, permits, settled } = createRun({ total: 1 })
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) void acquire(name)
    for (let n = 1; n <= 7; n++) {
      await settled()
      permits.get(started.at(-1)!)!.release()
    }
    expect(started).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  it('rejects a caller when the queue is full, and a waiter when its wait is over', async () => {
    const { acquire, started, settled } = createRun({ queuePerTenant: 1, waitMs: 10 })
    const waited = [acquire('a1'), acquire('a2'), acquire('a3')]
    await settled()
    expect(started).toEqual(['a1', 'a3 rejected'])
    await Promise.all(waited)
    expect(started).toEqual(['a1', 'a3 rejected', 'a2 rejected'])
  })
})

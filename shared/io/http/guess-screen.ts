/**
 * Tells what exists from guesses, before a secret that a stranger sent is looked up for good. Many
 * are asked of the database in one query, and each query takes from all source addresses in turn:
 * no number of guesses makes others wait for more than a query or two, and an address with a full
 * queue is refused itself.
 */
import {
  guessesPerQuery,
  guessesWaitingMax,
  guessesWaitingPerSourceMax,
} from '#shared/core/base/limits/http.ts'
import { toSourceKey } from './connection-guard.ts'

export type GuessScreen = {
  /**
   * Whether a secret exists; null when too many of its source address, or of all, wait.
   * @param secretHash of the secret: the secret itself is never looked up
   */
  exists: (secretHash: Buffer, address: string) => Promise<boolean | null>
}

type Waiter = {
  secretHash: Buffer
  resolve: (exists: boolean) => void
  reject: (error: unknown) => void
}

/** @param findExisting queries the database: which of these hashes exist */
export function createGuessScreen(
  findExisting: (secretHashes: readonly Buffer[]) => Promise<readonly Buffer[]>,
): GuessScreen {
  /** By source address, in the order in which they are served next. */
  const queues = new Map<string, Waiter[]>()
  let waiting = 0
  let running = false

  const takeBatch = (): Waiter[] => {
    const batch: Waiter[] = []
    // A source with more is set again, behind the others, and comes up again in this loop.
    for (const [source, queue] of queues) {
      batch.push(queue.shift()!)
      queues.delete(source)
      if (queue.length > 0) queues.set(source, queue)
      if (batch.length === guessesPerQuery) break
    }
    waiting -= batch.length
    return batch
  }
  const answer = async (batch: readonly Waiter[]) => {
    try {
      const existing = await findExisting(batch.map(({ secretHash }) => secretHash))
      const found = new Set(existing.map((one) => one.toString('base64')))
      for (const { secretHash, resolve } of batch) {
        resolve(found.has(secretHash.toString('base64')))
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
  const run = async () => {
    if (running) return
    running = true
    while (queues.size > 0) await answer(takeBatch())
    running = false
  }
  return {
    exists: async (secretHash, address) => {
      const source = toSourceKey(address)
      const queue = queues.get(source) ?? []
      if (queue.length >= guessesWaitingPerSourceMax || waiting >= guessesWaitingMax) return null
      return new Promise((resolve, reject) => {
        queue.push({ secretHash, resolve, reject })
        queues.set(source, queue)
        waiting++
        void run()
      })
    },
  }
}

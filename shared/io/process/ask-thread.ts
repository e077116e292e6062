/**
 * Runs a module in a thread of its own that answers once, for work that requests must not wait for.
 */
import { Worker } from 'node:worker_threads'

/** Why there is no answer: it took too long, needed too much memory, or ended by itself. */
export type ThreadFault = 'time_limit' | 'memory' | 'ended'

/**
 * @param module posts one message, its answer
 * @param options.limitMs how long it may take
 * @param options.heapMiB of the thread; as much as a process may have when left out
 * @returns the answer, or why there is none; the thread has ended then
 */
export async function askThread<Answer>(
  module: URL,
  options: { name: string; data: unknown; limitMs: number; heapMiB?: number },
): Promise<Answer | ThreadFault> {
  const { name, data, limitMs, heapMiB } = options
  const worker = new Worker(module, {
    name,
    workerData: data,
    ...(heapMiB === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMiB } }),
  })
  const { promise, resolve } = Promise.withResolvers<Answer | ThreadFault>()
  worker.once('message', resolve)
  worker.once('error', ({ code }: NodeJS.ErrnoException) =>
    resolve(code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'ended'),
  )
  worker.once('exit', () => resolve('ended'))
  const limit = setTimeout(() => resolve('time_limit'), limitMs)
  try {
    return await promise
  } finally {
    clearTimeout(limit)
    await worker.terminate()
  }
}

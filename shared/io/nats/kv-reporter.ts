/**
 * What an edge reports of itself now and then: small entries in a NATS KV bucket, each replacing
 * the one before it, so that only the last of them matters. What cannot be reported is given back
 * and reported later; a bucket that was lost is made anew.
 */
import type { KV } from 'nats'
import type { Log } from '#shared/io/process/log.ts'
import type { Nats } from './connection.ts'

/** One entry that has changed. */
export type ChangedEntry = {
  key: string
  value: object
  /** Told when it could not be stored. */
  requeue: () => void
}

export type KvReporter = {
  /** Reports what is left and ends. */
  close: () => Promise<void>
}

export type KvReporterOptions = {
  nats: Nats
  openBucket: (nats: Nats) => Promise<KV>
  /** Takes what has changed since it was taken last. */
  drainEntries: () => ChangedEntry[]
  /** Counts each entry by its outcome. */
  reports: { inc: (labels: { outcome: 'stored' | 'failed' }) => void }
  log: Log
  everyMs?: number
}

const reportEveryMs = 2_000

/** Reports every few seconds where something has changed. */
export function startKvReporter(options: KvReporterOptions): KvReporter {
  const { nats, reports, log } = options
  let bucket: KV | null = null
  const put = async ({ key, value, requeue }: ChangedEntry) => {
    try {
      bucket ??= await options.openBucket(nats)
      await bucket.put(key, JSON.stringify(value))
      reports.inc({ outcome: 'stored' })
    } catch (error) {
      reports.inc({ outcome: 'failed' })
      requeue()
      bucket = null
      log.debug({ err: error, key }, 'an entry was not reported')
    }
  }
  const report = async () => {
    if (!nats.connected()) return
    await Promise.all(options.drainEntries().map(put))
  }
  let running: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    running = running.then(report).catch(() => undefined)
  }, options.everyMs ?? reportEveryMs)
  return {
    close: async () => {
      clearInterval(timer)
      await running
      await report()
    },
  }
}

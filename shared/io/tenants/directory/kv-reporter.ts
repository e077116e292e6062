/**
 * Publishes an edge's reports to a NATS KV bucket every few seconds: small entries that each
 * replace the one before. A failed report is requeued, and a lost bucket is created again.
 *
 * Each entry has a proof. Permissions on subjects do not suffice: a user that may not publish in
 * the bucket can still name it as the reply subject of a request, and the server answers there.
 */
import type { KV, KvEntry } from 'nats'
import { attachProof, type Prover, splitProof } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Log } from '#shared/io/process/log.ts'

/** One entry that has changed. */
type ChangedEntry = {
  key: string
  value: object
  /** Called when the entry could not be stored. */
  requeue: () => void
}

export type KvReporter = {
  /** Publishes remaining changes and ends. */
  close: () => Promise<void>
}

type KvReporterOptions = {
  nats: Nats
  openBucket: (nats: Nats) => Promise<KV>
  /** The name of the bucket. */
  bucketName: string
  /** Of the purpose `edge report`. */
  prover: Prover
  /** Returns the entries that changed since the last call. */
  drainEntries: () => ChangedEntry[]
  /** Counts each entry by its outcome. */
  reports: { inc: (labels: { outcome: 'stored' | 'failed' }) => void }
  log: Log
  everyMs?: number
}

const reportEveryMs = 2_000

/** Starts the reporter; it writes only entries that have changed. */
export function startKvReporter(options: KvReporterOptions): KvReporter {
  const { nats, bucketName, prover, reports, log } = options
  let bucket: KV | null = null
  const put = async ({ key, value, requeue }: ChangedEntry) => {
    try {
      bucket ??= await options.openBucket(nats)
      await bucket.put(key, encodeReport(prover, { bucketName, key }, value))
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

type ReportKey = { bucketName: string; key: string }

/** An entry with its proof, which binds the bucket and the key. */
export function encodeReport(prover: Prover, { bucketName, key }: ReportKey, value: object) {
  return attachProof(prover, [bucketName, key], JSON.stringify(value))
}

/** The value of an edge's entry; null for a deletion, and for what no edge wrote under this key. */
export function decodeReport(prover: Prover, bucketName: string, entry: KvEntry): unknown {
  if (entry.operation !== 'PUT') return null
  const { proof, text } = splitProof(entry.string())
  return prover.isProven(proof, [bucketName, entry.key], text) ? JSON.parse(text) : null
}

/**
 * Follows a bucket by reading on from a sequence, without a consumer on the server: a request names
 * the next sequence and is answered with the entries from there on. The server keeps no state for
 * the reader, and the reader cannot miss an entry: an answer either has it or is refused.
 */
import { type KvEntry, type Msg, type MsgHdrs, headers as newHeaders } from 'nats'
import { bucketReadBytes, bucketReadEntries, leaseMs } from '#shared/core/base/limits/tenants.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { Nats } from './connection.ts'

/** What one request brought. */
export type BucketRead = {
  /** By ascending revision; an entry that was replaced meanwhile is missing. */
  entries: readonly KvEntry[]
  /** Whether the bucket had no further entry when it was asked. */
  isToEnd: boolean
}

export type BucketReader = {
  /** Reads until it is stopped, also when requests fail. Waits for `wake` at the end. */
  reads: () => AsyncGenerator<BucketRead>
  /**
   * Reads on: there is an entry at this revision, or was. A server that does not have it yet, as a
   * replica that is behind, is asked again for up to a second.
   */
  wake: (revision: number) => void
  stop: () => void
}

type BucketReaderOptions = {
  nats: Nats
  bucket: string
  /** Called when a request failed; it is repeated. */
  onFailure: (error: unknown) => void
}

/** How long a server may be silent. */
const silentMaxMs = leaseMs
const retryMs = 250
/** How often to ask again for an entry that a server does not have yet: for a second. */
const behindMs = 20
const behindReadsMax = 50

/** Creates a reader from the first entry on; it begins with `reads`. */
export function createBucketReader({ nats, bucket, onFailure }: BucketReaderOptions): BucketReader {
  const stopping = new AbortController()
  const { signal } = stopping
  let isWoken = false
  let expected = 0
  let resume: () => unknown = () => undefined
  const wake = (revision: number) => {
    isWoken = true
    expected = Math.max(expected, revision)
    resume()
  }
  const untilWoken = () =>
    new Promise<void>((resolve) => {
      resume = resolve
      if (isWoken) resolve()
    })
  async function* reads(): AsyncGenerator<BucketRead> {
    const channel = openChannel(nats, bucket)
    try {
      for (let sequence = 1, behind = 0; !signal.aborted; ) {
        isWoken = false
        const read = await channel.read(sequence).catch(onFailure)
        if (signal.aborted) return
        if (read === undefined) {
          await pause(retryMs, signal)
          continue
        }
        sequence = (read.entries.at(-1)?.revision ?? sequence - 1) + 1
        yield read
        behind = sequence <= expected ? behind + 1 : 0
        if (!read.isToEnd) continue
        // What was replaced or purged meanwhile never comes.
        if (behind > 0 && behind < behindReadsMax) await pause(behindMs, signal)
        else await untilWoken()
      }
    } finally {
      channel.close()
    }
  }
  return {
    reads,
    wake,
    stop: () => {
      stopping.abort()
      wake(0)
    },
  }
}

/** Requests of one reader, one at a time. */
function openChannel(nats: Nats, bucket: string) {
  const { connection } = nats
  const stream = `KV_${bucket}`
  const inbox = nats.newInbox()
  let count = 0
  let receive: (error: Error | null, message: Msg) => void = () => undefined
  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => receive(error, message),
  })
  /** @throws when the server refuses, or is silent */
  const read = (sequence: number): Promise<BucketRead> =>
    new Promise((resolve, reject) => {
      const reply = `${inbox}.${++count}`
      const entries: KvEntry[] = []
      const end = (isToEnd: boolean) => {
        clearTimeout(timer)
        resolve({ entries, isToEnd })
      }
      // What has arrived is kept: on a busy machine no answer may ever be complete in time.
      const silent = () => {
        if (entries.length > 0) end(false)
        else reject(new Error(`the bucket ${bucket} does not answer`))
      }
      let timer = setTimeout(silent, silentMaxMs)
      receive = (error, message) => {
        // What comes late belongs to a request that was given up.
        if (message.subject !== reply) return
        clearTimeout(timer)
        if (error !== null) return reject(error)
        const meta = message.headers ?? newHeaders()
        if (meta.code === 404) return end(true)
        if (meta.code === 204) return end(meta.get('Nats-Num-Pending') === '0')
        if (meta.code !== 0) return reject(toRefusal(bucket, meta))
        timer = setTimeout(silent, silentMaxMs)
        entries.push(toEntry(bucket, message))
        // A server before 2.11 answers with a single entry.
        if (!meta.has('Nats-Num-Pending')) end(false)
      }
      const request = {
        seq: sequence,
        next_by_subj: `$KV.${bucket}.>`,
        batch: bucketReadEntries,
        max_bytes: bucketReadBytes,
      }
      try {
        connection.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(request), { reply })
      } catch (error) {
        clearTimeout(timer)
        reject(error)
      }
    })
  return { read, close: () => subscription.unsubscribe() }
}

/** Without responders the bucket is missing, or its cluster is electing a leader. */
function toRefusal(bucket: string, { code, description }: MsgHdrs): Error {
  if (code === 503) return new Error(`the bucket ${bucket} is missing: the console creates it`)
  return new Error(`the bucket ${bucket} cannot be read: ${code} ${description}`)
}

function toEntry(bucket: string, message: Msg): KvEntry {
  const meta = message.headers!
  const operation = meta.get('KV-Operation')
  return {
    bucket,
    key: meta.get('Nats-Subject').slice(`$KV.${bucket}.`.length),
    value: message.data,
    created: new Date(meta.get('Nats-Time-Stamp')),
    revision: Number(meta.get('Nats-Sequence')),
    operation: operation === 'DEL' || operation === 'PURGE' ? operation : 'PUT',
    length: message.data.length,
    string: () => message.string(),
    json: <T>() => message.json<T>(),
  }
}

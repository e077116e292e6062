/** Reads the present entries of a NATS KV bucket once, without a lasting watch. */
import type { KV, KvEntry, QueuedIterator } from 'nats'
import { within } from '#shared/io/process/pause.ts'
import type { Nats } from './connection.ts'

const readMaxMs = 10_000

/**
 * Reads the newest entry of every matching key, deletions included. An entry from before the call
 * is in the result, or the entry that replaced it meanwhile.
 *
 * The client's `history` repeats an entry that is written meanwhile, and counts it towards its end,
 * so it can end early. Hence keys are compared with a list, and missing ones are read one by one.
 * @param bucket with a history of one entry per key
 * @param key with the wildcards `*` and `>` of subjects
 * @throws when the entries cannot be read within `limitMs`
 */
export async function readEntries(
  nats: Nats,
  bucket: KV,
  key: string,
  limitMs = readMaxMs,
): Promise<Map<string, KvEntry>> {
  const entries = new Map<string, KvEntry>()
  let history: QueuedIterator<KvEntry | undefined> | undefined
  let late = false
  const read = async () => {
    const keys = await listKeys(nats, (await bucket.status()).bucket, key)
    // The client may return an undefined entry while others are written.
    history = await bucket.history({ key })
    if (late) history.stop()
    for await (const entry of history) if (entry !== undefined) entries.set(entry.key, entry)
    for (const missing of keys.filter((one) => !entries.has(one))) {
      const entry = await bucket.get(missing)
      if (entry !== null) entries.set(missing, entry)
    }
  }
  if (await within(read(), limitMs)) return entries
  // Stop it, or its consumer would remain on the server.
  late = true
  history?.stop()
  throw new Error('the bucket cannot be read')
}

/**
 * Lists the matching keys that have an entry, deletions included, in one request.
 * @param bucket name of the bucket
 * @throws when NATS is away, or the bucket does not exist
 */
export async function listKeys(nats: Nats, bucket: string, key: string): Promise<string[]> {
  const prefix = `$KV.${bucket}.`
  const filter = { subjects_filter: `${prefix}${key}` }
  const { state } = await nats.manager.streams.info(`KV_${bucket}`, filter)
  return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length))
}

/** The value of an entry as JSON; undefined when it is not JSON. */
export function readJson(entry: KvEntry): unknown {
  try {
    return entry.json()
  } catch {
    return undefined
  }
}

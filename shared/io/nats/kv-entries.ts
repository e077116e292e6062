/** Reads what a NATS KV bucket holds of some keys at the moment, and ends. */
import type { KV, KvEntry, QueuedIterator } from 'nats'
import { within } from '#shared/io/process/pause.ts'
import type { Nats } from './connection.ts'

const readMaxMs = 10_000

/**
 * The newest entry of every key that matches, deletions among them. Whatever is written meanwhile:
 * what was there before the call is there, or what replaced it.
 *
 * The client's reading of a history brings an entry twice that is written again meanwhile, and ends
 * when as many have come as there were, or when the server says that none is left, which is not so
 * now and then. Hence each key counts once, and one that did not come is asked for by itself: all
 * keys one by one would cost a request for each.
 * @param bucket one that keeps a single entry of each key
 * @param key with `*` and `>` as in subjects
 * @throws when it cannot be read within `limitMs`, such as while NATS is away
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
    // The client may hand out one that is not there while others are written.
    history = await bucket.history({ key })
    if (late) history.stop()
    for await (const entry of history) if (entry !== undefined) entries.set(entry.key, entry)
    for (const missing of keys.filter((one) => !entries.has(one))) {
      const entry = await bucket.get(missing)
      if (entry !== null) entries.set(missing, entry)
    }
  }
  if (await within(read(), limitMs)) return entries
  // Or its consumer would be kept up for ever.
  late = true
  history?.stop()
  throw new Error('the bucket cannot be read')
}

/**
 * Every key that matches and has an entry, be it a deletion, in one request.
 * @param bucket its name
 * @throws when NATS is away, or there is no such bucket
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

/** Reads what a NATS KV bucket holds of some keys at the moment, and ends. */
import type { KV, KvEntry } from 'nats'

/**
 * Every entry of the keys that match, in the order they were written. A list of keys first would
 * cost a request for each.
 * @param key with `*` and `>` as in subjects
 * @throws when NATS is away
 */
export async function* readHistory(bucket: KV, key: string): AsyncGenerator<KvEntry> {
  // Where an entry is written while these are read, the client may hand out one that is not there.
  const entries = (await bucket.history({ key })) as AsyncIterable<KvEntry | undefined>
  for await (const entry of entries) if (entry !== undefined) yield entry
}

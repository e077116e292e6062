/**
 * Keys of installs in ClickHouse, which scorers write before they acknowledge the events: one row
 * for each key of an install. Writing one again changes nothing, so what a scorer remembers of its
 * writes only spares work: of an event with known traits nothing is looked up, and of one with new
 * traits, such as another network, only the keys are written that the install did not have.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { identityRefreshMs, rememberedTraitsMax } from '#shared/core/base/limits/entities.ts'
import {
  toIdentityKeys,
  toInstallKey,
  toInstallTraits,
  toTraitsText,
} from '#shared/core/identity/install-traits.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  insertRowBinary,
  smallQuery,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import { createWrittenKeys, type Written, type WrittenKeys } from './written-keys.ts'

export type IdentityKeyWriter = {
  /**
   * Stores the keys of events that tell of their phone. One call at a time; where nothing is new it
   * sends nothing.
   * @returns how many rows it wrote
   * @throws when ClickHouse fails; they may be stored or not
   */
  insertIdentityKeys: (events: readonly AcceptedEvent[]) => Promise<number>
  /** Forgets what it wrote: the rows may be gone. */
  forget: () => void
}

/** The first event with some traits, and when the last one was received. */
type EventTraits = {
  event: AcceptedEvent
  keys: readonly string[]
  text: string
  place: string
  install: string
  seenMs: number
}

/** A row: a key of an install, with the first event that has it. */
type KeyRow = {
  event: AcceptedEvent
  install: string
  keyHash: Buffer
  /** Of the install itself; empty of other keys. */
  text: string
  seenMs: number
}

const into = `identity_keys
  (tenant_id, key_hash, device_id, stream_offset, first_event, last_seen_at)`

/** What a scorer writes. */
export function createIdentityKeyWriter(clickhouse: Clickhouse): IdentityKeyWriter {
  const texts = new LRUCache<string, Written>({ max: rememberedTraitsMax })
  const keys = createWrittenKeys()
  // Shards are written at the same time.
  const writers = Array.from({ length: clickhouse.shards.length || 1 }, createRowWriter)
  const insertInto = async (node: ClickhouseNode, rows: readonly KeyRow[], shard: number) => {
    const writer = writers[shard]!
    writer.reset()
    for (const row of rows) writeRow(writer, row)
    await insertRowBinary(node, into, writer.written(), smallQuery)
  }
  /** How often it was told to forget. */
  let erasures = 0
  return {
    insertIdentityKeys: async (events) => {
      const found = findNewTraits(events, texts)
      if (found.length === 0) return 0
      const { rows, stored } = toRows(found, keys)
      const toShardKey = ({ event }: KeyRow) => toHash(event.tenant_id)
      const before = erasures
      if (rows.length > 0) await onNodesOf(clickhouse, rows, toShardKey, insertInto)
      // Only now: what failed is written again, and what may have been erased meanwhile too.
      if (erasures === before) {
        rememberKeys(keys, rows)
        for (const one of stored) rememberTraits(texts, one)
      }
      return rows.length
    },
    forget: () => {
      erasures++
      texts.clear()
      keys.forget()
    },
  }
}

function findNewTraits(
  events: readonly AcceptedEvent[],
  texts: LRUCache<string, Written>,
): EventTraits[] {
  const found = new Map<string, EventTraits>()
  for (const event of events) {
    const traits = toInstallTraits(event)
    if (traits === null) continue
    const { tenant_id: tenantId, body } = event
    // A later start of the system is compared with nothing, and an SDK may send another each time.
    const lasting = toTraitsText({ ...traits, bootAtMs: null })
    const place = toPlace(tenantId, body.device_id, lasting)
    const known = texts.get(place)
    if (known !== undefined && isWritten(known, event.streamOffset, event.received_at)) continue
    const text = toTraitsText(traits)
    const before = found.get(place)
    const seenMs = Math.max(before?.seenMs ?? 0, event.received_at)
    if (before === undefined) {
      const keys = toIdentityKeys(body.device_id, traits)
      const install = toPlace(tenantId, body.device_id)
      found.set(place, { event, keys, text, place, install, seenMs })
    } else {
      const isEarlier = event.streamOffset < before.event.streamOffset
      found.set(place, { ...before, ...(isEarlier ? { event, text } : {}), seenMs })
    }
  }
  return [...found.values()]
}

/** Where something is remembered: of one length, however long the ids are. */
const toPlace = (...texts: readonly string[]): string =>
  hash('sha256', JSON.stringify(texts), 'base64url')

/** An earlier event makes an earlier row, and a much later one keeps it alive. */
const isWritten = (known: Written, streamOffset: number, seenMs: number): boolean =>
  known.streamOffset <= streamOffset && seenMs - known.seenMs < identityRefreshMs

/**
 * The rows of keys that an install did not have before, or was not seen with for long.
 * @returns also the traits, seen no later than what is then stored of each of their keys
 */
function toRows(
  found: readonly EventTraits[],
  written: WrittenKeys,
): { rows: KeyRow[]; stored: EventTraits[] } {
  const rows = new Map<string, KeyRow>()
  const stored = found.map((one) => {
    const { event, install, text, seenMs } = one
    const installKey = toInstallKey(event.body.device_id)
    let storedMs = seenMs
    for (const key of one.keys) {
      // As `toHash`, in the order of bytes that a UInt64 has.
      const keyHash = hash('sha256', key, 'buffer').subarray(0, 8)
      const known = written.find(install, keyHash)
      if (known !== undefined && isWritten(known, event.streamOffset, seenMs)) {
        storedMs = Math.min(storedMs, known.seenMs)
        continue
      }
      const name = `${install} ${key}`
      const row = { event, install, keyHash, text: key === installKey ? text : '', seenMs }
      const before = rows.get(name)
      rows.set(name, before === undefined ? row : joinRows(before, row))
    }
    return { ...one, seenMs: storedMs }
  })
  return { rows: [...rows.values()], stored }
}

const joinRows = (one: KeyRow, other: KeyRow): KeyRow => ({
  ...(other.event.streamOffset < one.event.streamOffset ? other : one),
  seenMs: Math.max(one.seenMs, other.seenMs),
})

function rememberKeys(written: WrittenKeys, rows: readonly KeyRow[]): void {
  for (const [install, some] of Map.groupBy(rows, ({ install }) => install)) {
    const keys = some.map(({ event, keyHash, seenMs }) => ({
      keyHash,
      streamOffset: event.streamOffset,
      seenMs,
    }))
    written.remember(install, keys)
  }
}

function rememberTraits(
  texts: LRUCache<string, Written>,
  { event: { streamOffset }, place, seenMs }: EventTraits,
): void {
  const known = texts.get(place)
  texts.set(place, {
    streamOffset: Math.min(streamOffset, known?.streamOffset ?? streamOffset),
    seenMs: Math.max(seenMs, known?.seenMs ?? seenMs),
  })
}

/** The offset of a row that is not the install's own: the highest, as a merge keeps the lowest. */
const noOffset = -1

function writeRow(writer: RowWriter, { event, keyHash, text, seenMs }: KeyRow): void {
  writer.string(event.tenant_id)
  writer.fixed(keyHash)
  writer.string(event.body.device_id)
  writer.int64(event.streamOffset)
  writer.int64(text === '' ? noOffset : event.streamOffset)
  writer.int64(text === '' ? 0 : event.received_at)
  writer.string(text)
  writer.int64(seenMs)
}

/**
 * Keys of installs in ClickHouse, which scorers write before they acknowledge the events. Writing
 * one again changes nothing, so what a scorer remembers of its writes only spares work.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { identityRefreshMs, rememberedTraitsMax } from '#shared/core/base/limits/entities.ts'
import {
  toIdentityKeys,
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

/** The first event with some traits, as they are stored, and when the last one was received. */
type EventTraits = {
  event: AcceptedEvent
  keys: readonly string[]
  text: string
  place: string
  seenMs: number
}

/** What was written of the traits of a device: the lowest offset, and when it was last seen. */
type Written = { streamOffset: number; seenMs: number }

const into = `identity_keys
  (tenant_id, key_hash, device_id, stream_offset, received_at, traits, last_seen_at)`

/** What a scorer writes. */
export function createIdentityKeyWriter(clickhouse: Clickhouse): IdentityKeyWriter {
  const written = new LRUCache<string, Written>({ max: rememberedTraitsMax })
  // Shards are written at the same time.
  const writers = Array.from({ length: clickhouse.shards.length || 1 }, createRowWriter)
  const insertInto = async (
    node: ClickhouseNode,
    found: readonly EventTraits[],
    shard: number,
  ): Promise<number> => {
    const writer = writers[shard]!
    writer.reset()
    for (const one of found) writeRows(writer, one)
    await insertRowBinary(node, into, writer.written(), smallQuery)
    return found.reduce((sum, { keys }) => sum + keys.length, 0)
  }
  /** How often it was told to forget. */
  let erasures = 0
  return {
    insertIdentityKeys: async (events) => {
      const found = findUnwritten(events, written)
      if (found.length === 0) return 0
      const toShardKey = ({ event }: EventTraits) => toHash(event.tenant_id)
      const before = erasures
      const rows = await onNodesOf(clickhouse, found, toShardKey, insertInto)
      // Only now: what failed is written again, and what may have been erased meanwhile too.
      if (erasures === before) for (const one of found) remember(written, one)
      return rows.reduce((sum, one) => sum + one, 0)
    },
    forget: () => {
      erasures++
      written.clear()
    },
  }
}

function findUnwritten(
  events: readonly AcceptedEvent[],
  written: LRUCache<string, Written>,
): EventTraits[] {
  const found = new Map<string, EventTraits>()
  for (const event of events) {
    const traits = toInstallTraits(event)
    if (traits === null) continue
    const { tenant_id: tenantId, body } = event
    const text = toTraitsText(traits)
    // A later start of the system is compared with nothing, and an SDK may send another each time.
    const lasting = toTraitsText({ ...traits, bootAtMs: null })
    const place = hash('sha256', JSON.stringify([tenantId, body.device_id, lasting]), 'base64url')
    const known = written.get(place)
    if (known !== undefined && isWritten(known, event)) continue
    const before = found.get(place)
    const seenMs = Math.max(before?.seenMs ?? 0, event.received_at)
    if (before === undefined) {
      const keys = toIdentityKeys(body.device_id, traits)
      found.set(place, { event, keys, text, place, seenMs })
    } else {
      const isEarlier = event.streamOffset < before.event.streamOffset
      found.set(place, { ...before, ...(isEarlier ? { event, text } : {}), seenMs })
    }
  }
  return [...found.values()]
}

/** An earlier event of the same traits makes earlier rows, and a much later one keeps them alive. */
const isWritten = ({ streamOffset, seenMs }: Written, event: AcceptedEvent): boolean =>
  streamOffset <= event.streamOffset && event.received_at - seenMs < identityRefreshMs

function remember(
  written: LRUCache<string, Written>,
  { event: { streamOffset }, place, seenMs }: EventTraits,
): void {
  const known = written.get(place)
  written.set(place, {
    streamOffset: Math.min(streamOffset, known?.streamOffset ?? streamOffset),
    seenMs: Math.max(seenMs, known?.seenMs ?? seenMs),
  })
}

function writeRows(writer: RowWriter, { event, keys, text, seenMs }: EventTraits): void {
  for (const key of keys) {
    writer.string(event.tenant_id)
    // As `toHash`, in the order of bytes that a UInt64 has.
    writer.fixed(hash('sha256', key, 'buffer').subarray(0, 8))
    writer.string(event.body.device_id)
    writer.int64(event.streamOffset)
    writer.int64(event.received_at)
    writer.string(text)
    writer.int64(seenMs)
  }
}

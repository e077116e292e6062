/**
 * Replays in ClickHouse: events whose bytes came again long after their first copy, or from another
 * network. Scorers write them before they acknowledge the copy; writing one again changes nothing.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import type { FirstCopy } from '#shared/core/installs/replays.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { type ClickhouseNode, insertRowBinary } from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'

/** A copy of an event, and its first one. */
export type ReplayedEvent = FirstCopy & { event: AcceptedEvent }

export type ReplayWriter = {
  /** One call at a time. Without replays it sends nothing. @throws when ClickHouse fails */
  insertReplays: (replays: readonly ReplayedEvent[]) => Promise<void>
}

const columnWriters = {
  tenant_id: (writer, { event }) => writer.string(event.tenant_id),
  device_id: (writer, { event }) => writer.string(event.body.device_id),
  session_id: (writer, { event }) => writer.string(event.body.session_id),
  event_id: (writer, { event }) => writer.string(event.event_id),
  hour: (writer, { event }) => writer.uint32(toHourSeconds(event.received_at)),
  stream_offset: (writer, { event }) => writer.int64(event.streamOffset),
  received_at: (writer, { event }) => writer.int64(event.received_at),
  first_received_at: (writer, { firstAtMs }) => writer.int64(firstAtMs),
  user_id: (writer, { event }) => writer.string(event.body.user_id ?? ''),
  account_id: (writer, { event }) => writer.string(event.body.account_id ?? ''),
  network_changed: (writer, { networkChanged }) => writer.uint8(networkChanged ? 1 : 0),
} satisfies Record<string, (writer: RowWriter, replay: ReplayedEvent) => void>

/** An edge's clock may be anywhere; DateTime is of 1970 to 2106. */
const toHourSeconds = (ms: number): number =>
  Math.min(0xffff_fff0, Math.max(0, (Math.floor(ms / hourMs) * hourMs) / 1_000))

const into = `replays (${Object.keys(columnWriters).join(', ')})`
const writersInOrder = Object.values(columnWriters)

/** What a scorer writes. */
export function createReplayWriter(clickhouse: ClickhouseNode): ReplayWriter {
  const writer = createRowWriter()
  return {
    insertReplays: async (replays) => {
      if (replays.length === 0) return
      writer.reset()
      for (const replay of replays) for (const write of writersInOrder) write(writer, replay)
      await insertRowBinary(clickhouse, into, writer.written())
    },
  }
}

/**
 * Registrations of installs in ClickHouse, which scorers write in the order of the stream. Writing
 * one again changes nothing.
 */
import type { AcceptedRegistration } from '#shared/core/installs/registration.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  insertRowBinary,
  smallQuery,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'

export type InstallWriter = {
  /**
   * Stores registrations and what is derived from them. One call at a time; without registrations
   * it sends nothing.
   * @throws when ClickHouse fails; they may be stored or not
   */
  insertRegistrations: (registrations: readonly AcceptedRegistration[]) => Promise<void>
}

const verdictValues = { none: 0, verified: 1, rejected: 2 } as const

/** The range of ClickHouse's DateTime64 in ms since 1970: the years 1900 to 2299. */
const instantMinMs = Date.UTC(1900, 0, 1)
const instantMaxMs = Date.UTC(2299, 11, 31)
const toInstantMs = (ms: number) => Math.min(instantMaxMs, Math.max(instantMinMs, ms))

const columnWriters = {
  tenant_id: (writer, { tenant_id }) => writer.string(tenant_id),
  device_id: (writer, { body }) => writer.string(body.device_id),
  token_id: (writer, { body }) => writer.string(body.token_id),
  stream_offset: (writer, { streamOffset }) => writer.int64(streamOffset),
  received_at: (writer, { received_at }) => writer.int64(toInstantMs(received_at)),
  platform: (writer, { body }) => writer.string(body.platform ?? ''),
  app_id: (writer, { body }) => writer.string(body.app_id ?? ''),
  provider: (writer, { body }) => writer.string(body.provider),
  verdict: (writer, { body }) => writer.uint8(verdictValues[body.verdict]),
  reason: (writer, { body }) => writer.string(body.reason ?? ''),
  level: (writer, { body }) => writer.string(body.level),
  attested_key: (writer, { body }) => writer.string(body.attested_key ?? ''),
  issuers: (writer, { body }) => writer.strings(body.issuers),
  remotely_provisioned: (writer, { body }) => writer.uint8(body.remotely_provisioned ? 1 : 0),
  device_model: (writer, { body }) => writer.string(body.device_model),
  root_epoch: (writer, { body }) =>
    writer.uint32(Math.min(0xffff_ffff, Math.max(0, body.root_epoch))),
  expires_at: (writer, { body }) => writer.int64(toInstantMs(body.expires_at)),
} satisfies Record<string, (writer: RowWriter, registration: AcceptedRegistration) => void>

const into = `installs (${Object.keys(columnWriters).join(', ')})`
const writersInOrder = Object.values(columnWriters)

/** What a scorer writes. */
export function createInstallWriter(clickhouse: Clickhouse): InstallWriter {
  // Shards are written at the same time.
  const writers = Array.from({ length: clickhouse.shards.length || 1 }, createRowWriter)
  const insertInto = async (
    node: ClickhouseNode,
    registrations: readonly AcceptedRegistration[],
    shard: number,
  ) => {
    const writer = writers[shard]!
    writer.reset()
    for (const one of registrations) for (const write of writersInOrder) write(writer, one)
    await insertRowBinary(node, into, writer.written(), smallQuery)
  }
  const toShardKey = ({ body }: AcceptedRegistration) => toKeyHash('device', body.device_id)
  return {
    insertRegistrations: async (registrations) => {
      if (registrations.length === 0) return
      await onNodesOf(clickhouse, registrations, toShardKey, insertInto)
    },
  }
}

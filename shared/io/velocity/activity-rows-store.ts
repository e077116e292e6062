/**
 * Reads rows of `activity` by their keys: hashes of a tenant's devices, users and sessions. Every
 * query ends at a stream offset, so later events change nothing.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import {
  activityFewKeys,
  activityFewRows,
  activityReadMax,
  activityReadMin,
  activityReadPerKey,
  activityRowsMax,
} from '#shared/core/base/limits/history.ts'
import type { ActivityKind, ActivityRow } from '#shared/core/velocity/activity-counts.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { type ClickhouseNode, isTooMuchToRead } from '#shared/io/clickhouse/clickhouse.ts'
import {
  hashesQuery,
  hashIn,
  type Piece,
  tenantsIn,
} from '#shared/io/clickhouse/hash-conditions.ts'

/** A key as it is used in maps: `tenant hash`. */
export type ActivityKey = string

export function toActivityKey(tenantId: string, kind: ActivityKind, id: string): ActivityKey {
  return `${tenantId} ${toKeyHash(kind, id)}`
}

/**
 * SQL: rows of keys up to a stream offset, to follow `from`; `and` may follow. It may find rows of
 * other tenants that have the same id.
 *
 * A granule holds 256 rows and a key has a few of them, so the keys are matched first (`prewhere`),
 * and the other columns are read only where one matches.
 */
export function ofKeys(keys: Iterable<ActivityKey>, lastStreamOffset: number): Piece {
  const tenants = new Set<string>()
  const hashes = new Set<string>()
  for (const key of keys) {
    const [tenantId, keyHash] = partsOf(key)
    tenants.add(tenantId)
    hashes.add(keyHash)
  }
  const ofTenants = tenantsIn(tenants)
  return {
    text: `activity prewhere ${hashIn('key_hash', hashes)}
      where ${ofTenants.text} and stream_offset <= {last_stream_offset:UInt64}`,
    params: { ...ofTenants.params, last_stream_offset: lastStreamOffset },
  }
}

/** The hash in a key, which chooses its shard. */
export const toShardKey = (key: ActivityKey): string => partsOf(key)[1]

function partsOf(key: ActivityKey): [tenantId: string, keyHash: string] {
  const space = key.indexOf(' ')
  return [key.slice(0, space), key.slice(space + 1)]
}

/**
 * Bounds: rows that a query may read, rows of one key that are read, and the keys, and rows of
 * each, up to which no screen is needed.
 */
export type ActivityBounds = {
  readMin: number
  readPerKey: number
  readMax: number
  rowsMax: number
  fewKeys: number
  fewRows: number
}
export const activityBounds: ActivityBounds = {
  readMin: activityReadMin,
  readPerKey: activityReadPerKey,
  readMax: activityReadMax,
  rowsMax: activityRowsMax,
  fewKeys: activityFewKeys,
  fewRows: activityFewRows,
}

/** The number of rows that a query for so many keys may read. */
export const toReadMax = (keys: number, { readMin, readPerKey, readMax }: ActivityBounds): number =>
  Math.min(readMax, readMin + keys * readPerKey)

/**
 * Queries many keys at once. When ClickHouse refuses because it would read too many rows, the keys
 * are halved and queried again, down to a hot key alone.
 * @param query for some keys, with these settings
 * @param queryAlone for a key with more rows than one query may read
 * @returns every result
 */
export async function queryBounded<T>(
  keys: readonly ActivityKey[],
  query: (keys: readonly ActivityKey[], settings: ClickHouseSettings) => Promise<T>,
  queryAlone: (key: ActivityKey) => Promise<T>,
  bounds: ActivityBounds = activityBounds,
): Promise<T[]> {
  if (keys.length === 0) return []
  try {
    const max_rows_to_read = String(toReadMax(keys.length, bounds))
    return [await query(keys, { ...hashesQuery, max_rows_to_read })]
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
    if (keys.length === 1) return [await queryAlone(keys[0]!)]
    const half = keys.length >> 1
    return [
      ...(await queryBounded(keys.slice(0, half), query, queryAlone, bounds)),
      ...(await queryBounded(keys.slice(half), query, queryAlone, bounds)),
    ]
  }
}

/** SQL: the latest rows of one key, read backwards in the order of the table. */
export function latestOf(
  key: ActivityKey,
  { lastStreamOffset, rowsMax }: { lastStreamOffset: number; rowsMax: number },
): Piece {
  const [tenantId, keyHash] = partsOf(key)
  return {
    text: `(
      select tenant_id, key_hash, stream_offset, received_at, event_hash, packed_facts
      from activity
      where tenant_id = {tenant:String} and key_hash = {key:UInt64}
        and stream_offset <= {last_stream_offset:UInt64}
      order by tenant_id desc, key_hash desc, stream_offset desc
      limit {most:UInt32}
    )`,
    params: { tenant: tenantId, key: keyHash, last_stream_offset: lastStreamOffset, most: rowsMax },
  }
}

type Row = [tenantId: string, keyHash: string, streamOffset: number | string, facts: string]

/** Rows up to a stream offset that were received after an instant, in ms since 1970. */
export type ActivitySpan = { lastStreamOffset: number; afterMs: number }

/** @returns the rows by key; keys without rows are left out */
export async function readActivityRows(
  clickhouse: ClickhouseNode,
  keys: readonly ActivityKey[],
  { lastStreamOffset, afterMs }: ActivitySpan,
  settings: ClickHouseSettings = {},
): Promise<Map<ActivityKey, ActivityRow[]>> {
  if (keys.length === 0) return new Map()
  const { text, params } = ofKeys(keys, lastStreamOffset)
  return readRows(clickhouse, `${text} and`, { ...params, after: afterMs }, settings)
}

/** The same for the latest rows of a hot key. */
export async function readLatestRows(
  clickhouse: ClickhouseNode,
  key: ActivityKey,
  { lastStreamOffset, afterMs, rowsMax }: ActivitySpan & { rowsMax: number },
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const { text, params } = latestOf(key, { lastStreamOffset, rowsMax })
  return readRows(clickhouse, `${text} where`, { ...params, after: afterMs })
}

/**
 * Reads at most `rowsPerKey` rows of each key, received at any time. Planning this query takes a
 * third of the time of the screen's. It reads the packed facts undecoded: decoding them in the
 * engine doubles a small query's cost.
 * @throws when there is too much to read, see `isTooMuchToRead`
 */
export async function readFewRows(
  clickhouse: ClickhouseNode,
  keys: readonly ActivityKey[],
  { lastStreamOffset, rowsPerKey, readMax }: FewRows,
): Promise<Map<ActivityKey, ActivityRow[]>> {
  if (keys.length === 0) return new Map()
  const { text, params } = ofKeys(keys, lastStreamOffset)
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), stream_offset, base64Encode(packed_facts)
      from ${text} limit ${rowsPerKey} by tenant_id, key_hash`,
    query_params: params,
    use_multipart_params_auto: true,
    clickhouse_settings: { ...hashesQuery, max_rows_to_read: String(readMax) },
    format: 'JSONCompactEachRow',
  })
  const found = new Map<ActivityKey, ActivityRow[]>()
  for (const [tenantId, keyHash, streamOffset, facts] of await result.json<Row>()) {
    const key = `${tenantId} ${keyHash}`
    const row = toRow(Number(streamOffset), Buffer.from(facts, 'base64'), 0)
    const rows = found.get(key)
    if (rows === undefined) found.set(key, [row])
    else rows.push(row)
  }
  return found
}

export type FewRows = { lastStreamOffset: number; rowsPerKey: number; readMax: number }

/**
 * Reads the rows of keys that may have thousands: one answer for each key, of which a row costs the
 * reader a third of what it costs as a line.
 */
async function readRows(
  clickhouse: ClickhouseNode,
  fromWhere: string,
  params: Record<string, unknown>,
  settings: ClickHouseSettings = {},
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), base64Encode(arrayStringConcat(
        groupArray(concat(reinterpretAsFixedString(stream_offset), packed_facts))))
      from ${fromWhere} received_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
      group by tenant_id, key_hash`,
    query_params: params,
    use_multipart_params_auto: true,
    clickhouse_settings: { ...hashesQuery, ...settings },
    format: 'JSONCompactEachRow',
  })
  const found = await result.json<[tenantId: string, keyHash: string, packed: string]>()
  return new Map(
    found.map(([tenantId, keyHash, packed]) => [
      `${tenantId} ${keyHash}`,
      toRows(Buffer.from(packed, 'base64')),
    ]),
  )
}

const offsetBytes = 8
const factsBytes = 80

function toRows(packed: Buffer): ActivityRow[] {
  const rows: ActivityRow[] = []
  for (let at = 0; at < packed.length; at += offsetBytes + factsBytes) {
    const streamOffset = packed.readUInt32LE(at + 4) * 2 ** 32 + packed.readUInt32LE(at)
    rows.push(toRow(streamOffset, packed, at + offsetBytes))
  }
  return rows
}

/** The value of `ActivityRow.event` for an event's hash. */
export const toShortHash = (hash: string): number => Number(BigInt.asUintN(53, BigInt(hash)))

/**
 * Unpacks the `packed_facts` that begin at a place: ten numbers of 64 bits; see
 * `clickhouse/0019-connection-velocity.sql`.
 */
function toRow(streamOffset: number, facts: Buffer, at: number): ActivityRow {
  const low = (index: number) => facts.readUInt32LE(at + index * 8)
  const high = (index: number) => facts.readUInt32LE(at + index * 8 + 4)
  // 53 bits of a hash: a number in JavaScript holds no more exactly.
  const short = (index: number) => (high(index) % 2 ** 21) * 2 ** 32 + low(index)
  const fifth: [number, number] = [low(5), high(5)]
  const row = {
    streamOffset,
    atMs: Number(facts.readBigInt64LE(at + 72)),
    event: short(8),
    session: short(0),
    user: short(1),
    account: short(2),
    platform: short(3),
    userDevice: short(6),
    sessionDevice: short(7),
    networkDevice: short(4),
    country: low(5) & 0xffff,
    network: 0,
    place: fifth,
    // Of a device: see `activity_of_telemetry`.
    counter: low(7),
    assertedKey: high(7),
    detected: [low(4), high(4)] as [number, number],
    clean: fifth,
  }
  if (row.platform === 0) return row
  row.country = high(6) >>> 16
  row.network = (high(6) & 0xffff) * 2 ** 32 + low(6)
  return row
}

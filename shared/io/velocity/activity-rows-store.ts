/**
 * Reads rows of `activity` by key: the hash of a device, a user or a session of a tenant. Every
 * query is bounded by a stream offset, so later events change nothing.
 */
import { hash } from 'node:crypto'
import type { ClickHouseSettings } from '@clickhouse/client'
import {
  activityFewKeys,
  activityFewRows,
  activityReadMax,
  activityReadMin,
  activityReadPerKey,
  activityRowsMax,
  parameterBytesMax,
} from '#shared/core/base/limits/history.ts'
import type { ActivityKind, ActivityRow } from '#shared/core/velocity/activity-counts.ts'
import { type Clickhouse, isTooMuchToRead, smallQuery } from '#shared/io/clickhouse/clickhouse.ts'

/** A key in maps: `tenant hash`. */
export type ActivityKey = string

export function toActivityKey(tenantId: string, kind: ActivityKind, id: string): ActivityKey {
  return `${tenantId} ${toKeyHash(kind, id)}`
}

// A buffer for each digest costs more than the digest.
const digest = new DataView(new ArrayBuffer(8))

/** @returns ClickHouse's `reinterpretAsUInt64(SHA256(text))`, in decimal */
export function toHash(text: string): string {
  const bytes = hash('sha256', text, 'binary')
  for (let at = 0; at < 8; at++) digest.setUint8(at, bytes.charCodeAt(at))
  return digest.getBigUint64(0, true).toString()
}

export function toKeyHash(kind: ActivityKind, id: string): string {
  return toHash(`${kind} ${id}`)
}

/**
 * @returns SQL: whether a column is one of these hashes, in decimal. They are literals in the
 *   query, because the client escapes a parameter digit by digit, twice.
 */
export function hashIn(column: string, hashes: ReadonlySet<string>): string {
  return hashes.size === 0 ? 'false' : `${column} in (${[...hashes].join(',')})`
}

/**
 * Settings of queries with the hashes of a batch, 21 bytes each. A row has some 100 bytes, so
 * default blocks of 1 MB would have only a few thousand rows; larger blocks save a tenth of the
 * time.
 */
const hashesQuery = {
  ...smallQuery,
  max_query_size: String(16 * 1024 ** 2),
  preferred_block_size_bytes: String(8 * 1024 ** 2),
} as const

/** A fragment of a query with its parameters. */
type Fragment = { text: string; params: Record<string, unknown> }

/** Tenants in one parameter: 63 characters each at most, two quotes and a comma. */
const tenantsPerParameter = Math.floor(parameterBytesMax / 66)

/** @returns SQL: whether a row belongs to one of these tenants; an equality for one tenant */
function tenantsIn(tenants: ReadonlySet<string>): Fragment {
  const all = [...tenants]
  if (all.length === 1) {
    return { text: 'tenant_id = {tenant:String}', params: { tenant: all[0] } }
  }
  const params: Record<string, unknown> = {}
  const conditions: string[] = []
  for (let at = 0; at === 0 || at < all.length; at += tenantsPerParameter) {
    const own = `tenants_${conditions.length}`
    params[own] = all.slice(at, at + tenantsPerParameter)
    conditions.push(`tenant_id in {${own}:Array(String)}`)
  }
  return { text: `(${conditions.join(' or ')})`, params }
}

/**
 * @returns SQL after `from`: the rows of keys up to a stream offset; `and` may follow. It may
 *   include rows with the same hash of another of these tenants.
 *
 * A granule has 256 rows and a key only a few of them, so `prewhere` reads the keys first and the
 * other columns only where a key matches: 72 ms instead of 112 ms for a batch of 400 events over
 * eight million rows (`npm run bench -- known`).
 */
export function ofKeys(keys: Iterable<ActivityKey>, lastStreamOffset: number): Fragment {
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

function partsOf(key: ActivityKey): [tenantId: string, keyHash: string] {
  const space = key.indexOf(' ')
  return [key.slice(0, space), key.slice(space + 1)]
}

/** Limits of the rows that a query may read, and of the rows per key. */
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

/** How many rows a query about so many keys may look at. */
export const toReadMax = (keys: number, { readMin, readPerKey, readMax }: ActivityBounds): number =>
  Math.min(readMax, readMin + keys * readPerKey)

/**
 * Queries many keys at once. When ClickHouse refuses because it would read too many rows, the keys
 * are halved until a hot key is alone.
 * @param query reads keys, with the given settings
 * @param queryHotKey reads a key that has more rows than one query may read
 * @returns all results
 */
export async function queryBounded<T>(
  keys: readonly ActivityKey[],
  query: (keys: readonly ActivityKey[], settings: ClickHouseSettings) => Promise<T>,
  queryHotKey: (key: ActivityKey) => Promise<T>,
  bounds: ActivityBounds = activityBounds,
): Promise<T[]> {
  if (keys.length === 0) return []
  try {
    return [await query(keys, { ...hashesQuery, max_rows_to_read: String(most) })]
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
    if (keys.length === 1) return [await queryHotKey(keys[0]!)]
    const half = keys.length >> 1
    return [
      ...(await queryBounded(keys.slice(0, half), query, queryHotKey, bounds)),
      ...(await queryBounded(keys.slice(half), query, queryHotKey, bounds)),
    ]
  }
}

/** @returns SQL after `from`: the latest rows of one key, read backwards in the table's order */
export function latestOf(
  key: ActivityKey,
  { lastStreamOffset, rowsMax }: { lastStreamOffset: number; rowsMax: number },
): Fragment {
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

/** SQL: 53 bits of a hash, which a JavaScript number represents exactly. */
const short = (column: string): string => `bitAnd(${column}, 9007199254740991)`

const halves = (column: string): string =>
  `bitAnd(${column}, 4294967295), bitShiftRight(${column}, 32)`

type Number64 = number | string
type Row = [string, string, ...Number64[]]

/** Rows up to a stream offset, received after an instant in ms since 1970. */
export type ActivitySpan = { lastStreamOffset: number; afterMs: number }

/** @returns the rows by key, without keys that have none */
export async function readActivityRows(
  clickhouse: Clickhouse,
  keys: readonly ActivityKey[],
  { lastStreamOffset, afterMs }: ActivitySpan,
): Promise<Map<ActivityKey, ActivityRow[]>> {
  if (keys.length === 0) return new Map()
  const { text, params } = ofKeys(keys, lastStreamOffset)
  return readRows(clickhouse, `${text} and`, { ...params, after: afterMs })
}

/** @returns the latest rows of a hot key */
export async function readLatestRows(
  clickhouse: Clickhouse,
  key: ActivityKey,
  { lastStreamOffset, afterMs, rowsMax }: ActivitySpan & { rowsMax: number },
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const { text, params } = latestOf(key, { lastStreamOffset, rowsMax })
  return readRows(clickhouse, `${text} where`, { ...params, after: afterMs })
}

/**
 * The rows of each key, received at any time, of which it has few: of a key with more, exactly
 * `rowsPerKey` of its rows come. Planning this query takes a third of what the screen's takes.
 * @throws when there is too much to read, see `isTooMuchToRead`
 */
export async function readFewRows(
  clickhouse: Clickhouse,
  keys: readonly ActivityKey[],
  { lastStreamOffset, rowsPerKey, readMax }: FewRows,
): Promise<Map<ActivityKey, ActivityRow[]>> {
  if (keys.length === 0) return new Map()
  const { text, params } = ofKeys(keys, lastStreamOffset)
  return readPacked(clickhouse, {
    from: `${text} limit ${rowsPerKey} by tenant_id, key_hash`,
    params,
    settings: { max_rows_to_read: String(readMax) },
  })
}

export type FewRows = { lastStreamOffset: number; rowsPerKey: number; readMax: number }

function readRows(
  clickhouse: Clickhouse,
  fromWhere: string,
  params: Record<string, unknown>,
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const from = `${fromWhere} received_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')`
  return readPacked(clickhouse, { from, params, settings: {} })
}

/** Reads the packed facts as they are: unpacking them in the engine doubles a small query's cost. */
async function readPacked(
  clickhouse: Clickhouse,
  {
    from,
    params,
    settings,
  }: { from: string; params: Record<string, unknown>; settings: ClickHouseSettings },
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const found = new Map<ActivityKey, ActivityRow[]>()
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), stream_offset, base64Encode(packed_facts)
      from ${from}`,
    query_params: params,
    use_multipart_params_auto: true,
    clickhouse_settings: { ...hashesQuery, ...settings },
    format: 'JSONCompactEachRow',
  })
  for (const [tenantId, keyHash, streamOffset, facts] of await result.json<Row>()) {
    const key = `${tenantId} ${keyHash}`
    const row = toRow(Number(streamOffset), Buffer.from(facts, 'base64'))
    const rows = found.get(key)
    if (rows === undefined) found.set(key, [row])
    else rows.push(row)
  }
  return found
}

/** @returns the value of `ActivityRow.event` for the hash of an event */
export const toShortHash = (hash: string): number => Number(BigInt.asUintN(53, BigInt(hash)))

/** Unpacks `packed_facts`: ten numbers of 64 bits, in the order of the table's aliases. */
function toRow(streamOffset: number, facts: Buffer): ActivityRow {
  const low = (index: number) => facts.readUInt32LE(index * 8)
  const high = (index: number) => facts.readUInt32LE(index * 8 + 4)
  // 53 bits of a hash: what a number of JavaScript holds exactly.
  const short = (index: number) => (high(index) % 2 ** 21) * 2 ** 32 + low(index)
  return {
    streamOffset,
    atMs: Number(facts.readBigInt64LE(72)),
    event: short(8),
    session: short(0),
    user: short(1),
    account: short(2),
    platform: short(3),
    userDevice: short(6),
    sessionDevice: short(7),
    detected: [low(4), high(4)],
    clean: [low(5), high(5)],
  }
}

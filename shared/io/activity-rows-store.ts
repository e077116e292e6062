/**
 * The rows of `activity` by their keys: a device, a user or a session of a tenant, by its hash. What
 * is asked for is always bounded by a position: later events change nothing.
 */
import { hash } from 'node:crypto'
import type { ActivityKind, ActivityRow } from '#shared/core/activity-counting.ts'
import { activityRowsMax, hashesPerParameter } from '#shared/core/limits.ts'
import type { Clickhouse } from './clickhouse.ts'

/** A key as it is used in maps: `tenant hash`. */
export type ActivityKey = string

export function toActivityKey(tenantId: string, kind: ActivityKind, id: string): ActivityKey {
  return `${tenantId} ${toKeyHash(kind, id)}`
}

// A buffer for each digest costs more than the digest.
const digest = new DataView(new ArrayBuffer(8))

/** As ClickHouse computes `reinterpretAsUInt64(SHA256(text))`, in decimal. */
export function toHash(text: string): string {
  const bytes = hash('sha256', text, 'binary')
  for (let at = 0; at < 8; at++) digest.setUint8(at, bytes.charCodeAt(at))
  return digest.getBigUint64(0, true).toString()
}

export function toKeyHash(kind: ActivityKind, id: string): string {
  return toHash(`${kind} ${id}`)
}

/** A condition on a column of hashes and its parameters, as many as so many hashes need. */
export type HashesIn = { condition: string; params: Record<string, string> }

/**
 * That a column is one of these hashes, in decimal.
 * @param name of its parameters, unique in the query
 */
export function hashesIn(column: string, hashes: Iterable<string>, name: string): HashesIn {
  const all = [...hashes]
  const params: Record<string, string> = {}
  const conditions: string[] = []
  for (let at = 0; at === 0 || at < all.length; at += hashesPerParameter) {
    const own = `${name}_${conditions.length}`
    // The text that an array of numbers would be made into.
    params[own] = `[${all.slice(at, at + hashesPerParameter).join(',')}]`
    conditions.push(`${column} in {${own}:Array(UInt64)}`)
  }
  return { condition: `(${conditions.join(' or ')})`, params }
}

/** Rows of keys, as far as a position. It may find rows of keys that other tenants have. */
export function ofKeys(
  keys: Iterable<ActivityKey>,
  lastPosition: number,
): { condition: string; params: Record<string, unknown> } {
  const tenants = new Set<string>()
  const hashes = new Set<string>()
  for (const key of keys) {
    const space = key.indexOf(' ')
    tenants.add(key.slice(0, space))
    hashes.add(key.slice(space + 1))
  }
  const { condition, params } = hashesIn('key_hash', hashes, 'keys')
  return {
    condition: `tenant_id in {tenants:Array(String)} and ${condition}
      and position <= {last_position:UInt64}`,
    params: { ...params, tenants: [...tenants], last_position: lastPosition },
  }
}

/**
 * Dividing so little work among threads costs more than it saves, and for these queries the older
 * analyzer plans in two thirds of the time; planning is half of what they cost.
 */
export const smallQuery = { max_threads: 1, allow_experimental_analyzer: 0 } as const

/** 53 bits of a hash: what a number of JavaScript holds exactly. */
const short = (column: string): string => `bitAnd(${column}, 9007199254740991)`

const halves = (column: string): string =>
  `bitAnd(${column}, 4294967295), bitShiftRight(${column}, 32)`

type Number64 = number | string
type Row = [string, string, ...Number64[]]

/**
 * @param afterMs rows received after this, in ms since 1970
 * @returns by key, its latest rows as far as the position; keys without any are left out
 */
export async function readActivityRows(
  clickhouse: Clickhouse,
  keys: Iterable<ActivityKey>,
  { lastPosition, afterMs }: { lastPosition: number; afterMs: number },
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const found = new Map<ActivityKey, ActivityRow[]>()
  const wanted = [...keys]
  if (wanted.length === 0) return found
  const { condition, params } = ofKeys(wanted, lastPosition)
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), position, toUnixTimestamp64Milli(received_at),
        ${short('event_hash')}, ${short('session_hash')}, ${short('user_hash')},
        ${short('account_hash')}, ${short('platform_hash')}, ${short('user_device_hash')},
        ${short('session_device_hash')}, ${halves('detected_bits')}, ${halves('clean_bits')}
      from activity
      where ${condition} and received_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
      order by position desc
      limit {most:UInt32} by tenant_id, key_hash`,
    query_params: { ...params, after: afterMs, most: activityRowsMax },
    use_multipart_params_auto: true,
    clickhouse_settings: smallQuery,
    format: 'JSONCompactEachRow',
  })
  for (const [tenantId, keyHash, ...numbers] of await result.json<Row>()) {
    const key = `${tenantId} ${keyHash}`
    const rows = found.get(key)
    if (rows === undefined) found.set(key, [toRow(numbers.map(Number))])
    else rows.push(toRow(numbers.map(Number)))
  }
  return found
}

function toRow(numbers: readonly number[]): ActivityRow {
  const at = (index: number) => numbers[index]!
  return {
    position: at(0),
    atMs: at(1),
    event: at(2),
    session: at(3),
    user: at(4),
    account: at(5),
    platform: at(6),
    userDevice: at(7),
    sessionDevice: at(8),
    detected: [at(9), at(10)],
    clean: [at(11), at(12)],
  }
}

/**
 * What a scorer that does not know connections reads of `activity`: during an upgrade it works
 * beside those that do. Its text is recorded, so it does not follow the code.
 */
import { type Clickhouse, smallQuery } from '#shared/io/clickhouse/clickhouse.ts'

const ofDevice = 'session_hash != 0'
const recent = 'received_at_ms > {after:Int64}'
const devices = `user_device_hash, user_device_hash != 0`

/** Its screen, each condition by the metric that it is for. */
const conditions = {
  sessions_per_device: `uniqUpToIf(2)(session_hash, session_hash != 0 and true and ${recent}) > 2`,
  users_per_device: `uniqUpToIf(2)(user_hash, user_hash != 0 and true and ${recent})
    + uniqUpToIf(2)(account_hash, account_hash != 0 and true and ${recent}) > 2`,
  signal_flips: `bitAnd(groupBitOrIf(detected_bits, ${recent}),
    groupBitOrIf(clean_bits, ${recent})) != 0`,
  devices_per_user: `uniqUpToIf(2)(${devices} and true and ${recent}) > 2`,
  devices_per_session: `uniqUpToIf(1)(session_device_hash,
    session_device_hash != 0 and not (${ofDevice}) and ${recent}) > 1`,
  new_device_of_user: `uniqExactIf(${devices} and ${recent})
    > greatest(1, uniqExactIf(${devices} and received_at_ms <= {day_old:Int64}))`,
  reused_counter: `arrayExists(
    (one, before) -> bitShiftRight(one.1, 32) = bitShiftRight(before.1, 32)
      and bitAnd(one.1, 4294967295) <= bitAnd(before.1, 4294967295),
    arrayPopFront(arraySort(one -> (bitShiftRight(one.1, 32), one.2), groupUniqArrayIf(
      (session_device_hash, stream_offset), ${ofDevice} and session_device_hash != 0) as asserted)),
    arrayPopBack(arraySort(one -> (bitShiftRight(one.1, 32), one.2), asserted)))`,
  repeated_event: `uniqExactIf(packed_event_hash, ${ofDevice}) < countIf(${ofDevice})`,
}

/** The numbers of a row that it reads, by their place among the ten, for each kind of key. */
export const numbersRead = {
  device: [0, 1, 2, 3, 4, 5, 7, 8, 9],
  user: [6, 8, 9],
  session: [7, 8, 9],
} as const

export type ReadKey = {
  /** The metrics by which it is a suspect. */
  suspected: string[]
  sightings: unknown[]
  /** All its rows, by their stream offset, as ten numbers. */
  rows: string[][]
}

/** @returns by the hash of a key, what such a scorer finds */
export async function readWithoutConnections(
  clickhouse: Clickhouse,
  { tenantId, hashes, afterMs }: { tenantId: string; hashes: readonly string[]; afterMs: number },
): Promise<Map<string, ReadKey>> {
  const names = Object.keys(conditions)
  const result = await clickhouse.query({
    query: `
      select toString(key_hash),
        arrayFilter((name, is) -> is, [${names.map((name) => `'${name}'`).join(', ')}],
          [${Object.values(conditions).join(', ')}]),
        arraySort(groupUniqArrayIf(
          (toString(packed_event_hash), stream_offset, received_at_ms), ${ofDevice})),
        arraySort(groupUniqArray((stream_offset, arrayMap(
          place -> toString(reinterpretAsUInt64(substring(packed_facts, place * 8 + 1, 8))),
          range(10)))))
      from activity prewhere key_hash in (${hashes.join(',')})
      where tenant_id = {tenant:String}
      group by key_hash`,
    query_params: { tenant: tenantId, after: afterMs, day_old: afterMs + 1_000 },
    clickhouse_settings: smallQuery,
    format: 'JSONCompactEachRow',
  })
  type Row = [hash: string, suspected: string[], sightings: unknown[], rows: [number, string[]][]]
  return new Map(
    (await result.json<Row>()).map(([hash, suspected, sightings, rows]) => {
      return [hash, { suspected, sightings, rows: rows.map(([, numbers]) => numbers) }]
    }),
  )
}

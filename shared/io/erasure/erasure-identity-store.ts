/** Erases what tells of a subject from the keys of installs, and puts back what came later. */
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'

/**
 * SQL: the rows of a device; or those that name a user, as every key of an install with the user
 * does. The first offset of a row says nothing of later events with it, so all of them go, and
 * those of later events are put back.
 * @param is SQL that compares a text with the subject's id
 */
export function toIdentityCondition(kind: 'device' | 'user', is: (text: string) => string): string {
  const ofSubject =
    kind === 'device'
      ? is('device_id')
      : `arrayExists(one -> ${is('one')}, JSONExtract(traits, 'users', 'Array(String)'))`
  return `tenant_id = {tenant:String} and ${ofSubject}`
}

/** The traits of events that are left, each once, with its first and its last event. */
const remainingTraits = `
  select device_id, JSONExtractRaw(body, 'device') as device, user_id, account_id, os_version,
    device_brand, device_model, attested_key, toString(connection_network) as network,
    toFloat64(min(stream_offset)), toFloat64(max(stream_offset)),
    toUnixTimestamp64Milli(argMin(received_at, stream_offset)),
    toUnixTimestamp64Milli(argMax(received_at, stream_offset))
  from telemetry
  where tenant_id = {tenant:String} and device_id in {devices:Array(String)}
    and startsWith(device, '{')
  group by all`

type Remaining = [
  ...texts: [deviceId: string, device: string, userId: string, accountId: string],
  ...install: [osVersion: string, brand: string, model: string, key: string, network: string],
  ...places: [first: number, last: number, firstMs: number | string, lastMs: number | string],
]

/** Puts the keys of these devices back. Those that are there already stay as they are. */
export async function rebuildIdentityKeys(
  clickhouse: Clickhouse,
  tenantId: string,
  devices: readonly string[],
): Promise<void> {
  const result = await clickhouse.query({
    query: remainingTraits,
    query_params: { tenant: tenantId, devices },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<Remaining>()
  const events = rows.flatMap((row) => [
    toEvent(tenantId, row, 'first'),
    toEvent(tenantId, row, 'last'),
  ])
  await createIdentityKeyWriter(clickhouse).insertIdentityKeys(events)
}

/** As much of an event as its traits are read from. */
function toEvent(tenantId: string, row: Remaining, end: 'first' | 'last'): AcceptedEvent {
  const [deviceId, device, userId, accountId, osVersion, brand, model, key, network] = row
  const [first, last, firstMs, lastMs] = row.slice(9).map(Number) as [number, ...number[]]
  const body = {
    device_id: deviceId,
    device: JSON.parse(device) as unknown,
    sdk_meta: { os_version: osVersion, device_brand: brand, device_model: model },
    ...(userId === '' ? {} : { user_id: userId }),
    ...(accountId === '' ? {} : { account_id: accountId }),
  } as unknown as Telemetry
  return {
    tenant_id: tenantId,
    streamOffset: end === 'first' ? first : last,
    received_at: end === 'first' ? firstMs : lastMs,
    body,
    ...(key === '' ? {} : { install: { token_id: '', attested_key: key } }),
    ...(network === '' ? {} : { connection: { network, address_hash: '' } }),
  } as AcceptedEvent
}

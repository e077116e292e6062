/**
 * Erases what tells of a subject from the keys of installs and from what was decided by them, and
 * puts back what came later. Later events are decided again when the next one comes.
 */
import { toUserKey } from '#shared/core/identity/comparison.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'

/**
 * SQL: the rows of a device; or those that name a user: of the user's own key, and of installs
 * whose first event the user had. The first offset of a row says nothing of later events with it,
 * so all of them go, and those of later events are put back.
 * @param is SQL that compares a text with the subject's id
 */
function toIdentityCondition(
  kind: 'device' | 'user',
  ofKey: string,
  is: (text: string) => string,
): string {
  const named = `JSONExtract(first_event.traits, 'users', 'Array(String)')`
  const ofSubject =
    kind === 'device' ? is('device_id') : `(${ofKey} or arrayExists(one -> ${is('one')}, ${named}))`
  return `tenant_id = {tenant:String} and ${ofSubject}`
}

/** Tables of what is known of phones; all rows of a tenant are on one shard. */
export const identityTables = [
  'identity_keys',
  'identity_samples',
  'phone_links',
  'phone_installs',
] as const

/**
 * SQL: the rows of a subject in each of them. A link names no user, and the sample has hashes.
 * @param subject.sipHash of its id
 */
export function toIdentityConditions(
  { kind, id, sipHash }: { kind: 'device' | 'user'; id: string; sipHash: string },
  is: (text: string) => string,
): Record<(typeof identityTables)[number], string> {
  const ofDevice =
    kind === 'device' ? `tenant_id = {tenant:String} and ${is('device_id')}` : 'false'
  const ofKey = `key_hash = ${toHash(toUserKey(id))}`
  const sampled = kind === 'device' ? `device_hash = ${sipHash}` : ofKey
  return {
    identity_keys: toIdentityCondition(kind, ofKey, is),
    identity_samples: `tenant_id = {tenant:String} and ${sampled}`,
    phone_links: ofDevice,
    phone_installs: ofDevice,
  }
}

/**
 * SQL: the rows of a user's devices, some of which only events of the user may have told of. They
 * name no user, and are put back as far as events are left.
 * @param sipHashes of these devices
 */
export function toKeyConditions(sipHashes: readonly string[]) {
  const ofDevices = (hashed: string) => `tenant_id = {tenant:String}
    and stream_offset <= {last:UInt64} and ${hashed} in (${sipHashes.join(',')})`
  return {
    identity_keys: ofDevices('sipHash64(device_id)'),
    identity_samples: ofDevices('device_hash'),
  }
}

/** Takes a device out of the links of later installs of its phone. */
export async function eraseEarlierInstalls(
  clickhouse: Clickhouse,
  tenantId: string,
  is: (text: string) => string,
): Promise<void> {
  await onEveryNode(clickhouse, (node) =>
    node.command({
      query: `
        alter table phone_links update installs = arrayFilter(one -> not ${is('one')}, installs)
        where tenant_id = {tenant:String} and arrayExists(one -> ${is('one')}, installs)`,
      query_params: { tenant: tenantId },
      clickhouse_settings: { mutations_sync: '2' },
    }),
  )
}

export const countedIdentities = {
  identity_keys: 'uniqExact(key_hash, device_id)',
  identity_samples: 'uniqExact(key_hash, device_hash)',
  phone_links: 'uniqExact(device_id)',
  phone_installs: 'uniqExact(phone_id, device_id)',
} satisfies Record<(typeof identityTables)[number], string>

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

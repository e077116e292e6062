/**
 * Reads on how many phones or models the attested keys of a batch of events were registered, and
 * the certificates that signed them: one query per node with keys, beside that of the activity. It
 * returns only what is on more than one key is for, so of an honest batch it returns nothing. All
 * registrations before the events in the stream must have been inserted; later ones change nothing.
 */
import { activityQueryMax, keySightingsMax } from '#shared/core/base/limits/history.ts'
import {
  findSharedKey,
  type KeyKind,
  type KeySightings,
  keyKinds,
  type SharedKey,
  sharedKeyMax,
  toKeyText,
  toPhoneOfKey,
} from '#shared/core/installs/shared-keys.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { hashesQuery, hashIn, tenantsIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import { type InstallName, toName } from '#shared/io/identity/phone-link-store.ts'
import type { Phones } from '#shared/io/identity/phones.ts'

/** An event whose install has an attested key. */
export type KeyedEvent = {
  tenantId: string
  deviceId: string
  attestedKey: string
  streamOffset: number
}

export type InstallKeyStore = {
  /** @returns for each event the shared key as of the event, or null, in their order */
  findSharedKeys: (events: readonly KeyedEvent[]) => Promise<(SharedKey | null)[]>
}

/** @param phones of the same ClickHouse, asked for devices of shared keys alone */
export function createInstallKeyStore(
  clickhouse: Clickhouse,
  phones: Pick<Phones, 'findLinks'>,
): InstallKeyStore {
  return {
    findSharedKeys: async (events) => {
      const answers: (SharedKey | null)[] = []
      for (let at = 0; at < events.length; at += activityQueryMax) {
        const some = events.slice(at, at + activityQueryMax)
        answers.push(...(await findSharedKeys({ clickhouse, phones }, some)))
      }
      return answers
    },
  }
}

/** As rows name a key: `tenant hash`. */
const nameOf = ({ tenantId, attestedKey }: KeyedEvent): string =>
  `${tenantId} ${toHash(toKeyText('key', attestedKey))}`

/** A device or model that has a key: the device's id, or what is known of it instead. */
type Seen = { streamOffset: number; deviceId: string; subject: string }
type Found = Omit<KeySightings, 'sightings'> & { seen: Seen[] }

async function findSharedKeys(
  { clickhouse, phones }: { clickhouse: Clickhouse; phones: Pick<Phones, 'findLinks'> },
  events: readonly KeyedEvent[],
): Promise<(SharedKey | null)[]> {
  const sightings = new Map<string, Found[]>()
  // All keys of a tenant are on one node.
  const toShardKey = ({ tenantId }: KeyedEvent) => toHash(tenantId)
  const found = await onNodesOf(clickhouse, events, toShardKey, querySightings)
  for (const [tenantId, keyHash, kind, since, firsts] of found.flat()) {
    const name = `${tenantId} ${keyHash}`
    const seen = firsts.map(([first, deviceId, subject]) => ({
      streamOffset: Number(first),
      deviceId,
      subject: `${subject}`,
    }))
    const own = { kind, sinceOffset: Number(since), seen }
    sightings.set(name, [...(sightings.get(name) ?? []), own])
  }
  if (sightings.size === 0) return events.map(() => null)
  const phoneOf = await readPhones(phones, events, sightings)
  return events.map((event) => {
    const found = sightings.get(nameOf(event)) ?? []
    const { tenantId, streamOffset } = event
    const toHolder = ({ deviceId, subject }: Omit<Seen, 'streamOffset'>): string =>
      deviceId === '' ? subject : phoneOf({ tenantId, deviceId }, streamOffset)
    const known = found.map(({ seen, ...one }) => ({
      ...one,
      sightings: seen.map((each) => ({
        streamOffset: each.streamOffset,
        holder: toHolder(each),
      })),
    }))
    return findSharedKey(known, { streamOffset, holder: toHolder({ ...event, subject: '' }) })
  })
}

/**
 * Reads the phones of the devices of shared keys, each once for all events.
 * @returns the phone of a device as of an event; without a link it is a phone of its own
 */
async function readPhones(
  phones: Pick<Phones, 'findLinks'>,
  events: readonly KeyedEvent[],
  sightings: ReadonlyMap<string, readonly Found[]>,
): Promise<(install: InstallName, streamOffset: number) => string> {
  const wanted = new Map<string, InstallName>()
  for (const event of events) {
    const found = sightings.get(nameOf(event))
    if (found === undefined) continue
    for (const { deviceId } of [event, ...found.flatMap(({ seen }) => seen)]) {
      const install = { tenantId: event.tenantId, deviceId }
      if (deviceId !== '' && !isPlaceholderId(deviceId)) wanted.set(toName(install), install)
    }
  }
  const links = await phones.findLinks([...wanted.values()])
  const linkOf = new Map([...wanted.keys()].map((name, at) => [name, links[at]]))
  return (install, streamOffset) => {
    const link = linkOf.get(toName(install))
    // What a later event decides is not known yet.
    const isKnown = link != null && link.streamOffset <= streamOffset
    return toPhoneOfKey(install, isKnown ? link : undefined)
  }
}

type SightingsRow = [
  tenantId: string,
  keyHash: string,
  kind: KeyKind,
  sinceOffset: number | string,
  firsts: [first: number | string, deviceId: string, subject: number | string][],
]

/**
 * SQL: more devices or models than one key is for. Every kind allows at least one, so `shared` is
 * read from keys with at least two rows.
 */
const isShared = keyKinds
  .map((kind) => `kind = '${kind}' and length(firsts) > ${sharedKeyMax[kind]}`)
  .join(' or ')

async function querySightings(node: ClickhouseNode, events: KeyedEvent[]): Promise<SightingsRow[]> {
  if (events.length === 0) return []
  const tenants = tenantsIn(new Set(events.map((event) => event.tenantId)))
  const hashes = new Set(events.map((event) => toHash(toKeyText('key', event.attestedKey))))
  const last = Math.max(...events.map((event) => event.streamOffset))
  const ofKeys = `from install_keys prewhere ${hashIn('key_hash', hashes)}
    where ${tenants.text} and kind = 'key' and stream_offset <= {last:UInt64}`
  // The first of each device or model, merged or not; then those of a key, ascending.
  const toShared = (from: string) => `
    select tenant_id, key_hash, kind,
      arraySlice(arraySort(groupArray((first, device, subject_hash))), 1, ${keySightingsMax})
        as firsts
    from (
      select tenant_id, key_hash, kind, subject_hash, min(stream_offset) as first,
        max(device_id) as device
      ${from}
      group by tenant_id, key_hash, kind, subject_hash
    )
    group by tenant_id, key_hash, kind
    having ${isShared}`
  const result = await node.query({
    query: `
      select tenant_id, toString(key_hash), toString(kind), toUInt64(0), firsts
      from (${toShared(ofKeys)})
      union all
      select own.tenant_id, toString(own.key_hash), toString(issuer.kind), own.since, issuer.firsts
      from (
        select tenant_id, key_hash, issuer_hash, min(stream_offset) as since ${ofKeys}
          and issuer_hash != 0
        group by tenant_id, key_hash, issuer_hash
      ) as own
      inner join (
        ${toShared(`from install_keys
          prewhere key_hash in (select issuer_hash ${ofKeys} and issuer_hash != 0)
          where ${tenants.text} and kind != 'key' and stream_offset <= {last:UInt64}`)}
      ) as issuer
      on own.tenant_id = issuer.tenant_id and own.issuer_hash = issuer.key_hash`,
    query_params: { ...tenants.params, last },
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  return result.json<SightingsRow>()
}

/**
 * Reads on how many devices or models the attested keys of a batch of events were registered, and
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
} from '#shared/core/installs/shared-keys.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { hashesQuery, hashIn, tenantsIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'

/** An event whose install has an attested key. */
export type KeyedEvent = { tenantId: string; attestedKey: string; streamOffset: number }

export type InstallKeyStore = {
  /** @returns for each event the shared key as of the event, or null, in their order */
  findSharedKeys: (events: readonly KeyedEvent[]) => Promise<(SharedKey | null)[]>
}

export function createInstallKeyStore(clickhouse: Clickhouse): InstallKeyStore {
  return {
    findSharedKeys: async (events) => {
      const answers: (SharedKey | null)[] = []
      for (let at = 0; at < events.length; at += activityQueryMax) {
        const some = events.slice(at, at + activityQueryMax)
        answers.push(...(await findSharedKeys(clickhouse, some)))
      }
      return answers
    },
  }
}

/** As rows name a key: `tenant hash`. */
const nameOf = ({ tenantId, attestedKey }: KeyedEvent): string =>
  `${tenantId} ${toHash(toKeyText('key', attestedKey))}`

async function findSharedKeys(
  clickhouse: Clickhouse,
  events: readonly KeyedEvent[],
): Promise<(SharedKey | null)[]> {
  const sightings = new Map<string, KeySightings[]>()
  // All keys of a tenant are on one node.
  const toShardKey = ({ tenantId }: KeyedEvent) => toHash(tenantId)
  const found = await onNodesOf(clickhouse, events, toShardKey, querySightings)
  for (const [tenantId, keyHash, kind, since, firsts] of found.flat()) {
    const name = `${tenantId} ${keyHash}`
    const own = { kind, sinceOffset: Number(since), firstOffsets: firsts.map(Number) }
    sightings.set(name, [...(sightings.get(name) ?? []), own])
  }
  if (sightings.size === 0) return events.map(() => null)
  return events.map((event) =>
    findSharedKey(sightings.get(nameOf(event)) ?? [], event.streamOffset),
  )
}

type SightingsRow = [
  tenantId: string,
  keyHash: string,
  kind: KeyKind,
  sinceOffset: number | string,
  firstOffsets: (number | string)[],
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
      arraySlice(arraySort(groupArray(first)), 1, ${keySightingsMax}) as firsts
    from (
      select tenant_id, key_hash, kind, subject_hash, min(stream_offset) as first
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

/**
 * Reads the keys of installs: the first traits of an install, and which installs had a key before
 * another one. Of a key that thousands of installs have, a sample of them is counted, so a value
 * that all phones have in common costs a batch next to nothing.
 */
import {
  identityQueryMax,
  personalHoldersMax,
  traitHoldersMax,
} from '#shared/core/base/limits/entities.ts'
import { type KeyedTraits, listKeys } from '#shared/core/identity/comparison.ts'
import {
  countHolders,
  fromSample,
  isSampled,
  type NewInstall,
  type PhoneLink,
} from '#shared/core/identity/decide-link.ts'
import { readTraits, toInstallKey } from '#shared/core/identity/install-traits.ts'
import { toFixedText } from '#shared/core/identity/other-phone.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { hashesQuery, hashIn, tenantsIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import { type InstallName, toName, toTenantShard } from './phone-link-store.ts'

/** @returns the first event with traits of each install that has one, by `toName` */
export async function readFirsts(
  clickhouse: Clickhouse,
  installs: readonly InstallName[],
): Promise<Map<string, NewInstall>> {
  const firsts = new Map<string, NewInstall>()
  for (let at = 0; at < installs.length; at += identityQueryMax) {
    const some = installs.slice(at, at + identityQueryMax)
    const found = await onNodesOf(clickhouse, some, toTenantShard, queryFirsts)
    for (const first of found.flat()) firsts.set(toName(first), first)
  }
  return firsts
}

/** Of links of an earlier release it reads what their installs were first seen with. */
export async function completeLinks(
  clickhouse: Clickhouse,
  links: Map<string, PhoneLink>,
): Promise<void> {
  const bare = [...links.values()].filter(({ fixed }) => fixed === null)
  if (bare.length === 0) return
  for (const [name, { traits }] of await readFirsts(clickhouse, bare)) {
    links.set(name, { ...links.get(name)!, fixed: toFixedText(traits) })
  }
}

type FirstRow = [
  tenantId: string,
  deviceId: string,
  traits: string,
  streamOffset: number | string,
  receivedAtMs: number | string,
]

async function queryFirsts(node: ClickhouseNode, installs: InstallName[]): Promise<NewInstall[]> {
  if (installs.length === 0) return []
  const tenants = tenantsIn(new Set(installs.map(({ tenantId }) => tenantId)))
  const hashes = new Set(installs.map(({ deviceId }) => toHash(toInstallKey(deviceId))))
  const result = await node.query({
    query: `
      select tenant_id, device_id, tupleElement(min(first_event) as first, 'traits'),
        tupleElement(first, 'stream_offset'),
        toUnixTimestamp64Milli(tupleElement(first, 'received_at'))
      from identity_keys prewhere ${hashIn('key_hash', hashes)}
      where ${tenants.text} and first_event.traits != ''
      group by tenant_id, device_id`,
    query_params: tenants.params,
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<FirstRow>()
  return rows.map(([tenantId, deviceId, traits, streamOffset, receivedAtMs]) => ({
    tenantId,
    deviceId,
    traits: readTraits(traits),
    streamOffset: Number(streamOffset),
    receivedAtMs: Number(receivedAtMs),
  }))
}

/** A key of an install, with the place of its rows. */
export type PlacedKey = KeyedTraits & { tenantId: string; keyHash: string; name: string }

/** The key of all installs of a tenant, which only the sample has. */
const allInstallsHash = '0'
const nameOf = (tenantId: string, keyHash: string) => `${tenantId} ${keyHash}`

/** The keys of an install. */
export const placeKeys = ({ tenantId, traits }: NewInstall): PlacedKey[] =>
  listKeys(traits).map((keyed) => {
    const keyHash = toHash(keyed.key)
    return { ...keyed, tenantId, keyHash, name: nameOf(tenantId, keyHash) }
  })

/** Installs that are decided have their first events in `[firstOffset, lastOffset]`. */
export type OffsetSpan = { firstOffset: number; lastOffset: number }

/** How many were before the span, and the stream offsets of those in it, ascending. */
type Counted = { before: number; inSpan: number[] }

/** An install with a key, and the first offset that it had it at. */
export type Holder = { streamOffset: number; deviceId: string }

/** Who had keys, as of any offset in the span that they were read for. */
export type KeyHolders = {
  /** How many installs had a key before an offset, and whether they are few. */
  count: (key: PlacedKey, streamOffset: number) => { count: number; areFew: boolean }
  /** The latest ones before the span, and the first in it, in the order of the stream. */
  list: (key: PlacedKey) => readonly Holder[]
  /** By the sample; 0 where it has none. */
  countInstalls: (tenantId: string, streamOffset: number) => number
  /** Reads some keys: `heldKeysQueryMax` of them at most. */
  add: (keys: readonly PlacedKey[]) => Promise<void>
}

type Exact = Counted & { holders: Holder[] }

const none: Counted = { before: 0, inSpan: [] }
const noHolders: Exact = { ...none, holders: [] }

/**
 * Reads keys as they are added.
 * @param latest of a key so many installs are listed that had it before the span
 */
export function createKeyHolders(
  clickhouse: Clickhouse,
  span: OffsetSpan,
  latest: number,
): KeyHolders {
  const sampled = new Map<string, Counted>()
  const exact = new Map<string, Exact>()
  const countSampled = (name: string, streamOffset: number) =>
    countBefore(sampled.get(name) ?? none, streamOffset)
  return {
    countInstalls: (tenantId, streamOffset) =>
      fromSample(countSampled(nameOf(tenantId, allInstallsHash), streamOffset)),
    count: (key, streamOffset) =>
      countHolders(key, {
        sampled: countSampled(key.name, streamOffset),
        countAll: () => countBefore(exact.get(key.name) ?? none, streamOffset),
      }),
    list: ({ name }) => (exact.get(name) ?? noHolders).holders,
    add: async (keys) => {
      const samples = await onNodesOf(clickhouse, keys, toTenantShard, (node, nodeKeys) =>
        querySampled(node, nodeKeys, span),
      )
      for (const [name, counted] of samples.flat()) sampled.set(name, counted)
      // Of those with very many the sample is enough.
      const few = keys.filter(({ name }) => !isSampled(sampled.get(name)?.before ?? 0))
      const found = await onNodesOf(clickhouse, few, toTenantShard, (node, nodeKeys) =>
        queryHolders(node, nodeKeys, span, latest),
      )
      for (const [name, holders] of found.flat()) exact.set(name, holders)
    },
  }
}

const countBefore = ({ before, inSpan }: Counted, streamOffset: number): number =>
  before + countBelow(inSpan, streamOffset)

/** How many of these ascending offsets are below one. */
function countBelow(sorted: readonly number[], streamOffset: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < streamOffset) low = middle + 1
    else high = middle
  }
  return low
}

const hashesOf = (keys: readonly PlacedKey[]) => new Set(keys.map(({ keyHash }) => keyHash))

/** SQL: who has a key first when, and how many before the span and in it. */
const countedInSpan = `countIf(first < {first:UInt64}),
        arraySort(groupArrayIf(first, first >= {first:UInt64}))`

type SampledRow = [
  tenantId: string,
  keyHash: string,
  before: number | string,
  inSpan: (number | string)[],
]

async function querySampled(
  node: ClickhouseNode,
  keys: PlacedKey[],
  { firstOffset, lastOffset }: OffsetSpan,
): Promise<[name: string, counted: Counted][]> {
  if (keys.length === 0) return []
  const tenants = tenantsIn(new Set(keys.map(({ tenantId }) => tenantId)))
  const result = await node.query({
    query: `
      select tenant_id, toString(key_hash), ${countedInSpan}
      from (
        select tenant_id, key_hash, device_hash, min(stream_offset) as first
        from identity_samples
        prewhere ${hashIn('key_hash', new Set([allInstallsHash, ...hashesOf(keys)]))}
        where ${tenants.text} and stream_offset < {last:UInt64}
        group by tenant_id, key_hash, device_hash
      )
      group by tenant_id, key_hash`,
    query_params: { ...tenants.params, first: firstOffset, last: lastOffset },
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  return (await result.json<SampledRow>()).map(([tenantId, keyHash, before, inSpan]) => [
    nameOf(tenantId, keyHash),
    { before: Number(before), inSpan: inSpan.map(Number) },
  ])
}

type HolderCell = [streamOffset: number | string, deviceId: string]
type HoldersRow = [...SampledRow, before: HolderCell[], inSpan: HolderCell[]]

async function queryHolders(
  node: ClickhouseNode,
  keys: PlacedKey[],
  { firstOffset, lastOffset }: OffsetSpan,
  latest: number,
): Promise<[name: string, holders: Exact][]> {
  if (keys.length === 0) return []
  const tenants = tenantsIn(new Set(keys.map(({ tenantId }) => tenantId)))
  const personal = hashesOf(keys.filter(({ isPersonal }) => isPersonal))
  const result = await node.query({
    query: `
      select tenant_id, toString(key_hash), ${countedInSpan},
        arraySlice(arrayReverseSort(groupArrayIf((first, device_id), first < {first:UInt64})),
          1, {latest:UInt32}),
        arraySlice(arraySort(groupArrayIf((first, device_id), first >= {first:UInt64})), 1,
          if(${hashIn('key_hash', personal)}, {personal_max:UInt32}, {trait_max:UInt32}))
      from (
        select tenant_id, key_hash, device_id, min(stream_offset) as first
        from identity_keys prewhere ${hashIn('key_hash', hashesOf(keys))}
        where ${tenants.text} and stream_offset < {last:UInt64}
        group by tenant_id, key_hash, device_id
      )
      group by tenant_id, key_hash`,
    query_params: {
      ...tenants.params,
      first: firstOffset,
      last: lastOffset,
      latest,
      personal_max: personalHoldersMax,
      trait_max: traitHoldersMax,
    },
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<HoldersRow>()
  return rows.map(([tenantId, keyHash, before, inSpan, latestBefore, firstInSpan]) => [
    nameOf(tenantId, keyHash),
    {
      before: Number(before),
      inSpan: inSpan.map(Number),
      holders: [...latestBefore.reverse(), ...firstInSpan].map(([first, deviceId]) => ({
        streamOffset: Number(first),
        deviceId,
      })),
    },
  ])
}

/**
 * The links of installs in ClickHouse: which phone each is on. A link is decided once, and writing
 * it again changes nothing.
 */
import { identityQueryMax } from '#shared/core/base/limits/entities.ts'
import { type DecidedLink, linkKinds, type PhoneLink } from '#shared/core/identity/decide-link.ts'
import { quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  insertRowBinary,
  smallQuery,
} from '#shared/io/clickhouse/clickhouse.ts'
import { hashesQuery, tenantsIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'

/** An install of a tenant. */
export type InstallName = { tenantId: string; deviceId: string }

/** An install as it is used in maps. Ids of tenants have no spaces. */
export const toName = ({ tenantId, deviceId }: InstallName): string => `${tenantId} ${deviceId}`

/** All rows of a tenant are on one shard. */
export const toTenantShard = ({ tenantId }: { tenantId: string }): string => toHash(tenantId)

export type PhoneLinkWriter = {
  /** One call at a time; without links it sends nothing. @throws when ClickHouse fails */
  insertLinks: (links: readonly DecidedLink[]) => Promise<void>
}

const columnWriters = {
  tenant_id: (writer, { tenantId }) => writer.string(tenantId),
  device_id: (writer, { deviceId }) => writer.string(deviceId),
  phone_id: (writer, { phoneId }) => writer.string(phoneId),
  kind: (writer, { kind }) => writer.uint8(linkKinds.indexOf(kind)),
  possible_phone_id: (writer, { possible }) => writer.string(possible?.phoneId ?? ''),
  possible_confidence: (writer, { possible }) => writer.float32(possible?.confidence ?? 0),
  confidence: (writer, { confidence }) => writer.float32(confidence),
  evidence: (writer, { evidence }) => writer.string(JSON.stringify(evidence)),
  identifiers_shared: (writer, { identifiersShared }) => writer.uint8(identifiersShared ? 1 : 0),
  doubtful: (writer, { doubtful }) => writer.strings(doubtful),
  fixed: (writer, { fixed }) => writer.string(fixed ?? ''),
  is_compared: (writer, { isCompared }) => writer.uint8(isCompared ? 1 : 0),
  installs: (writer, { installs }) => writer.strings(installs),
  parameters_version: (writer, { parametersVersion }) => writer.uint32(parametersVersion),
  stream_offset: (writer, { streamOffset }) => writer.int64(streamOffset),
  received_at: (writer, { receivedAtMs }) => writer.int64(receivedAtMs),
} satisfies Record<string, (writer: RowWriter, link: DecidedLink) => void>

const into = `phone_links (${Object.keys(columnWriters).join(', ')})`
const writersInOrder = Object.values(columnWriters)

/** What a scorer writes. */
export function createPhoneLinkWriter(clickhouse: Clickhouse): PhoneLinkWriter {
  // Shards are written at the same time.
  const writers = Array.from({ length: clickhouse.shards.length || 1 }, createRowWriter)
  const insertInto = async (node: ClickhouseNode, links: DecidedLink[], shard: number) => {
    const writer = writers[shard]!
    writer.reset()
    for (const link of links) for (const write of writersInOrder) write(writer, link)
    await insertRowBinary(node, into, writer.written(), smallQuery)
  }
  return {
    insertLinks: async (links) => {
      if (links.length > 0) await onNodesOf(clickhouse, links, toTenantShard, insertInto)
    },
  }
}

type LinkRow = [
  tenantId: string,
  deviceId: string,
  phoneId: string,
  kind: PhoneLink['kind'],
  possiblePhoneId: string,
  possibleConfidence: number,
  confidence: number,
  identifiersShared: boolean | number,
  doubtful: string[],
  fixed: string,
  isCompared: boolean | number,
  installs: string[],
  parametersVersion: number,
  streamOffset: number | string,
  receivedAtMs: number | string,
]

/** @returns the links that are stored, by `toName` */
export async function readLinks(
  clickhouse: Clickhouse,
  installs: readonly InstallName[],
): Promise<Map<string, PhoneLink>> {
  const links = new Map<string, PhoneLink>()
  for (let at = 0; at < installs.length; at += identityQueryMax) {
    const some = installs.slice(at, at + identityQueryMax)
    const found = await onNodesOf(clickhouse, some, toTenantShard, queryLinks)
    for (const link of found.flat()) {
      const name = toName(link)
      const known = links.get(name)
      // Not merged yet: the first counts, as it was compared.
      const isBefore = known === undefined || link.streamOffset < known.streamOffset
      if (isBefore || (link.streamOffset === known.streamOffset && link.isCompared)) {
        links.set(name, link)
      }
    }
  }
  return links
}

async function queryLinks(node: ClickhouseNode, installs: InstallName[]): Promise<PhoneLink[]> {
  if (installs.length === 0) return []
  const tenants = tenantsIn(new Set(installs.map(({ tenantId }) => tenantId)))
  const result = await node.query({
    query: `
      select tenant_id, device_id, phone_id, toString(kind), possible_phone_id,
        possible_confidence, confidence, identifiers_shared, doubtful, fixed, is_compared, installs,
        parameters_version, stream_offset, toUnixTimestamp64Milli(received_at)
      from phone_links
      where ${tenants.text}
        and device_id in ${quoteTexts(installs.map(({ deviceId }) => deviceId))}`,
    query_params: tenants.params,
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  return (await result.json<LinkRow>()).map(toLink)
}

function toLink(row: LinkRow): PhoneLink {
  const [tenantId, deviceId, phoneId, kind, possiblePhoneId, ofPossible, confidence, ...more] = row
  const [identifiersShared, doubtful, fixed, isCompared, installs, ...decided] = more
  const [parametersVersion, streamOffset, receivedAtMs] = decided
  const possible =
    possiblePhoneId === ''
      ? null
      : { phoneId: possiblePhoneId, confidence: Math.fround(ofPossible) }
  return {
    tenantId,
    deviceId,
    phoneId,
    kind,
    possible,
    confidence: Math.fround(confidence),
    identifiersShared: Boolean(identifiersShared),
    doubtful,
    fixed: fixed === '' ? null : fixed,
    isCompared: Boolean(isCompared),
    installs,
    parametersVersion,
    streamOffset: Number(streamOffset),
    receivedAtMs: Number(receivedAtMs),
  }
}

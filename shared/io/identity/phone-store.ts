/**
 * Reads phones: the installs on each, as the service decided and analysts corrected. Decisions lie
 * in ClickHouse on one shard for each tenant, and never change; corrections are in Postgres. What
 * installs were seen with is read from their own shards.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import {
  phoneInstallsShownMax,
  phoneLookUpBytesMax,
  phoneUsersShownMax,
} from '#shared/core/base/limits/entities.ts'
import {
  countInstalls,
  type DevicePhone,
  type StoredLink,
  toPresentPhone,
} from '#shared/core/identity/phone.ts'
import type { Phone, PhoneInstall, PhoneUser } from '#shared/core/identity/phone-answer.ts'
import {
  evidenceSchema,
  type LinkKind,
  type PhoneEvidence,
} from '#shared/core/identity/phone-schemas.ts'
import { type Clickhouse, smallQuery, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import { nodeOfTenant } from '#shared/io/clickhouse/shards.ts'
import type { PhoneCorrection, PhoneCorrections } from './phone-corrections.ts'

export type PhoneStore = {
  /** @returns null when no install of the tenant is on it */
  readPhone: (query: { tenantId: string; phoneId: string }) => Promise<Phone | null>
  /** The phones of some installs; those of which nothing was decided are left out. */
  findPhonesOfDevices: (query: {
    tenantId: string
    deviceIds: readonly string[]
  }) => Promise<Map<string, DevicePhone>>
  /** What the service decided of an install; null when nothing. */
  findDecidedLink: (query: { tenantId: string; deviceId: string }) => Promise<StoredLink | null>
  /** How many installs the service put on a phone, without corrections. */
  countDecidedInstalls: (query: { tenantId: string; phoneId: string }) => Promise<number>
}

const inTenant = 'tenant_id = {tenant:String}'

const linksSql = (where: string) => `
  select device_id, phone_id, toString(kind), possible_phone_id, confidence, evidence,
    identifiers_shared, toUnixTimestamp64Milli(received_at)
  from phone_links final where ${inTenant} and ${where}`
type LinkRow = [
  ...[deviceId: string, phoneId: string, kind: LinkKind, possiblePhoneId: string],
  ...[confidence: number, evidence: string, shared: boolean, decidedAtMs: number | string],
]

const countsSql = `
  select phone_id, uniqExact(device_id) from phone_installs
  where ${inTenant} and phone_id in {ids:Array(String)} group by phone_id`

const installsSql = `
  select device_id from phone_installs where ${inTenant} and phone_id = {phone:String}
  group by device_id order by min(received_at) desc, device_id limit {limit:UInt32}`

const seenSql = `
  select device_id, toUnixTimestamp64Milli(min(first_seen_at)),
    toUnixTimestamp64Milli(max(devices.last_seen_at)), max(peak_risk_score)
  from devices where ${inTenant} and device_id in {ids:Array(String)} group by device_id`

const usersSql = `
  select user_id, toUnixTimestamp64Milli(min(first_seen)), toUnixTimestamp64Milli(max(last_seen))
      as last, count(), count() over ()
  from (
    select user_id, device_id, min(first_seen_at) as first_seen,
      max(user_devices.last_seen_at) as last_seen
    from user_devices
    where ${inTenant} and device_id in {ids:Array(String)} and user_id in (
      select arrayJoin(users) from devices where ${inTenant} and device_id in {ids:Array(String)}
    )
    group by user_id, device_id having max(is_placeholder) = 0
  )
  group by user_id order by last desc, user_id limit ${phoneUsersShownMax}`
type UserRow = [
  ...[userId: string, firstMs: number | string, lastMs: number | string],
  ...[installs: number | string, total: number | string],
]

/** How long a query may take, waiting for a connection included, and the most rows it reads. */
const readMaxMs = 3_000
const rowsReadMax = 10_000_000

export function createPhoneStore(
  clickhouse: Clickhouse,
  corrections: PhoneCorrections,
): PhoneStore {
  const readFrom =
    (node: Pick<Clickhouse, 'query'>, settings: ClickHouseSettings) =>
    async <Row>(query: string, query_params: Record<string, unknown>): Promise<Row[]> => {
      const result = await node.query({
        query,
        query_params,
        format: 'JSONCompactEachRow',
        clickhouse_settings: {
          ...settings,
          max_rows_to_read: String(rowsReadMax),
          max_execution_time: readMaxMs / 1_000,
        },
        use_multipart_params_auto: true,
        abort_signal: AbortSignal.timeout(readMaxMs + 500),
      })
      return result.json<Row>()
    }
  const readOfTenant = (tenantId: string) =>
    readFrom(nodeOfTenant(clickhouse, tenantId), smallQuery)
  const readAll = readFrom(clickhouse, { ...uncompiled, max_threads: 2 })

  const findLinks = async (tenantId: string, deviceIds: readonly string[]) => {
    const links = new Map<string, StoredLink>()
    for (const ids of toPieces(deviceIds)) {
      const sql = linksSql('device_id in {ids:Array(String)}')
      const rows = await readOfTenant(tenantId)<LinkRow>(sql, { tenant: tenantId, ids })
      for (const link of rows.map(toLink)) links.set(link.deviceId, link)
    }
    return links
  }

  const countDecided = async (tenantId: string, phoneIds: readonly string[]) => {
    const counts = new Map<string, number>()
    for (const ids of toPieces(phoneIds)) {
      const params = { tenant: tenantId, ids }
      const rows = await readOfTenant(tenantId)<[string, number | string]>(countsSql, params)
      for (const [phoneId, count] of rows) counts.set(phoneId, Number(count))
    }
    return counts
  }

  const findPhonesOfDevices: PhoneStore['findPhonesOfDevices'] = async (query) => {
    const { tenantId, deviceIds } = query
    const [links, corrected] = await Promise.all([
      findLinks(tenantId, deviceIds),
      corrections.findCorrections(tenantId, deviceIds),
    ])
    const present = [...links.values()].map(
      (link) => [link.deviceId, toPresentPhone(link, corrected.get(link.deviceId))] as const,
    )
    const phoneIds = [...new Set(present.map(([, { phoneId }]) => phoneId))]
    const [counts, ofPhones] = await Promise.all([
      countDecided(tenantId, phoneIds),
      corrections.findCorrectionsOfPhones(tenantId, phoneIds),
    ])
    const byPhone = toByPhone(ofPhones)
    return new Map(
      present.map(([deviceId, phone]) => {
        const { phoneId } = phone
        const decided = counts.get(phoneId) ?? 0
        // The install itself is on it, whatever is erased meanwhile.
        const installs = Math.max(1, countInstalls(phoneId, decided, byPhone.get(phoneId) ?? []))
        return [deviceId, { ...phone, installs }]
      }),
    )
  }

  const readPhone: PhoneStore['readPhone'] = async ({ tenantId, phoneId }) => {
    const ofPhone = await corrections.findCorrectionsOfPhones(tenantId, [phoneId])
    const taken = new Set(
      ofPhone.filter((one) => one.phoneId !== phoneId).map(({ deviceId }) => deviceId),
    )
    const added = ofPhone.filter((one) => one.phoneId === phoneId)
    const [counts, rows] = await Promise.all([
      countDecided(tenantId, [phoneId]),
      readOfTenant(tenantId)<[deviceId: string]>(installsSql, {
        tenant: tenantId,
        phone: phoneId,
        limit: phoneInstallsShownMax + taken.size,
      }),
    ])
    const decided = rows.map(([deviceId]) => deviceId).filter((deviceId) => !taken.has(deviceId))
    const deviceIds = [...new Set([...added.map(({ deviceId }) => deviceId), ...decided])]
    const shown = deviceIds.slice(0, phoneInstallsShownMax)
    if (shown.length === 0) return null
    const correctedIds = new Set(added.map(({ deviceId }) => deviceId))
    const [links, seen, users] = await Promise.all([
      findLinks(tenantId, shown),
      readAll<SeenRow>(seenSql, { tenant: tenantId, ids: shown }),
      readAll<UserRow>(usersSql, { tenant: tenantId, ids: shown }),
    ])
    const installs = toInstalls(links, seen, { phoneId, correctedIds })
    if (installs.length === 0) return null
    const installsTotal = countInstalls(phoneId, counts.get(phoneId) ?? 0, ofPhone)
    return {
      phoneId,
      installs,
      installsTotal: Math.max(installs.length, installsTotal),
      users: users.map(toUser),
      usersTotal: Number(users[0]?.[4] ?? 0),
    }
  }

  return {
    readPhone,
    findPhonesOfDevices,
    findDecidedLink: async ({ tenantId, deviceId }) =>
      (await findLinks(tenantId, [deviceId])).get(deviceId) ?? null,
    countDecidedInstalls: async ({ tenantId, phoneId }) =>
      (await countDecided(tenantId, [phoneId])).get(phoneId) ?? 0,
  }
}

type SeenRow = [
  ...[deviceId: string, firstMs: number | string, lastMs: number | string, riskScore: number],
]

/**
 * Installs whose events are erased, or not stored yet, are left out, and one that was the first of
 * the phone until it was compared.
 */
function toInstalls(
  links: ReadonlyMap<string, StoredLink>,
  seen: readonly SeenRow[],
  { phoneId, correctedIds }: { phoneId: string; correctedIds: ReadonlySet<string> },
): PhoneInstall[] {
  const installs = seen.flatMap(([deviceId, firstMs, lastMs, peakRiskScore]) => {
    const link = links.get(deviceId)
    const isCorrected = correctedIds.has(deviceId)
    if (link === undefined || (link.phoneId !== phoneId && !isCorrected)) return []
    const [firstSeenAtMs, lastSeenAtMs] = [Number(firstMs), Number(lastMs)]
    return [{ ...link, isCorrected, firstSeenAtMs, lastSeenAtMs, peakRiskScore }]
  })
  return installs.sort(
    (a, b) => b.firstSeenAtMs - a.firstSeenAtMs || (a.deviceId < b.deviceId ? -1 : 1),
  )
}

const toUser = ([userId, firstMs, lastMs, installs]: UserRow): PhoneUser => ({
  userId,
  firstSeenAtMs: Number(firstMs),
  lastSeenAtMs: Number(lastMs),
  installs: Number(installs),
})

const toLink = (row: LinkRow): StoredLink => ({
  deviceId: row[0],
  phoneId: row[1],
  kind: row[2],
  possiblePhoneId: row[3],
  confidence: row[4],
  evidence: toEvidence(row[5]),
  identifiersShared: row[6],
  decidedAtMs: Number(row[7]),
})

/** A row of another release may have more; what cannot be read is not shown. */
function toEvidence(text: string): PhoneEvidence[] {
  const parsed = evidenceSchema.array().safeParse(text === '' ? [] : JSON.parse(text))
  return parsed.success ? parsed.data : []
}

function toByPhone(corrections: readonly PhoneCorrection[]): Map<string, PhoneCorrection[]> {
  const byPhone = new Map<string, PhoneCorrection[]>()
  for (const one of corrections) {
    for (const phoneId of new Set([one.phoneId, one.fromPhoneId])) {
      byPhone.set(phoneId, [...(byPhone.get(phoneId) ?? []), one])
    }
  }
  return byPhone
}

/** Ids in pieces that fit in a parameter, where each byte may be escaped; each id once. */
function toPieces(ids: readonly string[]): string[][] {
  const pieces: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const id of new Set(ids)) {
    const size = 2 * Buffer.byteLength(id) + idOverheadBytes
    if (bytes + size > phoneLookUpBytesMax) {
      pieces.push([])
      bytes = 0
    }
    pieces.at(-1)!.push(id)
    bytes += size
  }
  return pieces
}

/** Quotes and a comma. */
const idOverheadBytes = 3

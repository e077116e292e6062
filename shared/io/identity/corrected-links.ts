/**
 * What analysts say of phones, for decisions on later events: an install that was put on another
 * phone counts as on that one, with the installs that the service decided to be on it.
 */
import { phoneInstallsMax } from '#shared/core/base/limits/entities.ts'
import type { PhoneLink } from '#shared/core/identity/decide-link.ts'
import { quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { hashesQuery, tenantsIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type InstallName, toName, toTenantShard } from './phone-link-store.ts'

/** A link at an instant, in ms since 1970. */
export type LinkAt = { link: PhoneLink; atMs: number }

type CorrectionRow = {
  tenant_id: string
  device_id: string
  phone_id: string
  at: Date
  undone_at: Date | null
}

/** @returns the links as corrections have them at their instants, in their order */
export async function correctLinks(
  { clickhouse, postgres }: { clickhouse: Clickhouse; postgres: Queryable },
  links: readonly LinkAt[],
): Promise<PhoneLink[]> {
  const corrections = await readCorrections(
    postgres,
    links.map(({ link }) => link),
  )
  if (corrections.size === 0) return links.map(({ link }) => link)
  const phoneIds = links.map(({ link, atMs }) => {
    const own = corrections.get(toName(link)) ?? []
    return own.find((one) => isValid(one, atMs))?.phone_id ?? null
  })
  const wanted = links.flatMap(({ link: { tenantId } }, at) => {
    const phoneId = phoneIds[at]!
    return phoneId === null ? [] : [{ tenantId, phoneId }]
  })
  const installs = await readInstalls(clickhouse, wanted)
  return links.map(({ link }, at) => {
    const phoneId = phoneIds[at]!
    if (phoneId === null || phoneId === link.phoneId) return link
    const others = (installs.get(`${link.tenantId} ${phoneId}`) ?? []).filter(
      (deviceId) => deviceId !== link.deviceId,
    )
    const kind = others.length === 0 ? 'first' : 'linked'
    return { ...link, phoneId, kind, possible: null, confidence: 1, installs: others }
  })
}

const isValid = ({ at, undone_at: undoneAt }: CorrectionRow, atMs: number): boolean =>
  at.getTime() < atMs && (undoneAt === null || undoneAt.getTime() >= atMs)

/** @returns of each install that has some, its corrections, the latest first */
async function readCorrections(
  db: Queryable,
  installs: readonly InstallName[],
): Promise<Map<string, CorrectionRow[]>> {
  const unique = [...new Map(installs.map((one) => [toName(one), one])).values()]
  const { rows } = await db.query<CorrectionRow>({
    name: 'corrections-of-installs',
    text: `select tenant_id, device_id, phone_id, at, undone_at
           from unnest($1::text[], $2::text[]) as wanted (tenant_id, device_id)
           join phone_corrections using (tenant_id, device_id)
           order by at desc`,
    values: [unique.map(({ tenantId }) => tenantId), unique.map(({ deviceId }) => deviceId)],
  })
  const found = new Map<string, CorrectionRow[]>()
  for (const row of rows) {
    const name = toName({ tenantId: row.tenant_id, deviceId: row.device_id })
    found.set(name, [...(found.get(name) ?? []), row])
  }
  return found
}

type TenantPhone = { tenantId: string; phoneId: string }

/** @returns the latest installs of each phone, in the order of the stream, by `tenant phone` */
async function readInstalls(
  clickhouse: Clickhouse,
  phones: readonly TenantPhone[],
): Promise<Map<string, string[]>> {
  const found = await onNodesOf(clickhouse, phones, toTenantShard, queryInstalls)
  const installs = new Map<string, string[]>()
  for (const [tenantId, phoneId, deviceId] of found.flat()) {
    const name = `${tenantId} ${phoneId}`
    installs.set(name, [...(installs.get(name) ?? []), deviceId])
  }
  return installs
}

type InstallRow = [tenantId: string, phoneId: string, deviceId: string]

async function queryInstalls(node: ClickhouseNode, phones: TenantPhone[]): Promise<InstallRow[]> {
  if (phones.length === 0) return []
  const tenants = tenantsIn(new Set(phones.map(({ tenantId }) => tenantId)))
  const result = await node.query({
    query: `
      select tenant_id, phone_id, device_id from (
        select tenant_id, phone_id, device_id, min(stream_offset) as first
        from phone_installs
        where ${tenants.text}
          and phone_id in ${quoteTexts([...new Set(phones.map(({ phoneId }) => phoneId))])}
        group by tenant_id, phone_id, device_id
        order by first desc
        limit ${phoneInstallsMax} by tenant_id, phone_id
      )
      order by first`,
    query_params: tenants.params,
    use_multipart_params_auto: true,
    clickhouse_settings: hashesQuery,
    format: 'JSONCompactEachRow',
  })
  return result.json<InstallRow>()
}

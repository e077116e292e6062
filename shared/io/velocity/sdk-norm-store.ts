/**
 * Reads what SDK versions usually send, for the events of a batch at once. A norm is of hours that
 * are over when it is asked for and never change again, so an answer is kept in memory for good,
 * and every scorer has the same one.
 */
import { cachedTenantsMax, sdkNormQueryMax, sdkNormsCachedMax } from '#shared/core/base/limits.ts'
import { categories } from '#shared/core/telemetry/telemetry.ts'
import {
  estimateDevices,
  noNorm,
  type SdkNorm,
  toNormWindow,
} from '#shared/core/velocity/signals-missing.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTenantCache } from '#shared/io/process/tenant-cache.ts'

/** An event whose norm is asked for: everything before it in the stream must be stored. */
export type SdkNormQuestion = {
  tenantId: string
  sdkVersion: string
  platform: string
  /** When the event was received, in ms since 1970. */
  atMs: number
}

export type SdkNormStore = {
  /** @returns one norm for each question, in their order; `noNorm` where nothing was seen */
  findNorms: (questions: readonly SdkNormQuestion[]) => Promise<SdkNorm[]>
}

export function createSdkNormStore(clickhouse: Clickhouse): SdkNormStore {
  const cached = createTenantCache<SdkNorm>({
    tenantsMax: cachedTenantsMax,
    entriesMax: sdkNormsCachedMax,
  })
  return {
    findNorms: async (questions) => {
      const answers = new Map<string, SdkNorm>()
      const open = new Map<string, Asked>()
      const asked = questions.map(toAsked)
      for (const one of asked) {
        const known = cached.get(one.tenantId, one.key)
        if (known === undefined) open.set(one.key, one)
        else answers.set(one.key, known)
      }
      const rest = [...open.values()]
      for (let at = 0; at < rest.length; at += sdkNormQueryMax) {
        const some = rest.slice(at, at + sdkNormQueryMax)
        const found = await readNorms(clickhouse, some)
        for (const { tenantId, key } of some) {
          const norm = found.get(key) ?? noNorm
          answers.set(key, norm)
          cached.set(tenantId, key, norm)
        }
      }
      return asked.map(({ key }) => answers.get(key)!)
    },
  }
}

type Asked = SdkNormQuestion & { key: string; fromMs: number; toMs: number }

function toAsked(question: SdkNormQuestion): Asked {
  const window = toNormWindow(question.atMs)
  const { tenantId, sdkVersion, platform } = question
  return { ...question, ...window, key: toKey(tenantId, sdkVersion, platform, window.toMs) }
}

/** Versions and platforms are free text: no separator is safe between them. */
const toKey = (tenantId: string, sdkVersion: string, platform: string, toMs: number): string =>
  JSON.stringify([tenantId, sdkVersion, platform, toMs])

const counts = ['devices', ...categories.map((category) => `empty_${category}`)]

/**
 * One query for all. It may answer for combinations that nobody asked about, which costs less than
 * to tell them apart.
 */
async function readNorms(
  clickhouse: Clickhouse,
  asked: readonly Asked[],
): Promise<Map<string, SdkNorm>> {
  const distinct = (values: readonly string[]) => [...new Set(values)]
  const result = await clickhouse.query({
    query: `
      select tenant_id, sdk_version, platform, end,
        ${counts.map((count) => `groupBitmapMerge(${count})`).join(', ')}
      from sdk_norms
      array join {ends:Array(UInt32)} as end
      where tenant_id in {tenants:Array(String)} and sdk_version in {versions:Array(String)}
        and platform in {platforms:Array(String)}
        and hour >= toDateTime({from:UInt32}) and hour < toDateTime({to:UInt32})
        and toUnixTimestamp(hour) < end and toUnixTimestamp(hour) >= end - {length:UInt32}
      group by tenant_id, sdk_version, platform, end`,
    query_params: {
      tenants: distinct(asked.map((one) => one.tenantId)),
      versions: distinct(asked.map((one) => one.sdkVersion)),
      platforms: distinct(asked.map((one) => one.platform)),
      ends: [...new Set(asked.map((one) => one.toMs / 1000))],
      length: (asked[0]!.toMs - asked[0]!.fromMs) / 1000,
      from: Math.min(...asked.map((one) => one.fromMs)) / 1000,
      to: Math.max(...asked.map((one) => one.toMs)) / 1000,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  type Row = [string, string, string, number, ...(number | string)[]]
  const norms = new Map<string, SdkNorm>()
  for (const [tenantId, version, platform, end, ...taken] of await result.json<Row>()) {
    const [devices = 0, ...empty] = taken.map((places) => estimateDevices(Number(places)))
    const emptyOn = Object.fromEntries(categories.map((name, index) => [name, empty[index] ?? 0]))
    norms.set(toKey(tenantId, version, platform, end * 1000), {
      devices,
      emptyOn: emptyOn as SdkNorm['emptyOn'],
    })
  }
  return norms
}

/**
 * Loads the baselines of SDK versions, for a whole batch at once: what a version usually sends. The
 * hours of a baseline have ended and never change, so it can be cached, and every scorer has the
 * same one.
 */
import { sdkBaselinesCachedMax, sdkBaselinesPerQueryMax } from '#shared/core/base/limits/history.ts'
import { cachedTenantsMax } from '#shared/core/base/limits/tenants.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import {
  estimateDevices,
  noBaseline,
  type SdkBaseline,
  toBaselineWindow,
} from '#shared/core/velocity/signals-missing.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTenantCache } from '#shared/io/process/tenant-cache.ts'

/** An event. Everything before it in the stream must be stored. */
export type SdkBaselineQuery = {
  tenantId: string
  sdkVersion: string
  platform: string
  /** When the event was received, in ms since 1970. */
  atMs: number
}

export type SdkBaselineStore = {
  /** @returns the baseline of each query, in their order; `noBaseline` without events */
  loadBaselines: (queries: readonly SdkBaselineQuery[]) => Promise<SdkBaseline[]>
}

export function createSdkBaselineStore(clickhouse: Clickhouse): SdkBaselineStore {
  const cached = createTenantCache<SdkBaseline>({
    tenantsMax: cachedTenantsMax,
    entriesMax: sdkBaselinesCachedMax,
  })
  return {
    loadBaselines: async (queries) => {
      const baselines = new Map<string, SdkBaseline>()
      const open = new Map<string, KeyedQuery>()
      const keyed = queries.map(toKeyed)
      for (const one of keyed) {
        const known = cached.get(one.tenantId, one.key)
        if (known === undefined) open.set(one.key, one)
        else baselines.set(one.key, known)
      }
      const rest = [...open.values()]
      for (let at = 0; at < rest.length; at += sdkBaselinesPerQueryMax) {
        const some = rest.slice(at, at + sdkBaselinesPerQueryMax)
        const found = await readBaselines(clickhouse, some)
        for (const { tenantId, key } of some) {
          const baseline = found.get(key) ?? noBaseline
          baselines.set(key, baseline)
          cached.set(tenantId, key, baseline)
        }
      }
      return keyed.map(({ key }) => baselines.get(key)!)
    },
  }
}

type KeyedQuery = SdkBaselineQuery & { key: string; fromMs: number; toMs: number }

function toKeyed(query: SdkBaselineQuery): KeyedQuery {
  const window = toBaselineWindow(query.atMs)
  const { tenantId, sdkVersion, platform } = query
  return { ...query, ...window, key: toKey(tenantId, sdkVersion, platform, window.toMs) }
}

/** As JSON: versions and platforms are free text, so no separator is safe. */
const toKey = (tenantId: string, sdkVersion: string, platform: string, toMs: number): string =>
  JSON.stringify([tenantId, sdkVersion, platform, toMs])

const counts = ['devices', ...categories.map((category) => `empty_${category}`)]

/** Reads all baselines in one query. It may return further combinations, which is cheaper. */
async function readBaselines(
  clickhouse: Clickhouse,
  queries: readonly KeyedQuery[],
): Promise<Map<string, SdkBaseline>> {
  const distinct = (values: readonly string[]) => [...new Set(values)]
  const result = await clickhouse.query({
    query: `
      select tenant_id, sdk_version, platform, end,
        ${counts.map((count) => `groupBitmapMerge(${count})`).join(', ')}
      from sdk_baselines
      array join {ends:Array(UInt32)} as end
      where tenant_id in {tenants:Array(String)} and sdk_version in {versions:Array(String)}
        and platform in {platforms:Array(String)}
        and hour >= toDateTime({from:UInt32}) and hour < toDateTime({to:UInt32})
        and toUnixTimestamp(hour) < end and toUnixTimestamp(hour) >= end - {length:UInt32}
      group by tenant_id, sdk_version, platform, end`,
    query_params: {
      tenants: distinct(queries.map((one) => one.tenantId)),
      versions: distinct(queries.map((one) => one.sdkVersion)),
      platforms: distinct(queries.map((one) => one.platform)),
      ends: [...new Set(queries.map((one) => one.toMs / 1000))],
      length: (queries[0]!.toMs - queries[0]!.fromMs) / 1000,
      from: Math.min(...queries.map((one) => one.fromMs)) / 1000,
      to: Math.max(...queries.map((one) => one.toMs)) / 1000,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  type Row = [string, string, string, number, ...(number | string)[]]
  const baselines = new Map<string, SdkBaseline>()
  for (const [tenantId, version, platform, end, ...counts] of await result.json<Row>()) {
    const [devices = 0, ...empty] = counts.map((registers) => estimateDevices(Number(registers)))
    const emptyOn = Object.fromEntries(categories.map((name, index) => [name, empty[index] ?? 0]))
    baselines.set(toKey(tenantId, version, platform, end * 1000), {
      devices,
      emptyOn: emptyOn as SdkBaseline['emptyOn'],
    })
  }
  return baselines
}

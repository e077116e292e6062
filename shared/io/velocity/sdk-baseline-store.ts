/**
 * Reads what SDK versions usually send, for the events of a batch at once. A baseline is of hours
 * that are over when it is asked for and never change again, so an answer is kept in memory for
 * good, and every scorer has the same one.
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

/** An event whose baseline is asked for: everything before it in the stream must be stored. */
export type SdkBaselineQuery = {
  tenantId: string
  sdkVersion: string
  platform: string
  /** When the event was received, in ms since 1970. */
  atMs: number
}

export type SdkBaselineStore = {
  /**
   * @returns one baseline for each question, in their order; `noBaseline` where nothing was seen
   */
  loadBaselines: (questions: readonly SdkBaselineQuery[]) => Promise<SdkBaseline[]>
}

export function createSdkBaselineStore(clickhouse: Clickhouse): SdkBaselineStore {
  const cached = createTenantCache<SdkBaseline>({
    tenantsMax: cachedTenantsMax,
    entriesMax: sdkBaselinesCachedMax,
  })
  return {
    loadBaselines: async (questions) => {
      const answers = new Map<string, SdkBaseline>()
      const open = new Map<string, Asked>()
      const asked = questions.map(toAsked)
      for (const one of asked) {
        const known = cached.get(one.tenantId, one.key)
        if (known === undefined) open.set(one.key, one)
        else answers.set(one.key, known)
      }
      const rest = [...open.values()]
      for (let at = 0; at < rest.length; at += sdkBaselinesPerQueryMax) {
        const some = rest.slice(at, at + sdkBaselinesPerQueryMax)
        const found = await readBaselines(clickhouse, some)
        for (const { tenantId, key } of some) {
          const baseline = found.get(key) ?? noBaseline
          answers.set(key, baseline)
          cached.set(tenantId, key, baseline)
        }
      }
      return asked.map(({ key }) => answers.get(key)!)
    },
  }
}

type Asked = SdkBaselineQuery & { key: string; fromMs: number; toMs: number }

function toAsked(question: SdkBaselineQuery): Asked {
  const window = toBaselineWindow(question.atMs)
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
async function readBaselines(
  clickhouse: Clickhouse,
  asked: readonly Asked[],
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
  const baselines = new Map<string, SdkBaseline>()
  for (const [tenantId, version, platform, end, ...taken] of await result.json<Row>()) {
    const [devices = 0, ...empty] = taken.map((places) => estimateDevices(Number(places)))
    const emptyOn = Object.fromEntries(categories.map((name, index) => [name, empty[index] ?? 0]))
    baselines.set(toKey(tenantId, version, platform, end * 1000), {
      devices,
      emptyOn: emptyOn as SdkBaseline['emptyOn'],
    })
  }
  return baselines
}

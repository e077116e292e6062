/** The recent new installs of a tenant, to learn from: a sample of bounded size. */
import { randomUUID } from 'node:crypto'
import {
  learnedBatchInstalls,
  learnedComparisonsMax,
  learnedInstallsMax,
  learnedInstallsMin,
} from '#shared/core/base/limits/entities.ts'
import { observeInstall } from '#shared/core/identity/decide-link.ts'
import type { ObservedInstall } from '#shared/core/identity/estimate-parameters.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { nodeOfTenant, onEveryNode } from '#shared/io/clickhouse/shards.ts'
import { findPastCandidates } from './link-finder.ts'

/** A query has so long, and two threads. */
const settings = { max_threads: 2, max_execution_time: 30 } as const

/** @returns tenants with enough new installs to learn from, since an instant */
export async function listLearning(clickhouse: Clickhouse, sinceMs: number): Promise<string[]> {
  const found = await onEveryNode(clickhouse, async (node) => {
    const result = await node.query({
      query: `
        select tenant_id from phone_links
        where received_at >= fromUnixTimestamp64Milli({since:Int64})
        group by tenant_id having count() >= {least:UInt32}`,
      query_params: { since: sinceMs, least: learnedInstallsMin },
      clickhouse_settings: settings,
      format: 'JSONCompactEachRow',
    })
    return result.json<[tenantId: string]>()
  })
  return found.flat(2)
}

export type RecentInstalls = {
  /** In the order of the stream. */
  deviceIds: string[]
  /** How many phones the tenant has, and how many of them are new since the instant. */
  phones: number
  newPhones: number
}

/** Reads which installs are new since an instant; of many a sample that nobody can foresee. */
export async function readRecentInstalls(
  clickhouse: Clickhouse,
  { tenantId, sinceMs }: { tenantId: string; sinceMs: number },
): Promise<RecentInstalls> {
  const node = nodeOfTenant(clickhouse, tenantId)
  const since = 'received_at >= fromUnixTimestamp64Milli({since:Int64})'
  const read = async <Row>(query: string): Promise<Row[]> => {
    const result = await node.query({
      query,
      query_params: {
        tenant: tenantId,
        since: sinceMs,
        salt: randomUUID(),
        most: learnedInstallsMax,
      },
      clickhouse_settings: settings,
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  const [counts] = await read<[phones: number | string, newPhones: number | string]>(`
    select uniqIf(device_id, kind != 'linked'), uniqIf(device_id, kind != 'linked' and ${since})
    from phone_links where tenant_id = {tenant:String}`)
  const installs = await read<[deviceId: string]>(`
    select device_id from (
      select device_id, min(stream_offset) as first from phone_links
      where tenant_id = {tenant:String} and ${since}
      group by device_id
      order by sipHash64({salt:String}, device_id) limit {most:UInt32}
    )
    order by first`)
  return {
    deviceIds: installs.map(([deviceId]) => deviceId),
    phones: Number(counts![0]),
    newPhones: Number(counts![1]),
  }
}

/** How recent installs compared with their candidates, up to a number of comparisons. */
export async function observeInstalls(
  clickhouse: Clickhouse,
  tenantId: string,
  { deviceIds, phones, newPhones }: RecentInstalls,
): Promise<ObservedInstall[]> {
  const observed: ObservedInstall[] = []
  let comparisons = 0
  for (let at = 0; at < deviceIds.length; at += learnedBatchInstalls) {
    const some = deviceIds.slice(at, at + learnedBatchInstalls)
    const installs = some.map((deviceId) => ({ tenantId, deviceId }))
    // New phones came one after the other.
    const then = phones - Math.round(newPhones * (1 - at / deviceIds.length))
    for (const { install, candidates } of await findPastCandidates(clickhouse, installs)) {
      const one = observeInstall(install.traits, candidates, Math.max(1, then))
      comparisons += one.candidates.flat().length
      if (comparisons > learnedComparisonsMax) return observed
      observed.push(one)
    }
  }
  return observed
}

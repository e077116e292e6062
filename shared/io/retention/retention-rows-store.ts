/**
 * Retention in ClickHouse: partitions that are too old for all tenants are dropped; other rows are
 * removed by mutations, one at a time, each for many tenants with the same limit. An aggregate of a
 * device, session or user is removed with all its rows once its last event is too old, so active
 * ones keep their first event and highest score.
 */
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'

/** A table and the limit that it is under. */
export const retainedTables = [
  'telemetry',
  'decisions',
  'sessions',
  'devices',
  'user_devices',
  'reconciliation_entries',
  'reconciliation_accepted',
  'shadow_decisions',
  'installs',
  'install_keys',
  'identity_keys',
  'identity_samples',
  'phone_links',
  'phone_installs',
  'replays',
  'hourly_counts',
  'daily_counts',
] as const
type RetainedTable = (typeof retainedTables)[number]

type RemoveRows = {
  table: RetainedTable
  /** All with the same limit. */
  tenantIds: readonly string[]
  /** Rows that were received, or seen last, before this instant are removed. */
  cutoffMs: number
  signal: AbortSignal
  /** The monotonic clock. */
  nowMs: () => number
}

/** A mutation of the table is running; another one has to wait. */
class MutationBusyError extends Error {
  constructor(table: RetainedTable, why: string) {
    super(`the removal of rows from ${table} has to wait: ${why}`)
    this.name = 'MutationBusyError'
  }
}

/** Tenants in one statement: 1,000 ids of 63 characters fit a quarter of a MiB. */
const tenantsPerStatement = 1_000
/** How long to wait for a mutation; afterwards it continues without us. */
const mutationMaxMs = 10 * 60_000

/** Tables with one row per record, and the column of its time; the others hold sums. */
const timeColumns: Partial<Record<RetainedTable, string>> = {
  telemetry: 'received_at',
  decisions: 'received_at',
  reconciliation_entries: 'hour',
  reconciliation_accepted: 'hour',
  shadow_decisions: 'received_at',
  installs: 'received_at',
  replays: 'received_at',
  hourly_counts: 'hour',
  daily_counts: 'day',
}

/** What was decided of an install. */
const linkTables: readonly RetainedTable[] = ['phone_links', 'phone_installs']

const entityColumns: Partial<Record<RetainedTable, string>> = {
  sessions: 'tenant_id, device_id, session_id',
  devices: 'tenant_id, device_id',
  user_devices: 'tenant_id, user_id, device_id',
  install_keys: 'tenant_id, key_hash, kind, subject_hash, issuer_hash',
  identity_keys: 'tenant_id, key_hash, device_id',
  identity_samples: 'tenant_id, key_hash, device_hash',
}

/**
 * Removes the rows of some tenants that are before a cutoff. Nothing happens when there are none.
 * @returns how many rows there were; of a table that is summed up, how many devices, ...
 * @throws MutationBusyError when a mutation does not end in time, or did not begin with ours
 */
export async function removeRows(clickhouse: Clickhouse, wanted: RemoveRows): Promise<number> {
  const removed = await onEveryNode(clickhouse, (node) => removeOn(node, wanted))
  return removed.reduce((sum, one) => sum + one, 0)
}

async function removeOn(node: ClickhouseNode, wanted: RemoveRows): Promise<number> {
  let removed = 0
  for (let at = 0; at < wanted.tenantIds.length; at += tenantsPerStatement) {
    if (wanted.signal.aborted) break
    const tenantIds = wanted.tenantIds.slice(at, at + tenantsPerStatement)
    removed += await removeSome(node, { ...wanted, tenantIds })
  }
  return removed
}

async function removeSome(clickhouse: ClickhouseNode, wanted: RemoveRows): Promise<number> {
  const { table } = wanted
  const counts = await countOld(clickhouse, wanted)
  const tenantIds = [...counts.keys()]
  if (tenantIds.length === 0) return 0
  const unfinished = await findUnfinished(clickhouse, table)
  if (unfinished !== null) throw new MutationBusyError(table, unfinished.text)
  await clickhouse.command({
    query: `alter table ${table} delete where ${isOld({ ...wanted, tenantIds })}`,
    clickhouse_settings: {
      // It is followed in system.mutations: a request would end before a large one does.
      mutations_sync: '0',
      // Replicas that each look up what is old agree, since nothing old is ever inserted again.
      allow_nondeterministic_mutations: 1,
    },
  })
  await outlastMutation(clickhouse, wanted)
  let removed = 0
  for (const count of counts.values()) removed += count
  return removed
}

/** @returns the number of expired rows by tenant, without tenants that have none */
async function countOld(
  clickhouse: ClickhouseNode,
  wanted: RemoveRows,
): Promise<Map<string, number>> {
  const { table } = wanted
  const entity = entityColumns[table]
  const what = entity === undefined ? 'count()' : `uniqExact(${entity})`
  const result = await clickhouse.query({
    query: `select tenant_id, ${what} from ${table} where ${isOld(wanted)} group by tenant_id`,
    format: 'JSONCompactEachRow',
  })
  return new Map(await result.json<[string, number]>())
}

/** The condition for expired rows, for queries and mutations. */
function isOld({ table, tenantIds, cutoffMs }: RemoveRows): string {
  const tenants = `tenant_id in (${tenantIds.map(toLiteral).join(', ')})`
  const cutoff = `fromUnixTimestamp64Milli(${Math.trunc(cutoffMs)}, 'UTC')`
  if (linkTables.includes(table)) {
    // An install keeps its phone for as long as it has keys.
    return `${tenants} and received_at < ${cutoff} and (tenant_id, device_id) not in (
      select tenant_id, device_id from identity_keys where ${tenants})`
  }
  if (timeColumns[table] !== undefined) return `${tenants} and ${timeColumns[table]} < ${cutoff}`
  // A key may have several rows that no merge has joined yet: only the latest of them counts.
  const columns = entityColumns[table]
  const stale = `${tenants} and last_seen_at < ${cutoff}`
  return `${stale} and (${columns}) in (
    select ${columns} from ${table}
    where ${tenants} and (${columns}) in (select ${columns} from ${table} where ${stale})
    group by ${columns} having max(last_seen_at) < ${cutoff})`
}

/** Quotes a tenant id, whose pattern leaves nothing to escape. @throws TypeError for other texts */
function toLiteral(tenantId: string): string {
  if (!tenantIdPattern.test(tenantId)) throw new TypeError('a tenant id is not a slug')
  return `'${tenantId}'`
}

/** A mutation that has not ended, and whether it fails again and again. */
type Unfinished = { failing: boolean; text: string }

/** @returns an unfinished mutation of the table, or null */
async function findUnfinished(
  clickhouse: ClickhouseNode,
  table: RetainedTable,
): Promise<Unfinished | null> {
  const result = await clickhouse.query({
    query: `select mutation_id, latest_fail_error_code_name from system.mutations
            where database = currentDatabase() and table = {table:String}
              and not is_done and not is_killed
            limit 1`,
    query_params: { table },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[id: string, failure: string]>()
  if (row === undefined) return null
  const [id, failure] = row
  const failing = failure !== ''
  return { failing, text: failing ? `${id} fails with ${failure}` : `${id} is under way` }
}

async function outlastMutation(
  clickhouse: ClickhouseNode,
  { table, signal, nowMs }: RemoveRows,
): Promise<void> {
  const startedMs = nowMs()
  for (let pauseMs = 20; ; pauseMs = Math.min(1_000, pauseMs * 2)) {
    const unfinished = await findUnfinished(clickhouse, table)
    if (unfinished === null) return
    const { failing, text } = unfinished
    if (failing || signal.aborted || nowMs() - startedMs > mutationMaxMs) {
      throw new MutationBusyError(table, text)
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/**
 * Drops the months of telemetry that are too old for every tenant: that costs nothing, however
 * large they are.
 * @param cutoffMs the earliest of all tenants' cutoffs
 * @returns how many rows were in them
 */
export async function dropPartitions(clickhouse: Clickhouse, cutoffMs: number): Promise<number> {
  const removed = await onEveryNode(clickhouse, (node) => dropPartitionsOn(node, cutoffMs))
  return removed.reduce((sum, one) => sum + one, 0)
}

async function dropPartitionsOn(node: ClickhouseNode, cutoffMs: number): Promise<number> {
  const result = await node.query({
    query: `select partition_id, sum(rows) from system.parts
            where database = currentDatabase() and table = 'telemetry' and active
            group by partition_id having sum(rows) > 0 order by partition_id`,
    format: 'JSONCompactEachRow',
  })
  let removed = 0
  for (const [partitionId, rows] of await result.json<[string, number]>()) {
    const endMs = toMonthEndMs(partitionId)
    if (endMs === null || endMs > cutoffMs) continue
    await node.command({ query: `alter table telemetry drop partition id '${partitionId}'` })
    removed += rows
  }
  return removed
}

/** When the month of a partition, as toYYYYMM names it, is over. */
function toMonthEndMs(partitionId: string): number | null {
  const month = /^(\d{4})(\d{2})$/.exec(partitionId)
  return month === null ? null : Date.UTC(Number(month[1]), Number(month[2]), 1)
}

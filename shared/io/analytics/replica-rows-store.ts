/**
 * Writes the copy of alerts, deliveries and labels in ClickHouse. A row replaces those of lower
 * rounds with its key; a removal is a row of the key alone, until all rows of the key are rewritten
 * away.
 */
import { quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  insertRows,
  toInstant,
} from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import type {
  AlertReplicaRow,
  DeliveryReplicaRow,
  LabelReplicaRow,
  ReplicaRemoval,
} from './replication-store.ts'

const tables = {
  alert: 'alerts_replica',
  delivery: 'deliveries_replica',
  label: 'labels_replica',
} as const
const idColumns = { alert: 'alert_id', delivery: 'delivery_id', label: 'label_id' } as const
const kinds = ['alert', 'delivery', 'label'] as const
type Kind = keyof typeof tables

/** Copies alerts; repeating it changes nothing. */
export async function insertAlertRows(
  clickhouse: Clickhouse,
  round: number,
  rows: readonly AlertReplicaRow[],
): Promise<void> {
  await insertRows(
    clickhouse,
    tables.alert,
    rows.map((row) => ({ ...row, round })),
  )
}

/** Copies deliveries; repeating it changes nothing. */
export async function insertDeliveryRows(
  clickhouse: Clickhouse,
  round: number,
  rows: readonly DeliveryReplicaRow[],
): Promise<void> {
  await insertRows(
    clickhouse,
    tables.delivery,
    rows.map((row) => ({ ...row, round })),
  )
}

/** Copies labels; repeating it changes nothing. */
export async function insertLabelRows(
  clickhouse: Clickhouse,
  round: number,
  rows: readonly LabelReplicaRow[],
): Promise<void> {
  await insertRows(
    clickhouse,
    tables.label,
    rows.map((row) => ({ ...row, round })),
  )
}

/** Hides what is gone from Postgres. */
export async function insertRemovals(
  clickhouse: Clickhouse,
  round: number,
  removals: readonly ReplicaRemoval[],
): Promise<void> {
  for (const kind of kinds) {
    const rows = removals
      .filter((one) => one.kind === kind)
      .map((one) => ({
        tenant_id: one.tenantId,
        created_at: one.createdAt,
        [idColumns[kind]]: one.id,
        round,
        removed: 1,
      }))
    await insertRows(clickhouse, tables[kind], rows)
  }
}

/**
 * Removes the deliveries that were created in a month and copied before this round.
 * @param month its first day, as 2026-01-01
 */
export async function removeMonth(
  clickhouse: Clickhouse,
  round: number,
  month: string,
): Promise<void> {
  const query = `alter table ${tables.delivery} delete
    where toStartOfMonth(created_at, 'UTC') = toDate('${month}') and round < ${round}`
  await onEveryNode(clickhouse, (node) =>
    node.command({ query, clickhouse_settings: { mutations_sync: '2' } }),
  )
}

/** Hides what a copy of everything did not find. */
export async function removeOlderRounds(clickhouse: Clickhouse, round: number): Promise<void> {
  for (const table of [...Object.values(tables), 'phone_corrections_replica']) {
    const query = `alter table ${table} delete where round < ${round}`
    await onEveryNode(clickhouse, (node) =>
      node.command({ query, clickhouse_settings: { mutations_sync: '2' } }),
    )
  }
}

/** Says up to when the copy is right. */
export async function markRound(
  clickhouse: Clickhouse,
  { round, copiedAtMs }: { round: number; copiedAtMs: number },
): Promise<void> {
  await insertRows(clickhouse, 'replication_rounds', [
    { singleton: 1, round, replicated_at: toInstant(copiedAtMs) },
  ])
}

/** The last round that was marked and up to when it copied; of an empty copy 0 and 0. */
export async function readMark(
  clickhouse: Clickhouse,
): Promise<{ round: number; copiedAtMs: number }> {
  const result = await clickhouse.query({
    query: `select max(round), toUnixTimestamp64Milli(max(replicated_at)) from replication_rounds`,
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[number, number]>()
  return { round: row![0], copiedAtMs: row![1] }
}

/** Keys in the text of one mutation: 5,000 of about 90 bytes are 450 KB. */
const keysPerMutation = 5_000
const queryBytesMax = 4 * 1024 * 1024

/**
 * Rewrites what was removed away, some thousands at a time.
 * @returns how many there were
 */
export async function purgeRemovals(clickhouse: Clickhouse): Promise<number> {
  const purged = await onEveryNode(clickhouse, purgeOn)
  return purged.reduce((sum, one) => sum + one, 0)
}

async function purgeOn(node: ClickhouseNode): Promise<number> {
  let purged = 0
  for (const kind of kinds) {
    for (let found = keysPerMutation; found === keysPerMutation; purged += found) {
      found = await purgeSome(node, kind)
    }
  }
  return purged
}

async function purgeSome(node: ClickhouseNode, kind: Kind): Promise<number> {
  const table = tables[kind]
  const key = `concat(tenant_id, ' ', toString(toUnixTimestamp64Milli(created_at)), ' ',
    ${idColumns[kind]})`
  const result = await node.query({
    query: `select distinct ${key} from ${table} where removed = 1 limit ${keysPerMutation}`,
    format: 'JSONCompactEachRow',
  })
  const keys = (await result.json<[string]>()).map(([one]) => one)
  if (keys.length === 0) return 0
  // All rows of a key in one mutation: without its last, an older one would be back.
  await node.command({
    // In the text: a parameter of a mutation travels in the address, which takes 128 KiB of it.
    query: `alter table ${table} delete where ${key} in ${quoteTexts(keys)}`,
    clickhouse_settings: { mutations_sync: '2', max_query_size: String(queryBytesMax) },
  })
  return keys.length
}

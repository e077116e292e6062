/** Parts of tables that a mutation replaced: they are on the disk until the server removes them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'

const partPollMs = 500

/**
 * Has the replaced parts of tables removed.
 * @returns how many are still there after the limit
 */
export async function dropOldParts(
  clickhouse: ClickhouseNode,
  tables: readonly string[],
  limitMs: number,
): Promise<number> {
  // Parts of later merges do not matter.
  const old = await listOldParts(clickhouse, tables)
  const deadlineMs = performance.now() + limitMs
  for (let left = old.length; ; ) {
    if (left === 0 || performance.now() > deadlineMs) return left
    for (const table of new Set(old.map(([name]) => name))) {
      // Wakes the thread that removes them.
      await clickhouse.command({ query: `system start cleanup ${table}` }).catch(() => undefined)
    }
    await sleep(partPollMs)
    const names = new Set((await listOldParts(clickhouse, tables)).map((part) => part.join(' ')))
    left = old.filter((part) => names.has(part.join(' '))).length
  }
}

async function listOldParts(
  clickhouse: ClickhouseNode,
  tables: readonly string[],
): Promise<[table: string, part: string][]> {
  const result = await clickhouse.query({
    query: `select table, name from system.parts
      where database = currentDatabase() and table in {tables:Array(String)} and not active`,
    query_params: { tables },
    format: 'JSONCompactEachRow',
  })
  return result.json<[string, string]>()
}

/** Merges of the table of activity, which remove rows that are older than velocity rules look. */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'

/**
 * Keeps rows of any age while `work` runs, so that events of the past can be decided with what was
 * known then.
 */
export async function withOldActivityKept<T>(
  clickhouse: Clickhouse,
  work: () => Promise<T>,
): Promise<T> {
  const tell = (query: string) => onEveryNode(clickhouse, (node) => node.command({ query }))
  await tell('system stop ttl merges activity')
  try {
    return await work()
  } finally {
    await tell('system start ttl merges activity')
  }
}

/** Merges of the table of activity, which remove rows that are older than velocity rules look. */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/**
 * Keeps rows of any age while `work` runs, so that events of the past can be decided with what was
 * known then.
 */
export async function withOldActivityKept<T>(
  clickhouse: Clickhouse,
  work: () => Promise<T>,
): Promise<T> {
  await clickhouse.command({ query: 'system stop ttl merges activity' })
  try {
    return await work()
  } finally {
    await clickhouse.command({ query: 'system start ttl merges activity' })
  }
}

/** Merges of the table of activity, which remove rows that are older than velocity rules look. */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryServer } from '#shared/io/clickhouse/shards.ts'

/**
 * Keeps rows of any age while `work` runs, so that events of the past can be decided with what was
 * known then.
 */
export async function withOldActivityKept<T>(
  clickhouse: Clickhouse,
  work: () => Promise<T>,
): Promise<T> {
  const command = (query: string) =>
    onEveryServer(clickhouse, (server) => server.command({ query }))
  try {
    // When one server fails, others may have stopped.
    await command('system stop ttl merges activity')
    return await work()
  } finally {
    await command('system start ttl merges activity')
  }
}

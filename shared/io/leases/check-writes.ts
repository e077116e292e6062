/** A ClickHouse client that asks before each write whether it may. */
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'

/** @param check throws when nothing may be written any more */
export function checkWrites(clickhouse: Clickhouse, check: () => Promise<void>): Clickhouse {
  const toChecked = (node: ClickhouseNode): ClickhouseNode => ({
    query: (params) => node.query(params),
    insert: async (params) => {
      await check()
      return node.insert(params)
    },
    command: async (params) => {
      await check()
      return node.command(params)
    },
    exec: async (params) => {
      await check()
      return node.exec(params)
    },
    close: () => node.close(),
  })
  return {
    ...toChecked(clickhouse),
    shards: clickhouse.shards.map((shard) => ({
      ...toChecked(shard),
      replicas: shard.replicas.map(toChecked),
    })),
  }
}

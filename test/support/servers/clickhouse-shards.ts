// Starts several embedded engines as the shards of one ClickHouse, each a process of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { startClickhouse, type TestClickhouse } from './clickhouse-server.ts'

export type TestShards = {
  /** Usable as CLICKHOUSE_URL: the first shard. */
  url: string
  /** Of every shard, in their order; each is a server without replicas. */
  shardUrls: string[][]
  kill: (shard: number) => Promise<void>
  /** Starts a killed shard again, on its ports and its data. */
  restart: (shard: number) => Promise<void>
  stop: () => Promise<void>
}

/** @param users of every server, beside `default` */
export async function startShards(
  count: number,
  users: readonly EngineUser[] = [],
): Promise<TestShards> {
  const folder = mkdtempSync(join(tmpdir(), 'clickhouse-shards-'))
  const ports: number[] = []
  for (let at = 0; at < count; at++) ports.push(await choosePort({ taken: new Set(ports) }))
  const start = (own: number, port = 0) =>
    startClickhouse({ path: join(folder, String(own)), port, users, shards: { ports, own } })
  const servers: TestClickhouse[] = await Promise.all(ports.map((_, own) => start(own)))
  const urls = servers.map((server) => server.url)
  return {
    url: urls[0]!,
    shardUrls: urls.map((url) => [url]),
    kill: async (shard) => {
      await servers[shard]!.kill('SIGKILL')
    },
    restart: async (shard) => {
      servers[shard] = await start(shard, Number(new URL(urls[shard]!).port))
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

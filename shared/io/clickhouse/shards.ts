/**
 * Queries the shards that have the rows, instead of all: what is known to lie on one shard costs
 * the others nothing, and does not need them. On one node each of these is one call.
 */
import { shardOf } from '#shared/core/base/shards.ts'
import { toHash, toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { type Clickhouse, type ClickhouseNode, nodesOf, serversOf } from './clickhouse.ts'

/** The node with the events and the history of a device. */
export function nodeOfDevice(clickhouse: Clickhouse, deviceId: string): ClickhouseNode {
  const { shards } = clickhouse
  if (shards.length === 0) return clickhouse
  return shards[shardOf(toKeyHash('device', deviceId), shards.length)]!
}

/** The node with a tenant's rows of the tables that lie by their tenant. */
export function nodeOfTenant(clickhouse: Clickhouse, tenantId: string): ClickhouseNode {
  const { shards } = clickhouse
  if (shards.length === 0) return clickhouse
  return shards[shardOf(toHash(tenantId), shards.length)]!
}

/**
 * Splits values by the node of each, and works on every node that has some, at the same time.
 * @param toKey the 64 bits, in decimal, that choose the shard of a value
 * @returns the results, once all nodes are done
 * @throws the error of one of them, once all are done, so that none works on in the background
 */
export async function onNodesOf<Value, Result>(
  clickhouse: Clickhouse,
  values: Iterable<Value>,
  toKey: (value: Value) => string,
  work: (node: ClickhouseNode, values: Value[], shard: number) => Promise<Result>,
): Promise<Result[]> {
  const { shards } = clickhouse
  if (shards.length === 0) return [await work(clickhouse, [...values], 0)]
  const byShard = new Map<number, Value[]>()
  for (const value of values) {
    const shard = shardOf(toKey(value), shards.length)
    const known = byShard.get(shard)
    if (known === undefined) byShard.set(shard, [value])
    else known.push(value)
  }
  return allDone([...byShard].map(([shard, some]) => work(shards[shard]!, some, shard)))
}

/**
 * Works on every node at the same time, such as a mutation of its own rows, which replicas copy
 * from each other.
 */
export function onEveryNode<Result>(
  clickhouse: Clickhouse,
  work: (node: ClickhouseNode) => Promise<Result>,
): Promise<Result[]> {
  return allDone(nodesOf(clickhouse).map((node) => work(node)))
}

/** Works on every server at the same time: replicas have files and threads of their own. */
export function onEveryServer<Result>(
  clickhouse: Clickhouse,
  work: (server: ClickhouseNode) => Promise<Result>,
): Promise<Result[]> {
  return allDone(serversOf(clickhouse).map(({ server }) => work(server)))
}

async function allDone<Result>(works: Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(works)
  return Promise.all(works)
}

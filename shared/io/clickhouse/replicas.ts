/**
 * Sends requests to one replica of a shard, and to the next one from when it does not answer. Every
 * replica has every acknowledged row (see `clusterSettings`), so any of them answers right.
 */
import { Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'

/** What a client does for one server. */
export type ClickhouseRequests = Pick<
  ClickHouseClient,
  'query' | 'insert' | 'command' | 'exec' | 'close'
>

/**
 * One node out of several replicas. A request that a replica does not answer is repeated with the
 * next, except one that took its time already or whose rows were streamed: they fail. All requests
 * can be repeated: the rows and mutations of this service are the same when they come twice.
 */
export function joinReplicas(replicas: readonly ClickhouseRequests[]): ClickhouseRequests {
  let current = 0
  const send = async <T>(
    params: object,
    work: (node: ClickhouseRequests) => Promise<T>,
  ): Promise<T> => {
    for (let left = replicas.length - 1; ; left--) {
      const tried = current
      try {
        return await work(replicas[tried]!)
      } catch (error) {
        if (error instanceof ClickHouseError) throw error
        // Requests that fail at the same time turn to the next replica once.
        if (current === tried) current = (tried + 1) % replicas.length
        if (left === 0 || !isConnectionFault(error) || isStreamed(params)) throw error
      }
    }
  }
  return {
    query: (params) => send(params, (node) => node.query(params)),
    command: (params) => send(params, (node) => node.command(params)),
    exec: (params) => send(params, (node) => node.exec(params)),
    insert: (params) => send(params, (node) => node.insert(params)),
    close: async () => {
      await Promise.all(replicas.map((replica) => replica.close()))
    },
  }
}

/** Faults of connections have a code; the client's time limits have none. */
const isConnectionFault = (error: unknown): boolean =>
  typeof (error as { code?: unknown }).code === 'string'

const isStreamed = (params: { values?: unknown }): boolean => params.values instanceof Readable

/** The bytes on disk that each store of a local stack uses. */

import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { StackFacts } from '../../support/process/stack.ts'
import { readPairs } from '../read-pairs.ts'

export type Bytes = {
  /** The tables of ClickHouse, compressed. */
  tables: Record<string, number>
  /** The telemetry stream. */
  jetstream: number
  /** The database, indexes included. */
  postgres: number
}

/** Reads them. Parts that a merge has replaced are not counted, though they stay for minutes. */
export async function readBytes(stack: StackFacts, clickhouse: Clickhouse): Promise<Bytes> {
  const log = createLog('bench', 'silent')
  const nats = await connectNats(stack.nats, 'bench', log)
  const postgres = createPostgres(stack.postgres, { role: 'bench', log })
  try {
    const tables = await readPairs(
      clickhouse,
      `select table, sum(bytes_on_disk) from system.parts
       where active and database = currentDatabase() group by table`,
    )
    const { state } = await nats.manager.streams.info(telemetryStream)
    const { rows } = await postgres.query<{ bytes: string }>(
      'select pg_database_size(current_database()) as bytes',
    )
    return { tables, jetstream: state.bytes, postgres: Number(rows[0]!.bytes) }
  } finally {
    await Promise.all([nats.close(), postgres.close()])
  }
}

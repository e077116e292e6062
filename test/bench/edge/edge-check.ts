/** Lets a scorer store the accepted events, and counts the rows. */
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { deriveKey } from '#shared/io/keys/proofs.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { type EdgeRig, quietLog } from '../../support/telemetry/edge-rig.ts'
import { startMeasured } from '../measured-process.ts'

const stallLimitMs = 60_000

/** @returns the number of the stream's events in ClickHouse */
export async function countStored({ server, masterKey }: EdgeRig): Promise<number> {
  const [postgres, clickhouse] = await Promise.all([startPostgres(), startClickhouse()])
  const postgresUrl = await postgres.createDatabase()
  await migratePostgres(postgresUrl)
  await migrateClickhouse(clickhouse.url, postgresUrl)
  const scorer = await startMeasured('scorer', {
    NATS_URL: server.urlOf('scorer'),
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: clickhouse.url,
    TELEMETRY_KEY: deriveKey(masterKey, 'telemetry batch'),
  })
  const nats = await connectNats(server.url, 'bench', quietLog)
  const client = createClickhouse(clickhouse.url, { name: 'bench' })
  try {
    let left = -1
    let changedMs = performance.now()
    while (left !== 0) {
      const info = await nats.manager.consumers.info('TELEMETRY', 'scorer')
      const now = info.num_pending + info.num_ack_pending
      if (now !== left) changedMs = performance.now()
      left = now
      if (performance.now() - changedMs > stallLimitMs) throw new Error(`${left} are not stored`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const result = await client.query({
      query: 'select uniqExact(event_id) as events from telemetry',
      format: 'JSONEachRow',
    })
    const [row] = await result.json<{ events: string | number }>()
    return Number(row!.events)
  } finally {
    await client.close()
    await scorer.stop()
    await nats.close()
    await Promise.all([clickhouse.stop(), postgres.stop()])
  }
}

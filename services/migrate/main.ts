/**
 * The migration job: brings Postgres, ClickHouse and the JetStream streams to what this release
 * needs, then ends. Safe to run at every start and by several machines at once.
 */
import { readConfig, variables } from '#shared/io/config.ts'
import { run } from '#shared/io/lifecycle.ts'
import { createLog } from '#shared/io/log.ts'
import { MigrationError, migrateClickhouse, migratePostgres } from '#shared/io/migrate.ts'
import { connectNats } from '#shared/io/nats.ts'
import { ensureStreamsOnceFormed } from '#shared/io/streams.ts'

/** Servers that start beside us get this long to answer. */
const waitMaxMs = 60_000

async function main(): Promise<void> {
  const config = readConfig(
    {
      NATS_URL: variables.NATS_URL,
      NATS_REPLICAS: variables.NATS_REPLICAS,
      TELEMETRY_STREAM_MAX_BYTES: variables.TELEMETRY_STREAM_MAX_BYTES,
      CLICKHOUSE_URL: variables.CLICKHOUSE_URL,
      POSTGRES_URL: variables.POSTGRES_URL,
      LOG_LEVEL: variables.LOG_LEVEL,
    },
    process.env,
  )
  const log = createLog('migrate', config.LOG_LEVEL)
  const signal = AbortSignal.timeout(waitMaxMs)
  const postgres = await migratePostgres(config.POSTGRES_URL, { log, signal })
  const clickhouse = await migrateClickhouse(config.CLICKHOUSE_URL, config.POSTGRES_URL, {
    log,
    signal,
  })
  const overdue = setTimeout(() => {
    log.fatal('NATS does not answer')
    process.exit(1)
  }, waitMaxMs)
  const nats = await connectNats(config.NATS_URL, 'migrate', log, config.NATS_REPLICAS)
  clearTimeout(overdue)
  const telemetryBytesMax = config.TELEMETRY_STREAM_MAX_BYTES
  await ensureStreamsOnceFormed({ ...nats, telemetryBytesMax }, { log, limitMs: waitMaxMs })
  await nats.close()
  log.info({ postgres: postgres.length, clickhouse: clickhouse.length }, 'migrations are complete')
}

run(async () => {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
})

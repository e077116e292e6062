/**
 * The migration job: migrates Postgres, ClickHouse and the JetStream streams to this release, then
 * ends. It is safe to run at every start and on several machines at once. With `--new-streams` a
 * cluster of NATS may have no streams, although there was telemetry before.
 */
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { hasEvents } from '#shared/io/backup/clickhouse-backup.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { migrateClickhouse, migratePostgres } from '#shared/io/migrations/migrate.ts'
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings, toShardUrls } from '#shared/io/process/config.ts'
import { run } from '#shared/io/process/lifecycle.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { findStreamFault, hasAnyTenant } from '#shared/io/tenants/tenant-streams.ts'
import { readMigrateConfig } from './config.ts'
import { migrateStreams } from './migrate-streams.ts'

/** How long to wait for servers that are starting. */
const waitMaxMs = 60_000

async function main(): Promise<void> {
  const config = readMigrateConfig(process.env)
  const shardUrls = toShardUrls(config)
  const log = createLog('migrate', config.LOG_LEVEL)
  const signal = AbortSignal.timeout(waitMaxMs)
  const rolePasswords = config.POSTGRES_ROLE_PASSWORDS ?? {}
  const postgres = await migratePostgres(config.POSTGRES_URL, {
    log,
    signal,
    rolePasswords,
    auditRetentionDays: config.AUDIT_RETENTION_DAYS,
  })
  const hasTenants = await checkTenants(config.POSTGRES_URL, config.TELEMETRY_STREAMS, log)
  const clickhouse = await migrateClickhouse(config.CLICKHOUSE_URL, config.POSTGRES_URL, {
    log,
    signal,
    shardUrls,
  })
  const mayBeNew = process.argv.includes('--new-streams')
  const created = await migrateStreams(toNatsSettings(config), {
    log,
    limitMs: waitMaxMs,
    hadStreams: await hasTelemetry(config.CLICKHOUSE_URL),
    mayBeNew,
  })
  if (hasTenants && !mayBeNew && created.includes(telemetryStream)) {
    // Events that wait in a store that is not seen would never be scored.
    log.warn({ created }, newStreamsWarning)
  }
  log.info({ postgres: postgres.length, clickhouse: clickhouse.length }, 'migrations are complete')
}

const newStreamsWarning =
  'NATS had no streams for this installation, so they are new and empty. If they are in another ' +
  'account or folder, as before nats-users.conf had accounts, stop nats-server and move them: ' +
  'see "The accounts of NATS" in deploy/README.md'

async function hasTelemetry(url: string): Promise<boolean> {
  const clickhouse = createClickhouse(url, { name: 'migrate', database: 'default' })
  return await hasEvents(clickhouse, databaseOf(url)).finally(() => clickhouse.close())
}

/**
 * @returns whether the installation has tenants, so that it had streams before
 * @throws MigrationError when a tenant lies on a telemetry stream beyond the setting
 */
async function checkTenants(url: string, streams: number, log: Log): Promise<boolean> {
  const postgres = createPostgres(url, { role: 'migrate', log, connectionsMax: 1 })
  try {
    const fault = await findStreamFault(postgres, streams)
    if (fault !== null) throw new MigrationError(fault)
    return await hasAnyTenant(postgres)
  } finally {
    await postgres.close()
  }
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

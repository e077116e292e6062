/**
 * `di backup-servers`: servers of your own. `begin`, then pg_dump into the folder, then `finish`:
 * in this order nothing is missing that was accepted before. See deploy/BACKUP.md.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { InvalidArgumentError, Option } from 'commander'
import {
  type BegunBackup,
  findUndumpedTables,
  readBegun,
  readServerBackup,
  removeInterruptedBackups,
  removeOldBackups,
  type ServerBackup,
  serverBackupParts,
  writeBegun,
  writeServerBackup,
} from '#shared/io/backup/server-backups.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import packageFile from '../../../../package.json' with { type: 'json' }
import { command, group } from '../commands.ts'
import { type CliContext, CliError } from '../context.ts'

type FinishOptions = { clickhouseTo: string; keep?: number }

const toFolder = ({ env }: CliContext, folder: string) => resolve(env.INIT_CWD ?? '', folder)

export const backupServers = group(
  'backup-servers',
  'back up and restore servers of your own, with their owners’ URLs',
  [
    command(
      'begin <folder>',
      'make the folder, before pg_dump writes postgres.dump into it',
      [],
      async (context, [name]) => {
        const folder = toFolder(context, name!)
        const begun = await begin(context, folder)
        const dump = join(folder, serverBackupParts.postgres)
        const list = join(folder, serverBackupParts.postgresList)
        context.out({ folder, ...begun }, () =>
          [
            `Next: pg_dump -Fc --no-owner --no-privileges --file=${dump}`,
            `and: pg_restore --file=/dev/null ${dump} && pg_restore --list ${dump} > ${list}`,
          ].join('\n'),
        )
      },
    ),
    command<FinishOptions>(
      'finish <folder>',
      'back up ClickHouse, and copy the messages that were not decided at the beginning',
      [
        new Option(
          '--clickhouse-to <place>',
          "where ClickHouse writes: S3(backups, '{name}')",
        ).makeOptionMandatory(),
        new Option(
          '--keep <count>',
          'remove others beside it: older ones, and those interrupted a day ago',
        ).argParser(toCount),
      ],
      async (context, [name], options) => {
        const folder = toFolder(context, name!)
        context.out({ folder, ...(await finish(context, folder, options)) }, toFinishedText)
      },
    ),
    command(
      'restore <folder>',
      'restore ClickHouse and the messages, after pg_restore and a migration',
      [],
      async (context, [name]) => {
        const folder = toFolder(context, name!)
        context.out({ folder, ...(await restore(context, folder)) }, toRestoredText)
      },
    ),
  ],
)

function toCount(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('must be a whole number from 1')
}

async function begin(context: CliContext, folder: string): Promise<BegunBackup> {
  if (existsSync(folder) && (await readdir(folder)).length > 0) {
    throw new CliError(`${folder} is not empty.`)
  }
  requirePlainName(folder)
  // Loaded here and below, because other commands need no server.
  const { readUndecided } = await import('#shared/io/backup/undecided-messages.ts')
  const begun = await withNats(context, (nats) =>
    withPostgres(context, (postgres) => readUndecided(nats, postgres)),
  )
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeBegun(folder, begun)
  return begun
}

/** @returns the folder's name, which becomes a part of ClickHouse's statement */
function requirePlainName(folder: string): string {
  const name = basename(folder)
  if (/^[\w.-]+$/.test(name)) return name
  throw new CliError(`The folder's name may have letters, digits, dots, - and _ only: ${name}`)
}

async function finish(
  context: CliContext,
  folder: string,
  { clickhouseTo, keep }: FinishOptions,
): Promise<ServerBackup> {
  const begun = await readBegun(folder)
  const listFile = join(folder, serverBackupParts.postgresList)
  if (begun === null || !existsSync(listFile)) {
    const { postgresList } = serverBackupParts
    throw new CliError(`${folder} needs \`begin\`, and then pg_dump with its ${postgresList}.`)
  }
  if ((await readServerBackup(folder)) !== null) throw new CliError(`${folder} is complete.`)
  const list = await readFile(listFile, 'utf8')
  const undumped = await withPostgres(context, (postgres) => findUndumpedTables(postgres, list))
  if (undumped.length > 0) {
    throw new CliError(`The dump of Postgres lacks ${undumped.join(', ')}: run pg_dump again.`)
  }
  if (!clickhouseTo.includes('{name}')) {
    throw new CliError("--clickhouse-to needs {name}, as in S3(backups, '{name}').")
  }
  // First, for the room that they take.
  if (keep !== undefined) await removeInterruptedBackups(folder)
  const place = clickhouseTo.replaceAll('{name}', requirePlainName(folder))
  const { backupClickhouse } = await import('#shared/io/backup/clickhouse-backup.ts')
  await withClickhouse(context, (clickhouse, database) =>
    backupClickhouse(clickhouse, database, place),
  )
  const { backupStreams } = await import('#shared/io/backup/undecided-messages.ts')
  const madeAt = new Date().toISOString()
  const streams = { sequences: begun.sequences, folder: join(folder, serverBackupParts.streams) }
  const messages = await withNats(context, (nats) => backupStreams(nats, streams))
  const backup = {
    version: packageFile.version,
    made_at: madeAt,
    clickhouse: place,
    ...begun.offsets,
    messages,
  }
  await writeServerBackup(folder, backup)
  if (keep !== undefined) await removeOldBackups(folder, keep)
  return backup
}

async function restore(context: CliContext, folder: string): Promise<ServerBackup> {
  const manifest = await readServerBackup(folder)
  if (manifest === null) throw new CliError(`${folder} has no complete backup of servers.`)
  const { hasEvents, restoreClickhouse } = await import('#shared/io/backup/clickhouse-backup.ts')
  const { publishMessages } = await import('#shared/io/backup/stream-backup.ts')
  const streams = join(folder, serverBackupParts.streams)
  await withNats(context, async (nats) => {
    if (nats.telemetryStreams.length === 0) {
      throw new CliError('NATS has no telemetry stream: run `npm run migrate` first.')
    }
    await withClickhouse(context, async (clickhouse, database) => {
      // A restore replaces the databases.
      if (await hasEvents(clickhouse, database)) {
        throw new CliError('ClickHouse has events: drop its databases and run `npm run migrate`.')
      }
      await restoreClickhouse(clickhouse, { database, place: manifest.clickhouse, manifest })
    })
    for (const name of await readdir(streams)) await publishMessages(nats, join(streams, name))
  })
  return manifest
}

async function withNats<T>(context: CliContext, work: (nats: Nats) => Promise<T>): Promise<T> {
  const { connectAsOperator } = await import('./operator-nats.ts')
  const nats = await connectAsOperator(context)
  return work(nats).finally(nats.close)
}

async function withPostgres<T>(
  { env }: CliContext,
  work: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const { readConfig, variables } = await import('#shared/io/process/config.ts')
  const { createPostgres } = await import('#shared/io/postgres/postgres.ts')
  const { createLog } = await import('#shared/io/process/log.ts')
  const { POSTGRES_URL: url } = readConfig({ POSTGRES_URL: variables.POSTGRES_URL }, env)
  const postgres = createPostgres(url, { role: 'di', log: createLog('di', 'silent') })
  return work(postgres).finally(postgres.close)
}

async function withClickhouse<T>(
  { env }: CliContext,
  work: (clickhouse: Clickhouse, database: string) => Promise<T>,
): Promise<T> {
  const { clickhouseVariables, readConfig } = await import('#shared/io/process/config.ts')
  const { backupMaxMs } = await import('#shared/io/backup/clickhouse-backup.ts')
  const { createClickhouse, databaseOf } = await import('#shared/io/clickhouse/clickhouse.ts')
  const { CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster } = readConfig(clickhouseVariables, env)
  if (cluster !== undefined) throw new CliError('Shards have their own BACKUP: see BACKUP.md.')
  const clickhouse = createClickhouse(url, {
    name: 'di',
    database: 'default',
    requestTimeoutMs: backupMaxMs,
  })
  try {
    return await work(clickhouse, databaseOf(url))
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(`ClickHouse: ${(error as Error).message}`, { cause: error })
  } finally {
    await clickhouse.close()
  }
}

function toFinishedText({ folder, clickhouse, made_at: at }: ServerBackup & { folder: string }) {
  return [
    `${folder} and ClickHouse's ${clickhouse} have everything that was accepted before ${at}.`,
    'The master key is not in it: keep it apart.',
  ].join('\n')
}

function toRestoredText({ made_at: at }: ServerBackup) {
  return `The servers have the backup of ${at}. Run \`npm run migrate\`, then start the processes.`
}

/**
 * `di backup` and `di restore`: all of the local stack in one folder. For servers of your own there
 * is `di backup-servers`.
 */

import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { telemetryStreams } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import {
  type BackupManifest,
  backupLease,
  backupParts,
  readManifest,
  toBackupPlace,
  toClickhouseBackup,
  toRestoreFolder,
  toStreamsToRestore,
} from '#shared/io/backup/backup-folder.ts'
import type { Lease } from '#shared/io/leases/leases.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import packageFile from '../../../../package.json' with { type: 'json' }
import { command } from '../commands.ts'
import { type CliContext, CliError, type Stack } from '../context.ts'

export const addBackup = command(
  'backup <folder>',
  'copy everything of the running local stack to a new folder',
  [],
  async (context, [folder]) => {
    const target = toFolder(context, folder!)
    const manifest = await backup(context, target)
    context.out({ folder: target, ...manifest }, toBackupText)
  },
)

export const addRestore = command(
  'restore <folder>',
  'put a backup into the data folder, which must be empty; `npm start` completes it',
  [],
  async (context, [folder]) => {
    const manifest = await restore(toFolder(context, folder!), context.dataDir)
    context.out({ data_dir: context.dataDir, ...manifest }, toRestoreText)
  },
)

/** Relative to the folder in which npm was called. */
const toFolder = ({ env }: CliContext, folder: string) => resolve(env.INIT_CWD ?? '', folder)

async function isFree(folder: string): Promise<boolean> {
  return !existsSync(folder) || (await readdir(folder)).length === 0
}

/** Makes one backup at a time: all write ClickHouse's part to the same place first. */
async function backup(context: CliContext, target: string): Promise<BackupManifest> {
  const stack = findOwnStack(context)
  if (!(await isFree(target))) throw new CliError(`${target} is not empty.`)
  // Loaded here, because other commands need no server.
  const { withLease } = await import('#shared/io/leases/leases.ts')
  const { createPostgres } = await import('#shared/io/postgres/postgres.ts')
  const { createLog } = await import('#shared/io/process/log.ts')
  const postgres = createPostgres(stack.postgres, {
    role: 'di',
    log: createLog('di', 'silent'),
    statementTimeoutMs: 0,
    // One for the lease, one for the work.
    connectionsMax: 2,
  })
  try {
    const leases = { renewals: postgres, work: postgres }
    const manifest = await withLease(leases, backupLease, (lease) =>
      copyStack(context, { stack, postgres, lease, target }),
    )
    if (manifest !== null) return manifest
    throw new CliError('Another `di backup` of this stack is running: try again when it has ended.')
  } finally {
    await postgres.close()
  }
}

function findOwnStack({ findStack }: CliContext): Stack {
  const stack = findStack()
  if (stack === null) throw new CliError('There is no running local stack: start it first.')
  const own = ['nats', 'postgres', 'clickhouse'] as const
  if (own.some((name) => stack.pids[name] === undefined)) {
    throw new CliError('The stack uses servers of your own: see deploy/BACKUP.md.')
  }
  if (stack.clickhouse_shards !== undefined) {
    throw new CliError('A stack with shards cannot be backed up: see deploy/BACKUP.md.')
  }
  return stack
}

type Copy = { stack: Stack; postgres: Postgres; lease: Lease; target: string }

/**
 * In this order nothing is missing that was accepted before: what is stored and decided first, then
 * what the telemetry stream got since. Events that are in both are recognised as repeats.
 */
async function copyStack(context: CliContext, copy: Copy): Promise<BackupManifest> {
  const { dataDir } = context
  const { postgres, target } = copy
  await mkdir(target, { recursive: true, mode: 0o700 })
  const { connectAsOperator } = await import('./operator-nats.ts')
  const { backupPostgres } = await import('#shared/io/backup/postgres-backup.ts')
  const { backupStreams, readUndecided } = await import('#shared/io/backup/undecided-messages.ts')
  const nats = await connectAsOperator(context)
  try {
    const { sequences, offsets } = await readUndecided(nats, postgres)
    await backupPostgres(postgres, join(dataDir, 'postgres'), join(target, backupParts.postgres))
    await copyClickhouse(dataDir, copy)
    const madeAt = new Date().toISOString()
    const folder = join(target, backupParts.streams)
    const messages = await backupStreams(nats, { sequences, folder })
    await cp(join(dataDir, backupParts.secrets), join(target, backupParts.secrets))
    const manifest = {
      version: packageFile.version,
      made_at: madeAt,
      ...offsets,
      messages,
    }
    await writeFile(join(target, backupParts.manifest), `${JSON.stringify(manifest, null, 2)}\n`)
    return manifest
  } finally {
    await nats.close()
  }
}

async function copyClickhouse(dataDir: string, { stack, lease, target }: Copy): Promise<void> {
  const { createClickhouse, databaseOf } = await import('#shared/io/clickhouse/clickhouse.ts')
  const { backupClickhouse, backupMaxMs } = await import('#shared/io/backup/clickhouse-backup.ts')
  const clickhouse = createClickhouse(stack.clickhouse, {
    name: 'di',
    requestTimeoutMs: backupMaxMs,
  })
  // The engine may write only in its own folder.
  const written = toClickhouseBackup(dataDir, 'scratch')
  try {
    await lease.check()
    await rm(written, { recursive: true, force: true })
    await backupClickhouse(clickhouse, databaseOf(stack.clickhouse), toBackupPlace('scratch'))
    await cp(written, join(target, backupParts.clickhouse), { recursive: true })
    // The place is another backup's once the lease is lost.
    await lease.check()
  } finally {
    if (!lease.signal.aborted) await rm(written, { recursive: true, force: true })
    await clickhouse.close()
  }
}

async function restore(folder: string, dataDir: string): Promise<BackupManifest> {
  const manifest = await readManifest(folder)
  if (manifest === null) throw new CliError(`${folder} has no complete backup.`)
  if (!(await isFree(dataDir))) {
    throw new CliError(`${dataDir} is not empty: move it away, or set DATA_DIR.`)
  }
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  const copy = async (part: string, target: string) => {
    await cp(join(folder, part), target, { recursive: true })
  }
  await copy(backupParts.postgres, join(dataDir, 'postgres'))
  await copy(backupParts.clickhouse, toClickhouseBackup(dataDir, 'restore'))
  await copy(backupParts.streams, toStreamsToRestore(dataDir))
  await copy(backupParts.manifest, join(toRestoreFolder(dataDir), backupParts.manifest))
  // Last: without them the stack does not start.
  await copy(backupParts.secrets, join(dataDir, backupParts.secrets))
  return manifest
}

function toBackupText({ folder, made_at: at, messages }: BackupManifest & { folder: string }) {
  const waiting = telemetryStreams.reduce((sum, { stream }) => sum + (messages[stream] ?? 0), 0)
  return [
    `${folder} has everything that was accepted before ${at}, and ${waiting} messages that were`,
    'on their way. It has the master key as well: keep it as private as the data.',
    '`di restore` puts it into an empty data folder.',
  ].join('\n')
}

function toRestoreText({ data_dir: dataDir, made_at: at }: BackupManifest & { data_dir: string }) {
  return [
    `${dataDir} has the backup of ${at}. \`npm start\` completes the restore.`,
    'Then `di recovery list` shows what is to be confirmed, if NATS is a server of your own and newer.',
  ].join('\n')
}

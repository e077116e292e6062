// Completes a restore that `di restore` has prepared in the data folder. Each part is removed once
// it is restored, so a start that was interrupted goes on with the rest.

import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  readManifest,
  toBackupPlace,
  toClickhouseBackup,
  toRestoreFolder,
  toStreamsToRestore,
} from '#shared/io/backup/backup-folder.ts'
import { backupMaxMs, restoreClickhouse } from '#shared/io/backup/clickhouse-backup.ts'
import { publishMessages } from '#shared/io/backup/stream-backup.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createLog } from '#shared/io/process/log.ts'
import { StartError } from './settings.ts'

/**
 * Restores ClickHouse, before the migrations.
 * @returns whether there was something to restore
 */
export async function completeClickhouse(dataDir: string, url: string): Promise<boolean> {
  const backup = toClickhouseBackup(dataDir, 'restore')
  const scratch = toClickhouseBackup(dataDir, 'scratch')
  rmSync(scratch, { recursive: true, force: true })
  if (!existsSync(backup)) return false
  const manifest = await readManifest(toRestoreFolder(dataDir))
  if (manifest === null) throw new StartError(`${dataDir} has no complete restore: repeat it`)
  const clickhouse = createClickhouse(url, {
    name: 'restore',
    database: 'default',
    requestTimeoutMs: backupMaxMs,
  })
  try {
    await restoreClickhouse(clickhouse, {
      database: databaseOf(url),
      place: toBackupPlace('restore'),
      manifest,
    })
  } finally {
    await clickhouse.close()
  }
  // One step: a part of it must never be restored.
  renameSync(backup, scratch)
  rmSync(scratch, { recursive: true })
  return true
}

/**
 * Publishes what was on its way, after the migrations, which make the streams.
 * @returns how many messages; null when there was nothing to restore
 */
export async function completeStreams(dataDir: string, url: string): Promise<number | null> {
  const folder = toStreamsToRestore(dataDir)
  if (!existsSync(folder)) return null
  const nats = await connectNats(url, 'restore', createLog('restore', 'silent'))
  let messages = 0
  try {
    for (const name of readdirSync(folder)) {
      messages += await publishMessages(nats, join(folder, name))
      rmSync(join(folder, name))
    }
  } finally {
    await nats.close()
  }
  rmSync(dirname(folder), { recursive: true })
  return messages
}

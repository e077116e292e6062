/** The files of a backup of the local stack, and where a data folder has what is to be restored. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/** In the folder of a backup. `secrets.json` has the master key, so the folder is private. */
export const backupParts = {
  manifest: 'backup.json',
  secrets: 'secrets.json',
  postgres: 'postgres',
  clickhouse: 'clickhouse',
  streams: 'streams',
} as const

/** The lease that the backup of a local stack has while it is made. */
export const backupLease = 'di backup'

/** In the engine's data folder: where `BACKUP ... TO File()` may write and `RESTORE` may read. */
export const clickhouseBackupFolder = 'backups'

/**
 * ClickHouse's own backups, in that folder. The next start of the local stack restores `restore`.
 * `scratch` is one that is being made or removed, perhaps incomplete after a crash, and is never
 * restored.
 */
export type ClickhouseBackup = 'restore' | 'scratch'
export const toClickhouseBackup = (dataDir: string, name: ClickhouseBackup): string =>
  join(dataDir, 'clickhouse', clickhouseBackupFolder, name)
/** The same for the engine. */
export const toBackupPlace = (name: ClickhouseBackup): string => `File('${name}')`

/** What the next start of the local stack completes: the manifest, and messages to publish again. */
export const toRestoreFolder = (dataDir: string): string => join(dataDir, 'restore')
export const toStreamsToRestore = (dataDir: string): string =>
  join(toRestoreFolder(dataDir), backupParts.streams)

/** The first undecided offsets. */
export const undecidedFromSchema = z.object({
  /** Stream offset from which events are among the messages, whether or not they are in ClickHouse. */
  undecided_from: z.number().int(),
  /** The same of each further telemetry stream, with the tenants that lie on it. */
  further_streams: z
    .array(z.object({ undecided_from: z.number().int(), tenants: z.array(z.string()) }))
    .default([]),
})
export type UndecidedFrom = z.infer<typeof undecidedFromSchema>

export const manifestSchema = undecidedFromSchema.extend({
  /** Of the code that made it. */
  version: z.string(),
  /** Every event that was accepted before is in the backup. */
  made_at: z.string(),
  /** Messages by stream. */
  messages: z.record(z.string(), z.number().int()),
})
export type BackupManifest = z.infer<typeof manifestSchema>

/** @returns null when the folder has no complete backup */
export async function readManifest(folder: string): Promise<BackupManifest | null> {
  try {
    const text = await readFile(join(folder, backupParts.manifest), 'utf8')
    return manifestSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

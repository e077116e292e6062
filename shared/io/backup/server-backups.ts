/**
 * Folders of backups of servers of your own, one beside another. ClickHouse's part is where its
 * server writes; the manifest names the place.
 */
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { manifestSchema, undecidedFromSchema } from './backup-folder.ts'

export const serverBackupParts = {
  /** Written first. */
  begun: 'begun.json',
  /** Of pg_dump. */
  postgres: 'postgres.dump',
  /** Of `pg_restore --list`, made after the whole dump was read back. */
  postgresList: 'postgres.list',
  streams: 'streams',
  /** Written last: a folder without it is not complete. */
  manifest: 'server-backup.json',
} as const

const begunSchema = z.object({
  /** As in `Undecided`, before the first store is copied. */
  sequences: z.record(z.string(), z.number().int()),
  offsets: undecidedFromSchema,
})
export type BegunBackup = z.infer<typeof begunSchema>

const serverManifestSchema = manifestSchema.extend({
  /** In the form of `RESTORE ... FROM`. */
  clickhouse: z.string(),
})
export type ServerBackup = z.infer<typeof serverManifestSchema>

/** @param folder that exists and is empty */
export const writeBegun = (folder: string, begun: BegunBackup): Promise<void> =>
  writeJson(join(folder, serverBackupParts.begun), begun)

/** @returns null in another folder */
export const readBegun = (folder: string): Promise<BegunBackup | null> =>
  readJson(join(folder, serverBackupParts.begun), begunSchema)

/** Completes the backup in a folder. */
export const writeServerBackup = (folder: string, backup: ServerBackup): Promise<void> =>
  writeJson(join(folder, serverBackupParts.manifest), backup)

/** @returns null when the folder has no complete backup */
export const readServerBackup = (folder: string): Promise<ServerBackup | null> =>
  readJson(join(folder, serverBackupParts.manifest), serverManifestSchema)

/**
 * Compares the list of a dump with the tables of the database that it is of. A dump that broke off,
 * or that a pg_dump of another version refused to make, has no list or lacks tables.
 * @param list of `pg_restore --list`
 * @returns tables without data in the dump
 */
export async function findUndumpedTables(postgres: Queryable, list: string): Promise<string[]> {
  // Not partitions: months come and go while a backup is made.
  const { rows } = await postgres.query<{ relname: string }>(
    `select relname from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r' and not relispartition
     order by relname`,
  )
  const tables = rows.map(({ relname }) => relname)
  return tables.filter((table) => !list.includes(` TABLE DATA public ${table} `))
}

async function writeJson(path: string, value: object): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
}

async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** A backup ends within this time, so what is incomplete for longer was interrupted. */
const incompleteMaxMs = 24 * 3_600_000

/** Removes backups beside this one that were interrupted a day ago or earlier. */
export async function removeInterruptedBackups(ownFolder: string): Promise<void> {
  for (const { folder, madeAt } of await listBackups(dirname(ownFolder))) {
    if (folder === ownFolder || madeAt !== null) continue
    const { mtimeMs } = await stat(folder)
    if (Date.now() - mtimeMs > incompleteMaxMs) await rm(folder, { recursive: true })
  }
}

/**
 * Removes complete backups beside this one, but the newest. ClickHouse's parts stay.
 * @param keep how many stay, with this one
 */
export async function removeOldBackups(ownFolder: string, keep: number): Promise<void> {
  const complete = (await listBackups(dirname(ownFolder))).filter((one) => one.madeAt !== null)
  const newestFirst = complete.sort((a, b) => (a.madeAt! < b.madeAt! ? 1 : -1))
  for (const { folder } of newestFirst.slice(keep)) await rm(folder, { recursive: true })
}

/** Other folders beside them are left out. */
async function listBackups(parent: string): Promise<{ folder: string; madeAt: string | null }[]> {
  const backups: { folder: string; madeAt: string | null }[] = []
  for (const entry of await readdir(parent, { withFileTypes: true })) {
    const folder = join(parent, entry.name)
    if (!entry.isDirectory() || (await readBegun(folder)) === null) continue
    const manifest = await readServerBackup(folder)
    backups.push({ folder, madeAt: manifest?.made_at ?? null })
  }
  return backups
}

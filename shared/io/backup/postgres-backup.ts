/**
 * A base backup of a PostgreSQL whose data folder is on this machine, while it runs: its files, and
 * the write-ahead log that makes them consistent. A server that is started on the copy recovers by
 * itself to the end of the backup. It is what pg_basebackup does for a server elsewhere.
 */
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'

/** Folders whose content a server makes anew, or that belong to the running one. */
const emptyFolders = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])
const leftOut = /^(postmaster\.(pid|opts)|pgsql_tmp.*|backup_label.*|tablespace_map.*)$/

/**
 * @param postgres with a role that may replicate, and without a limit of a statement's time
 * @param dataFolder of the server
 * @param target a folder that does not exist yet
 */
export async function backupPostgres(
  postgres: Postgres,
  dataFolder: string,
  target: string,
): Promise<void> {
  await postgres.withSession(async (session) => {
    // Keeps the log until this session ends.
    await session.query("select pg_create_physical_replication_slot('di_backup', true, true)")
    const first = await readLogFile(session, "pg_backup_start('di backup', true)")
    await mkdir(target, { recursive: true, mode: 0o700 })
    await copyFolder(dataFolder, target)
    const { rows } = await session.query<{ lsn: string; labelfile: string; spcmapfile: string }>(
      'select lsn, labelfile, spcmapfile from pg_backup_stop(false)',
    )
    const { lsn, labelfile, spcmapfile } = rows[0]!
    await writeFile(join(target, 'backup_label'), labelfile, { mode: 0o600 })
    if (spcmapfile !== '') throw new Error('a PostgreSQL with tablespaces needs pg_basebackup')
    const last = await readLogFile(session, `'${lsn}'::pg_lsn`)
    await copyLog(join(dataFolder, 'pg_wal'), join(target, 'pg_wal'), { first, last })
  })
}

/** The name of the file of the log in which a place is. */
async function readLogFile(session: Session, place: string): Promise<string> {
  const { rows } = await session.query<{ name: string }>(`select pg_walfile_name(${place}) as name`)
  return rows[0]!.name
}

async function copyFolder(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (leftOut.test(entry.name)) continue
    if (entry.isDirectory()) {
      await mkdir(target, { mode: 0o700 })
      if (!emptyFolders.has(entry.name)) await copyFolder(source, target)
    } else await copyIfThere(source, target)
  }
}

/** The server removes files meanwhile; its log then says so. */
async function copyIfThere(source: string, target: string): Promise<void> {
  await copyFile(source, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}

async function copyLog(
  from: string,
  to: string,
  { first, last }: { first: string; last: string },
): Promise<void> {
  const names = (await readdir(from)).filter(
    (name) =>
      name.endsWith('.history') || (/^[\dA-F]{24}$/.test(name) && name >= first && name <= last),
  )
  if (!names.includes(first) || !names.includes(last)) throw new Error('the log was removed')
  for (const name of names) await copyFile(join(from, name), join(to, name))
}

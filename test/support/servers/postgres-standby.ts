// A standby of a real PostgreSQL by streaming replication. The embedded programs have no
// pg_basebackup, so its base backup is made by the server's functions and a copy of the files.

import { execFile } from 'node:child_process'
import { appendFileSync, chownSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { until } from '../process/until.ts'
import { startPostgres, type TestPostgres } from './postgres-server.ts'

const run = promisify(execFile)

export type TestStandby = TestPostgres & {
  /** Makes it the primary; it no longer follows the old one. */
  promote: () => Promise<void>
}

/** The name of the standby in the primary's `synchronous_standby_names`. */
const standbyName = 'standby'

/**
 * Starts a standby and waits until it follows.
 * @param synchronous whether a commit of the primary waits until the standby has it on disk
 */
export async function startStandby(
  primary: TestPostgres,
  { synchronous }: { synchronous: boolean },
): Promise<TestStandby> {
  const dir = await mkdtemp(join(tmpdir(), 'di-standby-'))
  const admin = new pg.Client({ connectionString: primary.url })
  await admin.connect()
  try {
    await copyFiles(admin, { from: join(primary.dir, 'postgres'), to: join(dir, 'postgres') })
    addFile(join(dir, 'postgres'), 'standby.signal', '')
    const { username, password } = new URL(primary.url)
    const connection =
      `host=127.0.0.1 port=${primary.port} user=${username} password=${password} ` +
      `application_name=${standbyName}`
    appendFileSync(
      join(dir, 'postgres/postgresql.auto.conf'),
      `primary_conninfo = '${connection}'\nwal_retrieve_retry_interval = 200ms\n`,
    )
    const server = await startPostgres({ dir })
    if (synchronous) {
      await admin.query(`alter system set synchronous_standby_names = '${standbyName}'`)
      await admin.query('select pg_reload_conf()')
    }
    await until('the standby follows', async () => {
      const { rows } = await admin.query('select sync_state from pg_stat_replication')
      return rows[0]?.sync_state === (synchronous ? 'sync' : 'async')
    })
    return {
      ...server,
      get pid() {
        return server.pid
      },
      promote: () => promote(server.url),
      stop: async () => {
        await server.stop()
        await rm(dir, { recursive: true, force: true })
      },
    }
  } finally {
    await admin.end()
  }
}

async function copyFiles(admin: pg.Client, { from, to }: { from: string; to: string }) {
  await admin.query(`select pg_backup_start('standby', true)`)
  await run('cp', ['-a', from, to])
  rmSync(join(to, 'postmaster.pid'))
  const { rows } = await admin.query<{ labelfile: string }>(
    'select labelfile from pg_backup_stop(false)',
  )
  addFile(to, 'backup_label', rows[0]!.labelfile)
}

/** The server's user may be another one than that of the test. */
function addFile(dir: string, name: string, text: string): void {
  const { uid, gid } = statSync(dir)
  writeFileSync(join(dir, name), text)
  chownSync(join(dir, name), uid, gid)
}

async function promote(url: string): Promise<void> {
  const standby = new pg.Client({ connectionString: url })
  await standby.connect()
  try {
    // A synchronous commit would wait for a standby that there is none of any more.
    await standby.query('select pg_promote()')
    await standby.query(`alter system reset synchronous_standby_names`)
    await standby.query('select pg_reload_conf()')
  } finally {
    await standby.end()
  }
}

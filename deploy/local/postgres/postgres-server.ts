// The embedded PostgreSQL: creates a data folder once and starts the server on it, with fsync on,
// password authentication, and no socket but 127.0.0.1. It survives kill -9 of any process: a
// postmaster.pid whose process has ended is removed before the start.

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { Client } from 'pg'

import { changeOwner } from '../stack/change-owner.ts'
import { type Launcher, type LaunchSpec, type RunAs, startToken } from '../stack/launch.ts'
import { isListenedOn } from '../stack/ports/ports.ts'
import { StartError } from '../stack/settings.ts'
import {
  findPostgresBinaries,
  type PostgresBinaries,
  postgresIdentity,
} from './postgres-binaries.ts'

const run = promisify(execFile)

export type PostgresSettings = {
  binaries: PostgresBinaries
  /** The server's data folder; created on first use. */
  dir: string
  port: number
  user: string
  password: string
  runAs: RunAs | undefined
  /** More `name=value` settings for the server. */
  settings?: Record<string, string>
}

/**
 * Prepares a server on `dir`: finds the programs, chooses the user, creates the data folder when it
 * is missing (about a second) and makes that user its owner.
 */
export async function preparePostgres(options: {
  launcher: Launcher
  env: Record<string, string | undefined>
  dir: string
  port: number
  user: string
  password: string
  settings?: Record<string, string>
  signal?: AbortSignal | undefined
}): Promise<PostgresSettings> {
  const binaries = findPostgresBinaries()
  mkdirSync(dirname(options.dir), { recursive: true })
  const { launcher, env, signal, ...rest } = options
  const fresh = !existsSync(join(options.dir, 'PG_VERSION'))
  // A crash during an earlier first start leaves a folder that is not a cluster yet.
  const dir = fresh ? `${options.dir}.new-${randomUUID().slice(0, 8)}` : options.dir
  if (fresh) {
    removeUnfinished(options.dir)
    mkdirSync(dir, { mode: 0o700 })
  }
  const runAs = postgresIdentity(launcher, { program: binaries.postgres, dataDir: dir })
  // PostgreSQL requires that its user owns the data folder, also after that user has changed.
  if (runAs) changeOwner(dir, runAs)
  if (fresh) {
    await initialize({ launcher, env, dir, binaries, runAs, signal, ...pick(options) })
    renameSync(dir, options.dir)
  }
  removeStalePid(options.dir)
  return { ...rest, binaries, runAs }
}

function pick(options: { user: string; password: string }) {
  return { user: options.user, password: options.password }
}

async function initialize(options: {
  launcher: Launcher
  env: Record<string, string | undefined>
  dir: string
  binaries: PostgresBinaries
  runAs: RunAs | undefined
  user: string
  password: string
  signal: AbortSignal | undefined
}): Promise<void> {
  const { launcher, dir, binaries, runAs } = options
  // Beside the data folder, readable only for its owner, removed as soon as initdb has read it.
  const passwordFile = `${dir}.password`
  writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 })
  if (runAs) chownSync(passwordFile, runAs.uid, runAs.gid)
  const args = [
    ['--pgdata', dir],
    ['--username', options.user],
    ['--pwfile', passwordFile],
    ['--auth', 'scram-sha-256'],
    ['--encoding', 'UTF8'],
    // The same collation on every machine, in any locale.
    ['--locale-provider', 'builtin'],
    ['--builtin-locale', 'C.UTF-8'],
    ['--locale', 'C'],
    ['--no-instructions'],
  ].flat()
  const [command, ...rest] = launcher.wrap({ command: binaries.initdb, args, runAs })
  try {
    await run(command as string, rest, {
      env: options.env,
      cwd: '/',
      ...(options.signal ? { signal: options.signal } : {}),
      ...(runAs && !launcher.kernelBound ? { uid: runAs.uid, gid: runAs.gid } : {}),
    })
  } catch (error) {
    rmSync(dir, { recursive: true, force: true })
    const { stderr, message } = error as { stderr?: string; message: string }
    const reason = stderr?.trim() || message
    const hint = reason.includes('could not look up')
      ? `\nPostgreSQL runs only as a user that the system knows: give user id ${process.getuid?.()} ` +
        'an entry in /etc/passwd, run as another user, or set POSTGRES_URL.'
      : ''
    throw new StartError(`initdb failed: ${reason}${hint}`)
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

function removeUnfinished(dir: string): void {
  const parent = dirname(dir)
  const prefix = `${dir.slice(parent.length + 1)}.new-`
  for (const name of readdirSync(parent)) {
    if (name.startsWith(prefix)) rmSync(join(parent, name), { recursive: true, force: true })
  }
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    throw new StartError(`${dir} is neither empty nor a PostgreSQL data folder`)
  }
}

/**
 * After a crash postmaster.pid names a process that has ended, or whose id another process has now.
 * PostgreSQL checks only that such a process exists; here it must also be a postgres.
 */
function removeStalePid(dir: string): void {
  const file = join(dir, 'postmaster.pid')
  if (!existsSync(file)) return
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
  if (startToken(pid) !== null && runsPostgres(pid)) return
  rmSync(file, { force: true })
}

function runsPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('postgres')
  } catch {
    // No /proc here: leave the decision to PostgreSQL.
    return process.platform !== 'linux'
  }
}

/** The launch spec for a prepared data folder. */
export function postgresLaunchSpec(
  settings: PostgresSettings,
  env: Record<string, string | undefined>,
): LaunchSpec {
  chmodSync(settings.dir, 0o700)
  removeStalePid(settings.dir)
  const server: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: `${settings.port}`,
    unix_socket_directories: '',
    fsync: 'on',
    synchronous_commit: 'on',
    // The supervisor restarts it. By itself PostgreSQL 18.4 waits forever, and refuses all clients,
    // when its recovery from the loss of one process loses another.
    restart_after_crash: 'off',
    max_connections: '200',
    shared_buffers: '128MB',
    log_min_messages: 'warning',
    log_line_prefix: '%m [%p] ',
    ...settings.settings,
  }
  return {
    command: settings.binaries.postgres,
    args: [
      '-D',
      settings.dir,
      ...Object.entries(server).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    env,
    cwd: settings.runAs ? '/' : settings.dir,
    runAs: settings.runAs,
    // Immediate shutdown: no checkpoint to wait for; the log restores everything.
    orphanSignal: 'SIGQUIT',
  }
}

/** The URL of one database of the server. */
export function postgresUrl(
  settings: { port: number; user: string; password: string },
  database: string,
): string {
  const { user, password, port } = settings
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
}

/** True once a server on this machine accepts connections on this URL. */
export async function postgresAnswers(url: string): Promise<boolean> {
  if (!(await isListenedOn(Number(new URL(url).port)))) return false
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Creates a database unless it exists. `name` must be a plain identifier. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(name)) throw new Error(`not a database name: ${name}`)
  const client = new Client({ connectionString: adminUrl })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount === 0) {
      await client.query(`create database ${name} encoding 'UTF8' template template0`)
    }
  } finally {
    await client.end()
  }
}

// A real PostgreSQL for tests: the same programs and start as the local stack's. One server serves
// a whole test file; a test that needs its own state creates a database. Tests end processes, never
// the machine, so syncing to disk is off unless a test turns it on.

import { type ChildProcess, execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { findPostgresBinaries } from '../../../deploy/local/postgres/postgres-binaries.ts'
import {
  ensureDatabase,
  postgresAnswers,
  postgresLaunchSpec,
  postgresUrl,
  preparePostgres,
} from '../../../deploy/local/postgres/postgres-server.ts'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild, exitOf, sendSignal } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { migratePostgres } from './databases.ts'
import { findTemplate } from './templates.ts'

const run = promisify(execFile)

export type TestPostgres = {
  /** The URL of the database `postgres`, with user and password. */
  url: string
  port: number
  dir: string
  readonly pid: number
  /** Creates a database (with a fresh name by default) and returns its URL. */
  createDatabase: (name?: string) => Promise<string>
  /** The same with every migration of this release; no process has a role of its own. */
  createMigratedDatabase: () => Promise<string>
  /** Sends a signal and waits for the end when the signal ends it (all but STOP and CONT). */
  kill: (signal: NodeJS.Signals) => Promise<void>
  /** Ends the server, and removes its files unless the test passed a folder. */
  stop: () => Promise<void>
  /** Starts it again on the same port and files; ends it first when it runs. */
  restart: () => Promise<void>
}

/**
 * Starts a PostgreSQL on a free port. `dir` is the folder of its files (by default a fresh one).
 */
export async function startPostgres(
  options: { dir?: string; port?: number; settings?: Record<string, string> } = {},
): Promise<TestPostgres> {
  const env = process.env
  const launcher = createLauncher({ pathVar: env.PATH })
  const base = options.dir ?? (await mkdtemp(join(tmpdir(), 'di-postgres-')))
  // A folder of the test's own may have any release's tables.
  const migrated = options.dir === undefined ? await findTemplate('postgres', makeMigrated) : null
  if (options.dir === undefined) {
    await copyCluster(migrated ?? (await findFreshCluster()), base)
  }
  const prepared = await preparePostgres({
    launcher,
    env,
    ...account,
    dir: join(base, 'postgres'),
    port: options.port ?? (await choosePort({})),
    settings: { fsync: 'off', ...options.settings },
  })
  const url = postgresUrl(prepared, 'postgres')
  let child: ChildProcess = await start()

  async function start(): Promise<ChildProcess> {
    // After kill -9 of the postmaster the backends need a moment to notice it and exit.
    for (let attempt = 1; ; attempt++) {
      const started = launcher.launch(postgresLaunchSpec(prepared, env))
      let output = ''
      const keep = (chunk: Buffer) => {
        output = (output + chunk).slice(-4_000)
      }
      started.stdout?.on('data', keep)
      started.stderr?.on('data', keep)
      try {
        const isReady = () => postgresAnswers(url)
        await awaitReady({ name: 'postgres', child: started, isReady, limitMs: 120_000 })
        return started
      } catch (error) {
        await endChild(started, { signal: 'SIGQUIT', graceMs: 2_000 })
        if (attempt === 20) throw new Error(`${(error as Error).message}\n${output}`)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }

  return {
    url,
    port: prepared.port,
    dir: base,
    get pid() {
      return child.pid as number
    },
    createDatabase: async (name = toNewName()) => {
      await ensureDatabase(url, name)
      return postgresUrl(prepared, name)
    },
    createMigratedDatabase: async () => {
      const name = toNewName()
      const created = postgresUrl(prepared, name)
      if (migrated === null) await migratePostgres(created)
      else await copyTemplate(url, name)
      return created
    },
    kill: async (signal) => {
      sendSignal(child.pid as number, signal)
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await exitOf(child)
    },
    stop: async () => {
      await endChild(child, { signal: 'SIGINT', graceMs: 5_000 })
      if (options.dir === undefined) await rm(base, { recursive: true, force: true })
    },
    restart: async () => {
      await endChild(child, { signal: 'SIGINT', graceMs: 5_000 })
      child = await start()
    },
  }
}

const account = { user: 'di', password: 'postgres-test-password' }
/** In a cluster of the template. */
const templateDatabase = 'migrated'
const toNewName = () => `t_${randomUUID().replaceAll('-', '').slice(0, 16)}`

/** Copies the cluster of one server's folder to another's. */
const copyCluster = (from: string, to: string) =>
  run('cp', ['-a', join(from, 'postgres'), join(to, 'postgres')])

/**
 * A fresh cluster takes a second of CPU to create and a tenth to copy: the first test of a machine
 * creates it, all others copy it. It has never been started.
 */
async function findFreshCluster(): Promise<string> {
  const { initdb } = findPostgresBinaries()
  const { size, mtimeMs } = statSync(initdb)
  const of = createHash('sha256').update(`${initdb} ${size} ${mtimeMs}`).digest('hex').slice(0, 16)
  const made = join(tmpdir(), `di-postgres-new-${of}`)
  if (!existsSync(made)) {
    const making = `${made}.${randomUUID()}`
    const env = process.env
    const launcher = createLauncher({ pathVar: env.PATH })
    await preparePostgres({ launcher, env, dir: join(making, 'postgres'), port: 0, ...account })
    // When two create one at once, the second finds the first one's.
    await rename(making, made).catch(() => rm(making, { recursive: true, force: true }))
  }
  return made
}

async function makeMigrated(dir: string): Promise<void> {
  await mkdir(dir)
  await copyCluster(await findFreshCluster(), dir)
  const server = await startPostgres({ dir })
  try {
    await migratePostgres(await server.createDatabase(templateDatabase))
  } finally {
    await server.stop()
  }
}

async function copyTemplate(adminUrl: string, name: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl })
  await client.connect()
  try {
    await client.query(`create database ${name} template ${templateDatabase} strategy file_copy`)
  } finally {
    await client.end()
  }
}

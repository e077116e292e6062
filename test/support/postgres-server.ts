// A real PostgreSQL for tests: the same programs and start as the local stack's. One server serves
// a whole test file; each test that wants its own state asks for a database. Tests end processes,
// never the machine, so syncing to disk is off unless a test turns it on.

import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { awaitReady } from '../../deploy/local/await-ready.ts'
import { createLauncher, endChild, exitOf, sendSignal } from '../../deploy/local/launch.ts'
import { choosePort } from '../../deploy/local/ports.ts'
import {
  ensureDatabase,
  postgresAnswers,
  postgresLaunchSpec,
  postgresUrl,
  preparePostgres,
} from '../../deploy/local/postgres-server.ts'

export type TestPostgres = {
  /** Of the database `postgres`, with user and password. */
  url: string
  port: number
  dir: string
  readonly pid: number
  /** Creates a database (a fresh name when left out) and returns its URL. */
  createDatabase: (name?: string) => Promise<string>
  /** Sends a signal and waits for the end when the signal ends it (all but STOP and CONT). */
  kill: (signal: NodeJS.Signals) => Promise<void>
  /** Ends the server, and removes its files when the test did not bring a folder. */
  stop: () => Promise<void>
  /** Starts it again on the same port and files, ending it first when it runs. */
  restart: () => Promise<void>
}

/** Starts a PostgreSQL on a free port. `dir` keeps its files (a fresh folder when left out). */
export async function startPostgres(
  options: { dir?: string; port?: number; settings?: Record<string, string> } = {},
): Promise<TestPostgres> {
  const env = process.env
  const launcher = createLauncher({ pathVar: env.PATH })
  const base = options.dir ?? (await mkdtemp(join(tmpdir(), 'di-postgres-')))
  const prepared = await preparePostgres({
    launcher,
    env,
    dir: join(base, 'postgres'),
    port: options.port ?? (await choosePort({})),
    user: 'di',
    password: 'postgres-test-password',
    settings: { fsync: 'off', ...options.settings },
  })
  const url = postgresUrl(prepared, 'postgres')
  let child: ChildProcess = await start()

  async function start(): Promise<ChildProcess> {
    // kill -9 of the postmaster leaves backends that need a moment to notice and let go.
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
        await awaitReady({ name: 'postgres', child: started, isReady, limitMs: 30_000 })
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
    createDatabase: async (name) => {
      const database = name ?? `t_${randomUUID().replaceAll('-', '').slice(0, 16)}`
      await ensureDatabase(url, database)
      return postgresUrl(prepared, database)
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

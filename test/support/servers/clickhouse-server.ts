// Starts the embedded ClickHouse for a test, on a free port, in a directory that is removed again
// unless the test passes its own. The process always ends with the test process.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isolate } from '../../../deploy/local/clickhouse/isolation.ts'
import type { EngineShards, EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'
import { migrateClickhouse } from './databases.ts'
import { findTemplate } from './templates.ts'

export type TestClickhouse = {
  /** Usable as CLICKHOUSE_URL: it has the password and the default database. */
  url: string
  pid: number
  /** The end of its stderr. */
  complaint(): string
  /** Its exit code once it has ended, null if killed. */
  ended: Promise<number | null>
  /** Ends the process by a signal; resolves to its exit code when it is gone, null if killed. */
  kill(signal: NodeJS.Signals): Promise<number | null>
  /** Stops it in order and removes the directory if it was created here. */
  stop(): Promise<void>
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const startMaxMs = 120_000
const run = promisify(execFile)

/** Rejects with the stderr of the process when it ends before it is ready. */
export async function startClickhouse(
  options: {
    path?: string
    port?: number
    /** Has every migration of this release; `path` then is empty. */
    isMigrated?: boolean
    password?: string
    /** Users beside `default`. */
    users?: readonly EngineUser[]
    /** In namespaces of its own; `path` then is a folder of a data folder. */
    isIsolated?: boolean
    /** As one of several shards. */
    shards?: EngineShards
    /** The folder in which its command is given; this process's own by default. */
    workingDir?: string
  } = {},
): Promise<TestClickhouse> {
  const path = options.path ?? mkdtempSync(join(tmpdir(), 'clickhouse-'))
  const password = options.password ?? 'test'
  const template = options.isMigrated ? await findTemplate('clickhouse', makeMigrated) : null
  if (template !== null) await run('cp', ['-a', `${template}/.`, path])
  const own = [
    join(root, 'node_modules/.bin/node'),
    join(root, 'deploy/local/clickhouse/clickhouse-server.ts'),
    ...['--path', path, '--listen', `127.0.0.1:${options.port ?? 0}`],
    ...['--parent-pid', `${process.pid}`],
    ...(options.isIsolated ? ['--isolated'] : []),
    ...toShardFlags(options.shards),
  ]
  const place = { dataDir: dirname(path), name: basename(path), pathVar: process.env.PATH }
  const [command, ...args] = options.isIsolated ? isolate(own, place) : own
  const server = spawn(command!, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: options.workingDir,
    env: {
      ...process.env,
      CLICKHOUSE_PASSWORD: password,
      ENGINE_USERS: JSON.stringify(options.users ?? []),
    },
  })
  const ended = once(server, 'exit').then(([code]) => code as number | null)
  const kill = (signal: NodeJS.Signals) => {
    server.kill(signal)
    return ended
  }
  let complaint = ''
  server.stderr!.setEncoding('utf8')
  server.stderr!.on('data', (chunk: string) => {
    complaint = (complaint + chunk).slice(-10_000)
  })
  const address = new URL(await readListening(server, () => complaint))
  if (password !== '') {
    address.username = 'default'
    address.password = password
  }
  const url = address.href.replace(/\/$/, '')
  if (options.isMigrated && template === null) await migrateClickhouse(url)
  return {
    url,
    pid: server.pid!,
    ended,
    complaint: () => complaint,
    kill,
    stop: async () => {
      await kill('SIGTERM')
      if (options.path === undefined) rmSync(path, { recursive: true, force: true })
    },
  }
}

async function makeMigrated(path: string): Promise<void> {
  mkdirSync(path)
  const server = await startClickhouse({ path })
  try {
    await migrateClickhouse(server.url)
  } finally {
    await server.stop()
  }
}

const toShardFlags = (shards: EngineShards | undefined): string[] =>
  shards === undefined
    ? []
    : ['--shards', shards.ports.join(','), '--shard', String(shards.own + 1)]

async function readListening(server: ChildProcess, complaint: () => string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      server.kill('SIGKILL')
      reject(new Error(`ClickHouse did not start in ${startMaxMs} ms: ${complaint()}`))
    }, startMaxMs)
    server.once('close', (code, signal) => {
      clearTimeout(timer)
      reject(new Error(`ClickHouse ended before it was ready (${code ?? signal}): ${complaint()}`))
    })
    createInterface({ input: server.stdout! }).once('line', (line) => {
      clearTimeout(timer)
      resolve((JSON.parse(line) as { listening: string }).listening)
    })
  })
}

// Runs the real ClickHouse inside this process. The `chdb` package is the engine as a shared
// library; its documented C entry `chdb_query_cmdline` is `clickhouse local`, which since 26.x can
// open ClickHouse's own HTTP interface (`SYSTEM START LISTEN HTTP`). So clients use ClickHouse's
// real server code: formats, settings, sessions, errors, compression.
//
// The call blocks for the engine's whole life, on a separate thread. The engine first runs
// boot.sql, then reads statements from a named pipe without a writer: it waits there, idle, until
// release() closes the pipe, and then shuts down in order.
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { libchdbPath } from 'chdb/libchdb'
import { DataType, load, open } from 'ffi-rs'
import { becomeEngineUser } from './engine-user.ts'
import {
  type EngineShards,
  type EngineUser,
  toAnalystPassword,
  toBootSql,
  toServerConfigXml,
  toShardsSecret,
  toUsersXml,
} from './server-config.ts'
import { openStartupGate } from './startup-gate.ts'

export type EngineOptions = {
  /** The folder of all data; created when missing. One engine at a time. */
  dataDir: string
  host: string
  /** 0 takes a free port. */
  port: number
  /** Password of user `default`; empty for none. */
  password: string
  /** Further users: the embedded engine cannot add users later. */
  users: readonly EngineUser[]
  /** ClickHouse's log level: `critical`, `debug`, `trace`, ... Lines go to stderr as JSON. */
  logLevel: string
  /** Whether this process is in namespaces of its own, where it is not really root. */
  isIsolated: boolean
  /**
   * Null for an engine that is alone. Shards speak the native protocol with each other: a broken
   * greeting there ends this engine, so it listens on 127.0.0.1, for shards only.
   */
  shards: EngineShards | null
}

export type Engine = {
  /** The port that it listens on. */
  port: number
  /** Settles when the engine has shut down. */
  ended: Promise<void>
  /** Begins an orderly shutdown: no new connections, then the tables, then `ended`. */
  release(): void
  /** Ends the process at once, without the exit handlers that would wait for engine threads. */
  exitNow(code: number): never
}

const library = 'chdb'
const parentDeathSignal = 1
const lockExclusiveNonBlocking = 2 | 4

/**
 * Starts the engine and resolves once its HTTP port accepts queries.
 * Throws when the directory belongs to another living process or the engine cannot start; the
 * message says which, the engine's own message is on stderr.
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  open({ library, path: libchdbPath() })
  const runDir = join(options.dataDir, 'run')
  mkdirSync(runDir, { recursive: true, mode: 0o700 })
  const warning = options.isIsolated ? null : becomeEngineUser(options.dataDir)
  if (warning !== null) process.stderr.write(`clickhouse-server: warning: ${warning}\n`)
  // The kernel drops the signal set by setpriv when a process changes its user or namespace.
  else
    callInt('prctl', [DataType.I32, DataType.I32], [parentDeathSignal, constants.signals.SIGTERM])
  lockDirectory(options.dataDir)

  const startupGatePort = options.password === '' ? null : await openStartupGate()
  const files = writeRunFiles(runDir, { ...options, startupGatePort })
  const pipe = openPipe(files.pipe)
  const ended = runClickhouseLocal([
    `--config-file=${files.config}`,
    `--path=${options.dataDir}`,
    `--listen_host=${options.host}`,
    `--http_port=${options.port}`,
    '--queries-file',
    files.bootSql,
    files.pipe,
  ])
  const port = await Promise.race([readPort(files.port), ended.then(failToStart)])
  return { port, ended, release: () => closeSync(pipe), exitNow }
}

function failToStart(): never {
  throw new Error('the ClickHouse engine ended before it listened; its message is above')
}

// An advisory lock ends with its process, so a lock of a killed process never blocks a start.
function lockDirectory(dataDir: string): void {
  const lockFile = join(dataDir, 'run', 'owner')
  const file = openSync(lockFile, 'a+', 0o600)
  if (callInt('flock', [DataType.I32, DataType.I32], [file, lockExclusiveNonBlocking]) !== 0) {
    const owner = readFileSync(lockFile, 'utf8').trim()
    throw new Error(`${dataDir} is in use by another ClickHouse, process ${owner}`)
  }
  writeFileSync(lockFile, `${process.pid}\n`)
}

type RunFiles = { config: string; bootSql: string; pipe: string; port: string }

function writeRunFiles(
  runDir: string,
  facts: Pick<EngineOptions, 'password' | 'logLevel' | 'users' | 'shards'> & {
    startupGatePort: number | null
  },
): RunFiles {
  const { password, logLevel, users, shards, startupGatePort } = facts
  const files: RunFiles = {
    config: join(runDir, 'config.xml'),
    bootSql: join(runDir, 'boot.sql'),
    pipe: join(runDir, 'hold'),
    port: join(runDir, 'port'),
  }
  const toSha256Hex = (text: string) => createHash('sha256').update(text).digest('hex')
  const config = {
    logLevel,
    passwordSha256Hex: password === '' ? null : toSha256Hex(password),
    analystPasswordSha256Hex: toSha256Hex(toAnalystPassword(password)),
    startupGatePort,
    users,
    shards: shards === null ? null : { ...shards, secret: toShardsSecret(password) },
  }
  rmSync(files.port, { force: true })
  rmSync(files.pipe, { force: true })
  writeFileSync(files.config, toServerConfigXml(config), { mode: 0o600 })
  writeFileSync(join(runDir, 'users.xml'), toUsersXml(config), { mode: 0o600 })
  writeFileSync(files.bootSql, toBootSql(files.port, shards !== null), { mode: 0o600 })
  return files
}

// Opened for reading and writing, so that neither end waits for the other to appear.
function openPipe(path: string): number {
  const mode = 0o600
  if (callInt('mkfifo', [DataType.String, DataType.I32], [path, mode]) !== 0) {
    throw new Error(`cannot create the named pipe ${path}`)
  }
  return openSync(path, 'r+')
}

async function runClickhouseLocal(flags: string[]): Promise<void> {
  // The engine's crash handlers would keep a dying process alive for minutes to print a report.
  callInt('chdb_set_signal_handlers_enabled', [DataType.I32], [0])
  const argv = ['clickhouse', ...flags]
  const result = await load({
    library,
    funcName: 'chdb_query_cmdline',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [argv.length, argv],
    runInNewThread: true,
  })
  const failure = load({
    library,
    funcName: 'chdb_result_error',
    retType: DataType.I64,
    paramsType: [DataType.External],
    paramsValue: [result],
  })
  if (failure === 0) return
  const message = load({
    library,
    funcName: 'chdb_result_error',
    retType: DataType.String,
    paramsType: [DataType.External],
    paramsValue: [result],
  })
  throw new Error(`the ClickHouse engine failed: ${String(message).split(', Stack trace')[0]}`)
}

async function readPort(file: string): Promise<number> {
  for (;;) {
    const text = readIfThere(file)
    if (text.endsWith('\n')) return Number(text)
    await sleep(5)
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function exitNow(code: number): never {
  callInt('_exit', [DataType.I32], [code])
  throw new Error('unreachable')
}

// The engine's library includes libc, so its symbols are found through the same handle.
function callInt(funcName: string, paramsType: DataType[], paramsValue: unknown[]): number {
  return load({ library, funcName, retType: DataType.I32, paramsType, paramsValue }) as number
}

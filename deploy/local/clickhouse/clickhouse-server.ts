// The embedded ClickHouse as a separate process: `node deploy/local/clickhouse/clickhouse-server.ts
// --path DIR --listen 127.0.0.1:PORT [--parent-pid PID] [--isolated] [--shards PORTS --shard N]`.
// `--isolated` says that it has namespaces of its own (isolation.ts). It prints one JSON line on stdout when queries are accepted, logs to stderr, and is the only place that uses
// the engine. Acknowledged rows survive its kill -9. It ends on SIGTERM or SIGINT within five
// seconds, and by itself when the parent has ended.
import { flushCompileCache } from 'node:module'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { isAlive } from '../stack/launch.ts'
import { findBrokenPart } from './broken-parts.ts'
import { type Engine, startEngine } from './engine.ts'
import { findOverdueQuery } from './overdue-queries.ts'
import type { EngineUser } from './server-config.ts'
import { spreadParts } from './spread-parts.ts'
import { waitForQueries } from './wait-for-queries.ts'

const parentCheckMs = 500
// Together under the five seconds in which a stop must end.
const drainMaxMs = 2_500
const shutdownMaxMs = 700

const { values: flags } = parseArgs({
  options: {
    path: { type: 'string' },
    listen: { type: 'string', default: '127.0.0.1:8123' },
    'parent-pid': { type: 'string' },
    isolated: { type: 'boolean', default: false },
    // Of a shard: the native ports of all shards in their order, and which of them is its own.
    shards: { type: 'string' },
    shard: { type: 'string' },
  },
})
const listen = /^(?<host>[\d.]+|localhost|\[[\da-f:]+\]):(?<port>\d{1,5})$/.exec(flags.listen)
if (flags.path === undefined || listen?.groups === undefined) {
  fail('usage: clickhouse-server.ts --path DIR --listen HOST:PORT [--parent-pid PID]')
}
if ((flags.shards === undefined) !== (flags.shard === undefined)) {
  fail('usage: --shards PORT,PORT,... --shard NUMBER')
}
if (flags.shards !== undefined && listen.groups.host !== '127.0.0.1') {
  fail('a shard listens on 127.0.0.1 only')
}
const dataDir = resolve(flags.path)
const host = listen.groups.host!
const password = process.env.CLICKHOUSE_PASSWORD ?? ''
// The engine reads its time zone from here; as in ClickHouse's own image, every machine gets UTC.
process.env.TZ = 'UTC'

// The engine changes its user, who may not write there, and ends without Node's own exit.
flushCompileCache()

const engine = await startEngine({
  dataDir,
  host: host.replace(/^\[|\]$/g, ''),
  port: Number(listen.groups.port),
  password,
  users: readUsers(process.env.ENGINE_USERS),
  logLevel: toEngineLogLevel(process.env.LOG_LEVEL),
  isIsolated: flags.isolated,
  shards:
    flags.shards === undefined
      ? null
      : { ports: flags.shards.split(',').map(Number), own: Number(flags.shard) - 1 },
}).catch((error: unknown) => fail(error instanceof Error ? error.message : String(error)))
const url = `http://${host}:${engine.port}`

// Only now: the engine sets its own handlers while it starts, and these must be the last.
let stopping = false
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop)
if (flags['parent-pid'] !== undefined) watchParent(Number(flags['parent-pid']))
engine.ended.then(
  () => engine.exitNow(stopping ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    engine.exitNow(1)
  },
)
void restartWhenBroken(engine)
spreadParts(dataDir)
process.stdout.write(`${JSON.stringify({ listening: url })}\n`)

function stop(): void {
  if (stopping) return
  stopping = true
  void drainAndEnd(engine)
}

// An idle kept-alive connection would delay the engine's own shutdown by five seconds, so it is
// closed after a moment: after draining no data can be lost.
async function drainAndEnd(running: Engine): Promise<void> {
  await waitForQueries({ url, password }, drainMaxMs)
  running.release()
  await sleep(shutdownMaxMs)
  running.exitNow(0)
}

// By force: acknowledged rows survive that. An orderly stop would take seconds of the time until the
// source parts of a broken one are deleted, and would wait for a query that does not end.
async function restartWhenBroken(running: Engine): Promise<void> {
  const server = { url, password }
  const why = await Promise.race([
    findBrokenPart(server, dataDir).then(
      (path) => `a part was left broken, probably by a full disk: ${path}`,
      (error: unknown) => `parts cannot be checked: ${String(error)}`,
    ),
    findOverdueQuery(server).then((id) => `an analyst's query outlived its time limit: ${id}`),
  ])
  process.stderr.write(`clickhouse-server: ${why}; starting again\n`)
  running.exitNow(1)
}

// A killed parent can keep its id until it is reaped, but its child gets a new parent at once. For
// a process that is not its child the id itself is checked.
function watchParent(parentPid: number): void {
  const isChild = process.ppid === parentPid
  setInterval(() => {
    if (isChild ? process.ppid !== parentPid : !isAlive(parentPid)) stop()
  }, parentCheckMs)
}

// The engine logs every failed query of a client as an error with a stack trace, so these levels
// are shown only at `debug` and `trace`.
function toEngineLogLevel(level: string | undefined): string {
  return level === 'debug' || level === 'trace' ? level : 'critical'
}

/** A JSON list of users in addition to `default`, which the stack creates for its processes. */
function readUsers(text: string | undefined): EngineUser[] {
  return text ? (JSON.parse(text) as EngineUser[]) : []
}

function fail(message: string): never {
  process.stderr.write(`clickhouse-server: ${message}\n`)
  process.exit(1)
}

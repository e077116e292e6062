// The three embedded servers of the local stack, each with its launch spec and its readiness check.

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { toRole } from '#shared/io/postgres/postgres-roles.ts'
import { chooseIsolation, isolate, isolationNotes } from '../clickhouse/isolation.ts'
import { requirePinnedEngine } from '../clickhouse/pinned-engine.ts'
import { findNatsServer, natsGreets, natsLaunchSpec, natsUrl } from '../nats/nats-server.ts'
import {
  ensureDatabase,
  postgresAnswers,
  postgresLaunchSpec,
  postgresUrl,
  preparePostgres,
} from '../postgres/postgres-server.ts'
import type { Launcher } from './launch.ts'
import { isListenedOn } from './ports/ports.ts'
import {
  clickhousePasswords,
  natsPasswords,
  postgresPasswords,
  toEngineUsers,
} from './server-passwords.ts'
import type { Env, LocalSettings, ServerName } from './settings.ts'
import type { ChildName, Secrets } from './state-files.ts'
import type { ChildSpec } from './supervised-child.ts'

const DATABASE = 'device_intelligence'
const USER = 'di'
/** Against a hang only: a loaded machine takes minutes. */
const READY_LIMIT_MS = 300_000
/**
 * After a failed write, as on a full disk, nats-server rejects every publish to the stream until
 * it restarts, even when the disk has space again.
 */
export const natsStoreBroken = /critical write error/i
/** The engine does file I/O on this pool, for which the default of four threads is too few. */
const CLICKHOUSE_IO_THREADS = '16'

export type EmbeddedServer = {
  /** The URL with the credentials of the operator, who has all rights. */
  url: string
  /** The URL with the credentials of one process, where it has its own user. */
  urlOf?: (process: ProcessName) => string
  /** Program and version, for the terminal. */
  what: string
  spec: ChildSpec
  /** Runs once when the server is ready. */
  afterReady: () => Promise<void>
}

export type ServerContext = {
  settings: LocalSettings
  secrets: Secrets
  launcher: Launcher
  ports: Record<ServerName, number>
  /** The ports of the engines, where there are several; the first is that of `clickhouse`. */
  shards: readonly ShardPorts[]
  report: (name: ServerName, text: string) => void
  signal: AbortSignal
}

export type ShardPorts = { http: number; native: number }

const nothing = async () => undefined

export async function embeddedNats(context: ServerContext): Promise<EmbeddedServer> {
  const { settings, secrets, ports, signal } = context
  const binary = await findNatsServer({
    env: settings.env,
    projectDir: settings.projectDir,
    report: (text) => context.report('nats', text),
    signal,
  })
  const server = {
    binary,
    dir: join(settings.dataDir, 'nats'),
    port: ports.nats,
    passwords: natsPasswords(secrets),
  }
  return {
    url: natsUrl(server),
    urlOf: (process) => natsUrl(server, process),
    what: `nats-server ${binary.version}, JetStream synced before every ack`,
    spec: {
      name: 'nats',
      launchSpec: () => natsLaunchSpec(server, settings.env),
      isReady: () => natsGreets(server.port),
      readyLimitMs: READY_LIMIT_MS,
      stopSignal: 'SIGTERM',
      killOnOutput: natsStoreBroken,
    },
    afterReady: nothing,
  }
}

export async function embeddedPostgres(context: ServerContext): Promise<EmbeddedServer> {
  const { settings, secrets, ports, launcher, signal } = context
  const { env } = settings
  const server = await preparePostgres({
    launcher,
    env,
    dir: join(settings.dataDir, 'postgres'),
    port: ports.postgres,
    user: USER,
    password: secrets.postgres_password,
    signal,
  })
  const adminUrl = postgresUrl(server, 'postgres')
  const passwords = postgresPasswords(secrets)
  return {
    url: postgresUrl(server, DATABASE),
    urlOf: (process) => {
      const password = passwords[process]
      const account = password ? { user: toRole(DATABASE, process), password } : {}
      return postgresUrl({ ...server, ...account }, DATABASE)
    },
    what: 'PostgreSQL 18, embedded',
    spec: {
      name: 'postgres',
      launchSpec: () => postgresLaunchSpec(server, env),
      isReady: () => postgresAnswers(adminUrl),
      readyLimitMs: READY_LIMIT_MS,
      stopSignal: 'SIGINT',
    },
    afterReady: () => ensureDatabase(adminUrl, DATABASE),
  }
}

export async function embeddedClickHouse(context: ServerContext): Promise<EmbeddedServer> {
  const { settings, report } = context
  requirePinnedEngine(settings.projectDir)
  const note = isolationNotes[chooseIsolation(settings.dataDir, settings.env.PATH)]
  if (note !== null) report('clickhouse', note)
  return toEngine(context, 0)
}

/** The engines after the first. */
export function embeddedShards(context: ServerContext): EmbeddedServer[] {
  return context.shards.slice(1).map((_, index) => toEngine(context, index + 1))
}

/** The name of an engine, as of its process, its folder and its log. */
const toEngineName = (shard: number): ChildName =>
  shard === 0 ? 'clickhouse' : `clickhouse-${shard + 1}`

function toEngine(context: ServerContext, shard: number): EmbeddedServer {
  const { settings, secrets, ports, shards } = context
  const script = fileURLToPath(new URL('../clickhouse/clickhouse-server.ts', import.meta.url))
  const address = `127.0.0.1:${shards[shard]?.http ?? ports.clickhouse}`
  const name = toEngineName(shard)
  const natives = shards.map(({ native }) => native)
  const isIsolated = chooseIsolation(settings.dataDir, settings.env.PATH) === 'namespace'
  const own = [
    ...[process.execPath, script, '--path', join(settings.dataDir, name), '--listen', address],
    ...['--parent-pid', `${process.pid}`],
    ...(isIsolated ? ['--isolated'] : []),
    ...(natives.length === 0 ? [] : ['--shards', `${natives}`, '--shard', `${shard + 1}`]),
  ]
  const place = { dataDir: settings.dataDir, name, pathVar: settings.env.PATH }
  const [command, ...args] = isIsolated ? isolate(own, place) : own
  return {
    url: `http://default:${secrets.clickhouse_password}@${address}/${DATABASE}`,
    urlOf: (process) => {
      const own = clickhousePasswords(secrets)[process]
      const user = own === undefined ? 'default' : process
      const password = own ?? secrets.clickhouse_password
      return `http://${user}:${password}@${address}/${DATABASE}`
    },
    what: 'ClickHouse engine (chdb), embedded',
    spec: {
      name,
      launchSpec: () => ({
        command: command!,
        args,
        env: {
          ...pickEngineEnv(settings.env),
          CLICKHOUSE_PASSWORD: secrets.clickhouse_password,
          ENGINE_USERS: JSON.stringify(toEngineUsers(secrets, DATABASE)),
          UV_THREADPOOL_SIZE: CLICKHOUSE_IO_THREADS,
        },
        orphanSignal: 'SIGTERM',
      }),
      isReady: () => answersOk(`http://${address}/ping`),
      readyLimitMs: READY_LIMIT_MS,
      stopSignal: 'SIGTERM',
    },
    afterReady: nothing,
  }
}

/** SQL functions can read the engine's environment, so it holds no secret of another process. */
function pickEngineEnv(env: Env): Env {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LOG_LEVEL', 'NODE_COMPILE_CACHE', 'NODE_OPTIONS']
  return Object.fromEntries(names.map((name) => [name, env[name]]))
}

/** True when a GET of a server on this machine answers 200 within two seconds. */
export async function answersOk(url: string): Promise<boolean> {
  if (!(await isListenedOn(Number(new URL(url).port)))) return false
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

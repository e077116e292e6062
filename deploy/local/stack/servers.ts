// The three servers of the local stack: those that run already are taken as they are, the others
// are embedded. Each is described as a part: what to launch, and how to know that it is ready.

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { ProcessName } from '#shared/core/base/process-rights.ts'
import { toRole } from '#shared/io/postgres/postgres-roles.ts'
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
import type { PartSpec } from './part.ts'
import {
  clickhousePasswords,
  natsPasswords,
  postgresPasswords,
  toEngineUsers,
} from './server-passwords.ts'
import type { Env, LocalSettings, ServerName } from './settings.ts'
import type { Secrets } from './state-files.ts'

const DATABASE = 'device_intelligence'
const USER = 'di'
const READY_LIMIT_MS = 60_000
/**
 * After a write that failed, as on a full disk, the server takes the stream's store for broken
 * until its next start: it answers no publish any more, also when there is room again.
 */
export const natsLostWhen = /critical write error/i
/** The engine does its file work on this pool; four threads, the default, starve it. */
const CLICKHOUSE_IO_THREADS = '16'

export type EmbeddedServer = {
  /** Of the operator, who may do everything. */
  url: string
  /** Of a process that has a user of its own. */
  urlOf?: (process: ProcessName) => string
  /** For people: program and version. */
  what: string
  part: PartSpec
  /** What is left to do once the server answers. */
  afterReady: () => Promise<void>
}

export type ServerContext = {
  settings: LocalSettings
  secrets: Secrets
  launcher: Launcher
  ports: Record<ServerName, number>
  say: (name: ServerName, text: string) => void
  signal: AbortSignal
}

const nothing = async () => undefined

export async function embeddedNats(context: ServerContext): Promise<EmbeddedServer> {
  const { settings, secrets, ports, signal } = context
  const binary = await findNatsServer({
    env: settings.env,
    projectDir: settings.projectDir,
    say: (text) => context.say('nats', text),
    signal,
  })
  if (!binary.syncAlways) {
    context.say(
      'nats',
      `warning: nats-server ${binary.version} cannot sync before it acknowledges (2.10 can): ` +
        'an accepted event survives a crash of any process, but not a power cut',
    )
  }
  const server = {
    binary,
    dir: join(settings.dataDir, 'nats'),
    port: ports.nats,
    passwords: natsPasswords(secrets),
  }
  const sync = binary.syncAlways ? 'synced before every ack' : 'NOT synced before acks'
  return {
    url: natsUrl(server),
    urlOf: (process) => natsUrl(server, process),
    what: `nats-server ${binary.version}, JetStream ${sync}`,
    part: {
      name: 'nats',
      launchSpec: () => natsLaunchSpec(server, settings.env),
      isReady: () => natsGreets(server.port),
      readyLimitMs: READY_LIMIT_MS,
      stopSignal: 'SIGTERM',
      lostWhen: natsLostWhen,
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
    part: {
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
  const { settings, secrets, ports } = context
  requirePinnedEngine(settings.projectDir)
  const script = fileURLToPath(new URL('../clickhouse/clickhouse-server.ts', import.meta.url))
  const address = `127.0.0.1:${ports.clickhouse}`
  const args = [
    ...[script, '--path', join(settings.dataDir, 'clickhouse'), '--listen', address],
    ...['--parent-pid', `${process.pid}`],
  ]
  return {
    url: `http://default:${secrets.clickhouse_password}@${address}/${DATABASE}`,
    urlOf: (process) => {
      const own = clickhousePasswords(secrets)[process]
      const user = own === undefined ? 'default' : process
      const password = own ?? secrets.clickhouse_password
      return `http://${user}:${password}@${address}/${DATABASE}`
    },
    what: 'ClickHouse engine (chdb), embedded',
    part: {
      name: 'clickhouse',
      launchSpec: () => ({
        command: process.execPath,
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

/** The engine's functions may read its environment: no secret of another process is in it. */
function pickEngineEnv(env: Env): Env {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LOG_LEVEL', 'NODE_COMPILE_CACHE', 'NODE_OPTIONS']
  return Object.fromEntries(names.map((name) => [name, env[name]]))
}

/** True when a GET answers 200 within two seconds. */
export async function answersOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

// The five services and the migrations, as the local stack runs them: the same programs and
// environment variables as in production, on addresses of this machine.

import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'

import {
  type ProcessName,
  processPermissions,
  secretVariables,
} from '#shared/core/permissions/process-permissions.ts'
import { toDerivedKeys } from '#shared/io/keys/process-keys.ts'
import { chooseStreamBytes } from '../nats/stream-size.ts'
import { demoNetworkEnv } from '../network/demo-network.ts'
import { openTestRoots } from '../test-roots.ts'
import type { ChildLog } from './child-log.ts'
import { endChild, exitOf, type LaunchSpec } from './launch.ts'
import { postgresPasswords } from './server-passwords.ts'
import { answersOk } from './servers.ts'
import {
  type Env,
  internalAddress,
  type LocalSettings,
  listenAddress,
  listenEnv,
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServerName,
  type ServiceName,
  StartError,
} from './settings.ts'
import type { Secrets } from './state-files.ts'
import type { ChildSpec } from './supervised-child.ts'

/** Against a hang only: a loaded machine takes minutes. */
const READY_LIMIT_MS = 300_000
const MIGRATE_LIMIT_MS = 300_000

/**
 * Node options by service, the same as in compose.yaml. They keep V8's heap close to its used size:
 * without them a scorer at 600 events/s had 330 MB, of which it used 85. The scorer's heap may grow
 * further, because garbage collection took a third of its CPU during a backlog. There is no limit
 * on the whole heap, because the clients choose the size of a decoded batch.
 */
export const nodeOptions: Record<ServiceName, string[]> = {
  ingest: ['--max-semi-space-size=16', '--heap-growing-percent=60'],
  api: ['--max-semi-space-size=8', '--heap-growing-percent=60'],
  console: ['--max-semi-space-size=8'],
  scorer: ['--max-semi-space-size=16', '--heap-growing-percent=150'],
  delivery: ['--max-semi-space-size=4', '--heap-growing-percent=60'],
}

/** The same as in the Dockerfile, which explains it. */
export const mallocEnv = { MALLOC_ARENA_MAX: '2' }

/** The environment of all processes; each gets the secrets of its own permissions. */
export function serviceEnv(
  settings: LocalSettings,
  secrets: Secrets,
  urls: Record<ServerName, string>,
  shardUrls: readonly string[],
): Env {
  const masterKey = settings.env.MASTER_KEY || secrets.master_key
  const previous = settings.env.MASTER_KEY_PREVIOUS
  const own: Env = {
    NATS_URL: urls.nats,
    POSTGRES_URL: urls.postgres,
    CLICKHOUSE_URL: urls.clickhouse,
    ...(settings.external.clickhouse ? {} : { CLICKHOUSE_CLUSTER: toCluster(shardUrls) }),
    CLICKHOUSE_EMBEDDED: settings.external.clickhouse ? '0' : '1',
    MASTER_KEY: masterKey,
    ...toDerivedKeys(masterKey, previous || undefined),
    ADMIN_TOKEN: settings.env.ADMIN_TOKEN || secrets.admin_token,
    PARENT_PID: `${process.pid}`,
    // The stack has no balancer, and its supervisor ends a process after ten seconds.
    STOP_DELAY_MS: '0',
  }
  for (const name of SERVICE_NAMES) Object.assign(own, listenEnv(settings, name))
  const streams = Number(settings.env.TELEMETRY_STREAMS || 1)
  const streamBytes = settings.external.nats
    ? undefined
    : chooseStreamBytes(settings.dataDir, streams)
  const defaults = {
    ALLOW_PRIVATE_WEBHOOKS: '1',
    ATTESTATION_TEST_ROOTS_FILE: openTestRoots(settings.dataDir),
    PUBLIC_INGEST_URL: `http://${listenAddress(settings, 'ingest')}`,
    ...mallocEnv,
    ...demoNetworkEnv(settings, Date.now()),
    ...(streamBytes === undefined ? {} : { TELEMETRY_STREAM_MAX_BYTES: `${streamBytes}` }),
  }
  const env: Env = { ...defaults, ...settings.env, ...own }
  // `NAME_FILE` would override the value that the stack sets.
  for (const name of Object.keys(own)) delete env[`${name}_FILE`]
  return env
}

/** Where the servers are, and the URLs with a process's own user of a server, if it has users. */
type ServerAccess = {
  secrets: Secrets
  urls: Record<ServerName, string>
  urlOf: Partial<Record<ServerName, (process: ProcessName) => string>>
}

/**
 * The environment of one process: its own server users, and only the URLs and secrets it may use.
 */
export function toProcessEnv(access: ServerAccess, env: Env, process: ProcessName): Env {
  const own: Env = { ...env }
  for (const name of SERVER_NAMES) {
    const variable = `${name.toUpperCase()}_URL`
    if (processPermissions[process][name] === null) delete own[variable]
    else own[variable] = access.urlOf[name]?.(process) ?? access.urls[name]
  }
  if (processPermissions[process].clickhouse === null) delete own.CLICKHOUSE_CLUSTER
  for (const secret of secretVariables) {
    if (!processPermissions[process].secrets.includes(secret)) delete own[secret]
  }
  if (process === 'migrate' && access.urlOf.postgres !== undefined) {
    own.POSTGRES_ROLE_PASSWORDS = JSON.stringify(postgresPasswords(access.secrets))
  }
  return own
}

const toCluster = (shardUrls: readonly string[]) =>
  shardUrls.map((url) => new URL(url).origin).join(';')

/** @param onMessage opens a channel to the process */
export function serviceSpec(
  settings: LocalSettings,
  name: ServiceName,
  env: Env,
  onMessage?: LaunchSpec['onMessage'],
): ChildSpec {
  // The api's own document has a relative address, which also holds behind a proxy.
  const defaults =
    name === 'console' ? { PUBLIC_API_URL: `http://${listenAddress(settings, 'api')}` } : {}
  const own: Env = { ...defaults, ...env }
  return {
    name,
    launchSpec: () => ({
      ...nodeSpec([...nodeOptions[name], join(settings.servicesDir, name, 'main.ts')], own),
      ...(onMessage === undefined ? {} : { onMessage }),
    }),
    isReady: () => answersOk(`http://${internalAddress(settings, name)}/readyz`),
    readyLimitMs: READY_LIMIT_MS,
    stopSignal: 'SIGTERM',
  }
}

function nodeSpec(args: string[], env: Env): LaunchSpec {
  return { command: process.execPath, args, env, orphanSignal: 'SIGTERM' }
}

/** Runs the migrations. Throws a StartError with their last log lines when they fail. */
export async function runMigrations(options: {
  settings: LocalSettings
  env: Env
  launch: (spec: LaunchSpec) => ChildProcess
  log: ChildLog
  signal: AbortSignal
}): Promise<void> {
  const { log, signal } = options
  const file = join(options.settings.servicesDir, 'migrate', 'main.ts')
  const child = options.launch(nodeSpec([file], options.env))
  log.follow(child.stdout)
  log.follow(child.stderr)
  let failure = ''
  child.once('error', (error) => {
    failure = error.message
  })
  const stop = () => void endChild(child, { signal: 'SIGTERM', graceMs: 2_000 })
  const limit = setTimeout(stop, MIGRATE_LIMIT_MS)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const exit = await exitOf(child)
    if (exit.code === 0) return
    const how = failure || (exit.signal ? `signal ${exit.signal}` : `code ${exit.code}`)
    const lastLines = log.lastLines().map((line) => `  | ${line}`)
    throw new StartError([`the migrations failed (${how})`, ...lastLines].join('\n'))
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', stop)
  }
}

// Reads the environment variables of `npm start` and reports every mistake at once.

import { join, resolve } from 'node:path'
import { findPostgresUrlFault } from '#shared/io/process/server-addresses.ts'

export const SERVICE_NAMES = ['ingest', 'api', 'console', 'scorer', 'delivery'] as const
export type ServiceName = (typeof SERVICE_NAMES)[number]

export const SERVER_NAMES = ['nats', 'postgres', 'clickhouse'] as const
export type ServerName = (typeof SERVER_NAMES)[number]

/** Services with a public listener and an internal one for readiness and metrics. */
const PUBLIC_NAMES: readonly ServiceName[] = ['ingest', 'api', 'console']
/** The internal port of a service is its public port plus this. */
const INTERNAL_OFFSET = 10

const DEFAULT_PORT_BASE = 8080

const findUrlFault = (url: string) => (URL.canParse(url) ? null : 'is not a URL')

/** Each engine takes a few hundred MB of memory. */
const SHARDS_MAX = 8

export type Env = Record<string, string | undefined>

export type LocalSettings = {
  projectDir: string
  servicesDir: string
  dataDir: string
  /**
   * Service n of SERVICE_NAMES listens on port portBase + n of 127.0.0.1. A service with a public
   * listener serves readiness and metrics on portBase + 10 + n.
   */
  portBase: number
  /** The URLs of external servers; the other servers are embedded. */
  external: Partial<Record<ServerName, string>>
  /** How many embedded ClickHouse engines share the data; null for as many as the folder has. */
  shards: number | null
  env: Env
}

/** A mistake in the settings or on the machine, shown without a stack trace. */
export class StartError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StartError'
  }
}

/**
 * The settings in `env`.
 * @throws StartError naming every bad variable
 */
export function readSettings(options: {
  env: Env
  args?: readonly string[]
  projectDir: string
  servicesDir?: string
}): LocalSettings {
  const { env, projectDir } = options
  const problems: string[] = []
  const shards = readShards(options.args ?? [])
  if (shards === 'invalid') {
    problems.push(`the only option is --shards N, with N from 1 to ${SHARDS_MAX}`)
  }
  const external: LocalSettings['external'] = {}
  for (const name of SERVER_NAMES) {
    const url = env[`${name.toUpperCase()}_URL`]
    if (!url) continue
    const fault = name === 'postgres' ? findPostgresUrlFault(url) : findUrlFault(url)
    if (fault === null) external[name] = url
    else problems.push(`${name.toUpperCase()}_URL ${fault}`)
  }
  const portBase = env.PORT_BASE ? Number(env.PORT_BASE) : DEFAULT_PORT_BASE
  const last = 65_535 - INTERNAL_OFFSET - PUBLIC_NAMES.length + 1
  if (!Number.isInteger(portBase) || portBase < 1 || portBase > last) {
    problems.push(`PORT_BASE must be a whole number from 1 to ${last}, it is "${env.PORT_BASE}"`)
  }
  const embedded = SERVER_NAMES.filter((name) => external[name] === undefined)
  if (env.NODE_ENV === 'production' && embedded.length > 0 && env.ALLOW_EMBEDDED !== '1') {
    const missing = embedded.map((name) => `${name.toUpperCase()}_URL`).join(', ')
    problems.push(
      `NODE_ENV is production, but the local stack would start embedded servers: set ` +
        `${missing}, or ALLOW_EMBEDDED=1 to start them anyway`,
    )
  }
  if (typeof shards === 'number' && external.clickhouse !== undefined) {
    problems.push('--shards is for embedded engines, but CLICKHOUSE_URL names a server')
  }
  if (problems.length > 0 || shards === 'invalid') throw new StartError(problems.join('\n'))
  return {
    projectDir,
    servicesDir: options.servicesDir ?? join(projectDir, 'services'),
    // Relative to the folder where npm was called; npm itself changes to the project folder.
    dataDir: env.DATA_DIR ? resolve(env.INIT_CWD ?? '', env.DATA_DIR) : join(projectDir, '.data'),
    portBase,
    external,
    shards,
    env,
  }
}

function readShards(args: readonly string[]): number | 'invalid' | null {
  const [option, text, ...others] = args.flatMap((one) => one.split('='))
  if (option === undefined) return null
  const shards = Number(text)
  const isValid = option === '--shards' && others.length === 0 && Number.isInteger(shards)
  return isValid && shards >= 1 && shards <= SHARDS_MAX ? shards : 'invalid'
}

/** The address of each service: `host:port`. */
export function listenAddress(settings: LocalSettings, name: ServiceName): string {
  return `127.0.0.1:${settings.portBase + SERVICE_NAMES.indexOf(name)}`
}

/** The address of a service's readiness and metrics: `host:port`. */
export function internalAddress(settings: LocalSettings, name: ServiceName): string {
  if (!PUBLIC_NAMES.includes(name)) return listenAddress(settings, name)
  return `127.0.0.1:${settings.portBase + INTERNAL_OFFSET + SERVICE_NAMES.indexOf(name)}`
}

/** The environment variables with a service's addresses. */
export function listenEnv(settings: LocalSettings, name: ServiceName): Env {
  const variable = name.toUpperCase()
  const listen = { [`${variable}_LISTEN`]: listenAddress(settings, name) }
  if (!PUBLIC_NAMES.includes(name)) return listen
  return { ...listen, [`${variable}_INTERNAL_LISTEN`]: internalAddress(settings, name) }
}

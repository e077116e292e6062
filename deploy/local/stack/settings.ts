// Reads what `npm start` can be told by environment variables, and refuses with every mistake
// listed at once.

import { join, resolve } from 'node:path'

export const SERVICE_NAMES = ['ingest', 'api', 'console', 'scorer', 'delivery'] as const
export type ServiceName = (typeof SERVICE_NAMES)[number]

export const SERVER_NAMES = ['nats', 'postgres', 'clickhouse'] as const
export type ServerName = (typeof SERVER_NAMES)[number]

/** Those with a public listener and, beside it, an internal one for readiness and metrics. */
const PUBLIC_NAMES: readonly ServiceName[] = ['ingest', 'api', 'console']
/** The internal listener of a service is this far above its public one. */
const INTERNAL_OFFSET = 10

const DEFAULT_PORT_BASE = 8080

export type Env = Record<string, string | undefined>

export type LocalSettings = {
  projectDir: string
  servicesDir: string
  dataDir: string
  /**
   * Service n of SERVICE_NAMES listens on portBase + n of 127.0.0.1, for readiness and metrics on
   * portBase + 10 + n where it has a public listener.
   */
  portBase: number
  /** Servers that run already; the others are embedded. */
  external: Partial<Record<ServerName, string>>
  env: Env
}

/** Thrown for mistakes of the person who starts the stack: shown without a stack trace. */
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
  projectDir: string
  servicesDir?: string
}): LocalSettings {
  const { env, projectDir } = options
  const problems: string[] = []
  const external: LocalSettings['external'] = {}
  for (const name of SERVER_NAMES) {
    const url = env[`${name.toUpperCase()}_URL`]
    if (!url) continue
    if (URL.canParse(url)) external[name] = url
    else problems.push(`${name.toUpperCase()}_URL is not a URL`)
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
      `NODE_ENV is production, where the embedded servers of the local stack have no place: set ` +
        `${missing}, or ALLOW_EMBEDDED=1 to run them all the same`,
    )
  }
  if (problems.length > 0) throw new StartError(problems.join('\n'))
  return {
    projectDir,
    servicesDir: options.servicesDir ?? join(projectDir, 'services'),
    // Relative to where npm was called, as for the command line; npm itself moves to the project.
    dataDir: env.DATA_DIR ? resolve(env.INIT_CWD ?? '', env.DATA_DIR) : join(projectDir, '.data'),
    portBase,
    external,
    env,
  }
}

/** The address of each service: `host:port`. */
export function listenAddress(settings: LocalSettings, name: ServiceName): string {
  return `127.0.0.1:${settings.portBase + SERVICE_NAMES.indexOf(name)}`
}

/** Where readiness and metrics of a service are: `host:port`. */
export function internalAddress(settings: LocalSettings, name: ServiceName): string {
  if (!PUBLIC_NAMES.includes(name)) return listenAddress(settings, name)
  return `127.0.0.1:${settings.portBase + INTERNAL_OFFSET + SERVICE_NAMES.indexOf(name)}`
}

/** The environment variables that tell a service its addresses. */
export function listenEnv(settings: LocalSettings, name: ServiceName): Env {
  const variable = name.toUpperCase()
  const listen = { [`${variable}_LISTEN`]: listenAddress(settings, name) }
  if (!PUBLIC_NAMES.includes(name)) return listen
  return { ...listen, [`${variable}_INTERNAL_LISTEN`]: internalAddress(settings, name) }
}

// The local stack from start to end: servers in parallel, then migrations, then the five processes
// in parallel, then the demo tenant; and everything back in the opposite order. Whatever fails on
// the way up takes down what has been started, so a failed start leaves nothing running.

import { join } from 'node:path'
import {
  type ProcessName,
  processRights,
  secretVariables,
} from '#shared/core/base/process-rights.ts'
import { isAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { compiledFolder } from '#shared/io/process/cache-folder.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type AnalystProxy, openAnalystProxy } from '../clickhouse/analyst-proxy.ts'
import { ensureDemoTenant } from '../demo-tenant.ts'
import { type DataLock, endLeftovers, lockDataDir } from './data-lock.ts'
import { type Guard, startGuard } from './guard-client.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { createPart, type Part, type PartSpec } from './part.ts'
import {
  openPartLog,
  type PartLog,
  showJsonWarnings,
  showNatsWarnings,
  showPostgresFailures,
} from './part-log.ts'
import { choosePort, isPortFree } from './ports.ts'
import type { Screen } from './screen.ts'
import { postgresPasswords } from './server-passwords.ts'
import {
  type EmbeddedServer,
  embeddedClickHouse,
  embeddedNats,
  embeddedPostgres,
  type ServerContext,
} from './servers.ts'
import { runMigrations, serviceEnv, servicePart } from './services.ts'
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
import {
  type DemoTenant,
  keepDemoTenant,
  openDataDir,
  openSecrets,
  type PartName,
  readJson,
  removeStackFile,
  type Secrets,
  type StackFile,
  stackFilePath,
  writeJson,
} from './state-files.ts'

/** How long the processes, and then the servers, get to end by themselves. Together below 10 s. */
const STOP = { servicesMs: 5_500, serversMs: 2_500 }
/** When nobody is left to wait for the end, it comes within two seconds. */
const HURRIED_STOP = { servicesMs: 800, serversMs: 500 }

const TO_SHOW: Record<ServerName, (line: string) => string | null> = {
  nats: showNatsWarnings,
  postgres: showPostgresFailures,
  clickhouse: showJsonWarnings,
}

export type RunningStack = {
  urls: Record<PartName, string>
  /** The demo tenant's credentials when they were made in this start. */
  newDemo: DemoTenant | null
  stop: (options?: { hurried: boolean }) => Promise<void>
  /** Kills every child at once. */
  kill: () => void
}

type Crew = {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
  secrets: Secrets
  lock: DataLock
  guard: Guard
  launcher: Launcher
  parts: Map<PartName, Part>
  logs: PartLog[]
  urls: Record<PartName, string>
  /** The address of a server with the user of one process, where each has its own. */
  urlOf: Partial<Record<ServerName, (process: ProcessName) => string>>
  /** Where analysts ask the embedded ClickHouse; null beside somebody else's. */
  analysts: AnalystProxy | null
  /** From here on stack.json exists and follows every new process id. */
  published: boolean
  stopping: boolean
}

/**
 * Starts everything. `onStoppable` hands out the stop functions before anything runs, so that a
 * start can be called off at any moment.
 */
export async function startStack(options: {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
  onStoppable: (stack: Pick<RunningStack, 'stop' | 'kill'>) => void
}): Promise<RunningStack> {
  const crew = await openCrew(options)
  const { settings } = crew
  let stopped: Promise<void> | undefined
  const stop = (how?: { hurried: boolean }) => {
    stopped ??= stopCrew(crew, how?.hurried ? HURRIED_STOP : STOP)
    return stopped
  }
  const kill = () => {
    for (const part of crew.parts.values()) void part.stop(0)
  }
  options.onStoppable({ stop, kill })
  try {
    const env = await startServers(crew)
    if (settings.external.clickhouse === undefined) await openAnalysts(crew, env)
    await startServices(crew, env)
    const newDemo = await makeDemoTenant(crew, env)
    crew.published = true
    publish(crew)
    return { urls: crew.urls, newDemo, stop, kill }
  } catch (error) {
    await stop()
    throw error
  }
}

function withCompileCache(settings: LocalSettings): LocalSettings {
  const folder = compiledFolder(settings.env, settings.projectDir)
  return { ...settings, env: { NODE_COMPILE_CACHE: folder, ...settings.env } }
}

async function openCrew(options: {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
}): Promise<Crew> {
  const { screen, signal } = options
  const settings = withCompileCache(options.settings)
  openDataDir(settings.dataDir)
  const lock = lockDataDir(settings.dataDir)
  try {
    for (const child of await endLeftovers(lock.leftovers)) {
      screen.part(child.name, `ended process ${child.pid}, left by a stack that crashed`)
    }
    removeStackFile(settings.dataDir)
    const secrets = openSecrets(settings.dataDir)
    await requireFreePorts(settings)
    const guard = startGuard(settings.env)
    const launcher = createLauncher({ pathVar: settings.env.PATH, onLaunch: guard.add })
    const urls = Object.fromEntries(
      SERVICE_NAMES.map((name) => [name, `http://${listenAddress(settings, name)}`]),
    ) as Record<PartName, string>
    return {
      settings,
      screen,
      signal,
      secrets,
      lock,
      guard,
      launcher,
      urls,
      urlOf: {},
      parts: new Map(),
      logs: [],
      analysts: null,
      published: false,
      stopping: false,
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function requireFreePorts(settings: LocalSettings): Promise<void> {
  const taken: string[] = []
  for (const name of SERVICE_NAMES) {
    for (const address of Object.values(listenEnv(settings, name))) {
      const port = Number(address?.split(':')[1])
      if (!(await isPortFree(port))) taken.push(`${port} (${name})`)
    }
  }
  if (taken.length === 0) return
  throw new StartError(
    `in use by another program: port ${taken.join(', ')}. ` +
      'Set PORT_BASE to n where n to n+4 and n+10 to n+12 are free, for example PORT_BASE=18080.',
  )
}

async function startServers(crew: Crew): Promise<Env> {
  const { settings, secrets, launcher, screen } = crew
  const stopTogether = new AbortController()
  const signal = AbortSignal.any([crew.signal, stopTogether.signal])
  const context: ServerContext = {
    settings,
    secrets,
    launcher,
    ports: await choosePorts(settings.dataDir),
    say: screen.part,
    signal,
  }
  const embed = { nats: embeddedNats, postgres: embeddedPostgres, clickhouse: embeddedClickHouse }
  const starts = SERVER_NAMES.map(async (name) => {
    const external = settings.external[name]
    const since = performance.now()
    if (external !== undefined) {
      crew.urls[name] = external
      screen.step(name, `the one of ${name.toUpperCase()}_URL`, since)
      return
    }
    const server: EmbeddedServer = await embed[name](context)
    signal.throwIfAborted()
    crew.urls[name] = server.url
    if (server.urlOf !== undefined) crew.urlOf[name] = server.urlOf
    await addPart(crew, server.part, TO_SHOW[name]).start(signal)
    await server.afterReady()
    screen.step(name, server.what, since)
  })
  await allOrNone(starts, stopTogether)
  return serviceEnv(settings, secrets, crew.urls)
}

/** In this process, so that it outlives any end of the engine; the console tells its address. */
async function openAnalysts(crew: Crew, env: Env): Promise<void> {
  const file = join(crew.settings.dataDir, 'ports.json')
  const ports = readJson<Record<string, number>>(file) ?? {}
  const { analysts: preferred, ...others } = ports
  const port = await choosePort({ preferred, taken: new Set(Object.values(others)) })
  writeJson(file, { ...others, analysts: port })
  const postgres = createPostgres(env.POSTGRES_URL ?? '', {
    role: 'analysts',
    // Whatever fails is an answer; the terminal is not the place for it.
    log: createLog('analysts', 'silent'),
    connectionsMax: 2,
  })
  const proxy = await openAnalystProxy({
    port,
    clickhouseUrl: crew.urls.clickhouse,
    isAnalyst: (analyst) => isAnalyst(postgres, analyst),
  })
  crew.analysts = {
    url: proxy.url,
    close: async () => {
      await proxy.close()
      await postgres.close()
    },
  }
  env.ANALYSTS_URL = proxy.url
}

/** Waits for all; the first failure calls off the others and is the one reported. */
async function allOrNone(starts: Promise<void>[], calledOff: AbortController): Promise<void> {
  try {
    await Promise.all(starts)
  } catch (error) {
    calledOff.abort()
    await Promise.allSettled(starts)
    throw error
  }
}

async function choosePorts(dataDir: string): Promise<Record<ServerName, number>> {
  const file = join(dataDir, 'ports.json')
  const last = readJson<Partial<Record<ServerName, number>>>(file) ?? {}
  const ports = {} as Record<ServerName, number>
  for (const name of SERVER_NAMES) {
    const taken = new Set(Object.values(ports))
    ports[name] = await choosePort({ preferred: last[name], taken })
  }
  writeJson(file, { ...last, ...ports })
  return ports
}

async function startServices(crew: Crew, env: Env): Promise<void> {
  const { settings, screen } = crew
  crew.signal.throwIfAborted()
  const since = performance.now()
  const launch: Launcher['launch'] = (spec) => {
    const child = crew.launcher.launch(spec)
    child.once('exit', () => crew.guard.remove(child.pid as number))
    return child
  }
  const log = addLog(crew, 'migrate', showJsonWarnings)
  await runMigrations({
    settings,
    env: toProcessEnv(crew, env, 'migrate'),
    launch,
    log,
    signal: crew.signal,
  })
  screen.step('migrations', 'applied', since)

  const stopTogether = new AbortController()
  const signal = AbortSignal.any([crew.signal, stopTogether.signal])
  const starts = SERVICE_NAMES.map(async (name: ServiceName) => {
    const begun = performance.now()
    const onMessage = name === 'console' ? keepRotated(crew) : undefined
    const part = servicePart(settings, name, toProcessEnv(crew, env, name), onMessage)
    await addPart(crew, part, showJsonWarnings).start(signal)
    screen.step(name, crew.urls[name], begun)
  })
  await allOrNone(starts, stopTogether)
}

/** The environment of one process: its own users of the servers, and no address it may not use. */
function toProcessEnv(crew: Crew, env: Env, process: ProcessName): Env {
  const own: Env = { ...env }
  for (const name of SERVER_NAMES) {
    const variable = `${name.toUpperCase()}_URL`
    if (processRights[process][name] === null) delete own[variable]
    else own[variable] = crew.urlOf[name]?.(process) ?? crew.urls[name]
  }
  for (const secret of secretVariables) {
    if (!processRights[process].secrets.includes(secret)) delete own[secret]
  }
  if (process === 'migrate' && crew.urlOf.postgres !== undefined) {
    own.POSTGRES_ROLE_PASSWORDS = JSON.stringify(postgresPasswords(crew.secrets))
  }
  return own
}

async function makeDemoTenant(crew: Crew, env: Env): Promise<DemoTenant | null> {
  const since = performance.now()
  const made = await ensureDemoTenant({
    consoleUrl: crew.urls.console,
    adminToken: env.ADMIN_TOKEN ?? '',
    known: crew.secrets.demo,
    ownDatabase: crew.settings.external.postgres === undefined,
    signal: crew.signal,
  })
  crew.secrets.admin_token = env.ADMIN_TOKEN ?? ''
  if (made === null) return null
  crew.secrets.demo = made
  keepDemoTenant(crew.settings.dataDir, made)
  crew.screen.step('demo', 'sandbox tenant made', since)
  return made
}

/** The console says what a rotation made of the demo tenant's credentials, before it answers. */
function keepRotated(crew: Crew): (message: unknown) => object {
  return (message) => {
    const { demo } = message as { demo?: Partial<DemoTenant> }
    const known = crew.secrets.demo
    if (known !== undefined && demo?.tenant_id === known.tenant_id) {
      // What was not rotated is left out.
      crew.secrets.demo = { ...known, ...demo }
      keepDemoTenant(crew.settings.dataDir, crew.secrets.demo)
      if (crew.published) publish(crew)
    }
    return { type: 'kept' }
  }
}

function addLog(crew: Crew, name: string, toShow: (line: string) => string | null): PartLog {
  const log = openPartLog({
    file: join(crew.settings.dataDir, 'logs', `${name}.log`),
    toShow,
    // What is said on the way down is expected; it is in the log files.
    show: (line) => (crew.stopping ? undefined : crew.screen.part(name, line)),
  })
  crew.logs.push(log)
  return log
}

function addPart(crew: Crew, spec: PartSpec, toShow: (line: string) => string | null): Part {
  const part = createPart(spec, {
    launch: crew.launcher.launch,
    log: addLog(crew, spec.name, toShow),
    tell: (line) => crew.screen.part(spec.name, line),
    onPid: (pid, state) => {
      if (state === 'gone') return crew.guard.remove(pid)
      crew.lock.note(spec.name, pid, spec.stopSignal)
      if (crew.published) publish(crew)
    },
  })
  crew.parts.set(spec.name, part)
  return part
}

function publish(crew: Crew): void {
  const pids: StackFile['pids'] = {}
  for (const name of [...SERVER_NAMES, ...SERVICE_NAMES]) {
    const pid = crew.parts.get(name)?.pid()
    if (pid !== undefined) pids[name] = pid
  }
  const { demo } = crew.secrets
  const content: StackFile = {
    ...crew.urls,
    internal: internalUrls(crew.settings),
    admin_token: crew.secrets.admin_token,
    pids,
    ...(crew.analysts ? { analysts: crew.analysts.url } : {}),
    ...(demo ? { demo } : {}),
  }
  writeJson(stackFilePath(crew.settings.dataDir), content)
}

function internalUrls(settings: LocalSettings): StackFile['internal'] {
  const urls = SERVICE_NAMES.map((name) => [name, `http://${internalAddress(settings, name)}`])
  return Object.fromEntries(urls) as StackFile['internal']
}

async function stopCrew(crew: Crew, grace: typeof STOP): Promise<void> {
  crew.stopping = true
  const stopAll = (names: readonly PartName[], graceMs: number) =>
    Promise.all(names.map((name) => crew.parts.get(name)?.stop(graceMs)))
  await crew.analysts?.close()
  await stopAll(SERVICE_NAMES, grace.servicesMs)
  await stopAll(SERVER_NAMES, grace.serversMs)
  await crew.guard.close()
  for (const log of crew.logs) log.close()
  crew.lock.release()
}

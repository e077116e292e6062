// The life of the local stack: servers in parallel, then migrations, then the five services in
// parallel, then the demo tenant. It stops in the opposite order. A failed start stops everything
// that has started.

import { join } from 'node:path'
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { compiledFolder } from '#shared/io/process/cache-folder.ts'
import { type ConsoleCall, createConsoleCall } from '../console-call.ts'
import {
  type DemoHistory,
  HISTORY_TENANT,
  isHistoryWanted,
  startDemoHistory,
} from '../demo-history.ts'
import { ensureDemoTenant } from '../demo-tenant.ts'
import { type FirstSignIn, inviteFirstOperator } from '../first-operator.ts'
import { requireLocalPackages } from '../local-packages.ts'
import { demoNetworkFolder, usesDemoNetwork } from '../network/demo-network.ts'
import { needsSwitch, switchKeys } from '../switch-keys.ts'
import { testKeysPath } from '../test-roots.ts'
import { type Analysts, openAnalysts } from './analysts.ts'
import {
  type ChildLog,
  openChildLog,
  showJsonWarnings,
  showNatsWarnings,
  showPostgresFailures,
} from './child-log.ts'
import { completeClickhouse, completeStreams } from './complete-restore.ts'
import { ensureConsolePages } from './console-pages.ts'
import { type DataLock, endLeftovers, lockDataDir } from './data-lock.ts'
import { createLauncher, type Launcher } from './launch.ts'
import { choosePorts, chooseShardPorts, requireFreePorts } from './ports/server-ports.ts'
import type { Screen } from './screen.ts'
import {
  type EmbeddedServer,
  embeddedClickHouse,
  embeddedNats,
  embeddedPostgres,
  embeddedShards,
  type ServerContext,
} from './servers.ts'
import { runMigrations, serviceEnv, serviceSpec, toProcessEnv } from './services.ts'
import {
  type Env,
  internalAddress,
  type LocalSettings,
  listenAddress,
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServerName,
  type ServiceName,
} from './settings.ts'
import { type OrphanReaper, startOrphanReaper } from './start-orphan-reaper.ts'
import {
  type ChildName,
  type DemoTenant,
  openDataDir,
  openSecrets,
  removeStackFile,
  type Secrets,
  type StackFile,
  saveDemoTenant,
  stackFilePath,
  writeJson,
} from './state-files.ts'
import { type ChildSpec, type SupervisedChild, superviseChild } from './supervised-child.ts'

/** Time that the services, and then the servers, have to stop. The sum stays below 10 s. */
const STOP = { servicesMs: 5_500, serversMs: 2_500 }
/** After npm has ended, the stack stops within two seconds. */
const HURRIED_STOP = { servicesMs: 800, serversMs: 500 }
const HISTORY_STOP_MS = 500
/** A call that seals secrets again works for about 20 s, and then waits for the edges. */
const SWITCH_CALL_MS = 60_000

const TO_SHOW: Record<ServerName, (line: string) => string | null> = {
  nats: showNatsWarnings,
  postgres: showPostgresFailures,
  clickhouse: showJsonWarnings,
}

export type RunningStack = {
  urls: Record<ServiceName | ServerName, string>
  /** The engines of ClickHouse, where there are several. */
  shardUrls: readonly string[]
  /** The analysts' address of the embedded engine. */
  analystsUrl: string | null
  /** The demo tenant's credentials when they were created in this start. */
  newDemo: DemoTenant | null
  /** The link of the first administrator; null once there is an operator. */
  firstSignIn: FirstSignIn | null
  /** Starts to create the history of a new data folder. */
  makeHistory: () => void
  stop: (options?: { hurried: boolean }) => Promise<void>
  /** Kills every child at once. */
  kill: () => void
}

type Stack = {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
  secrets: Secrets
  lock: DataLock
  reaper: OrphanReaper
  launcher: Launcher
  children: Map<ChildName, SupervisedChild>
  logs: ChildLog[]
  urls: Record<ServiceName | ServerName, string>
  shardUrls: readonly string[]
  /**
   * The URL of a server with the credentials of one process, for servers with a user for each.
   */
  urlOf: Partial<Record<ServerName, (process: ProcessName) => string>>
  /** The analysts' address of the embedded ClickHouse; null with an external ClickHouse. */
  analysts: Analysts | null
  /** While a history is being created. */
  history: DemoHistory | null
  /** True once stack.json exists; each new process id then updates it. */
  published: boolean
  stopping: boolean
}

/**
 * Starts everything. Calls `onStoppable` before the first child runs, so that a start can be
 * cancelled at any time.
 */
export async function startStack(options: {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
  onStoppable: (stack: Pick<RunningStack, 'stop' | 'kill'>) => void
}): Promise<RunningStack> {
  const stack = await openStack(options)
  const { settings } = stack
  let stopped: Promise<void> | undefined
  const stop = (how?: { hurried: boolean }) => {
    stopped ??= stopStack(stack, how?.hurried ? HURRIED_STOP : STOP)
    return stopped
  }
  const kill = () => {
    for (const child of [...stack.children.values(), stack.history]) void child?.stop(0)
  }
  options.onStoppable({ stop, kill })
  try {
    const pages = ensureConsolePages(stack.screen, settings.projectDir)
    const env = await startServers(stack)
    // Analysts need one node: row policies do not reach other shards.
    if (settings.external.clickhouse === undefined && stack.shardUrls.length === 0) {
      stack.analysts = await openAnalysts({
        dataDir: settings.dataDir,
        clickhouseUrl: stack.urls.clickhouse,
        postgresUrl: env.POSTGRES_URL ?? '',
        stopping: () => stack.stopping,
      })
      env.ANALYSTS_URL = stack.analysts.url
    }
    await pages
    await startServices(stack, env)
    const call = createConsoleCall({
      consoleUrl: stack.urls.console,
      adminToken: env.ADMIN_TOKEN ?? '',
      signal: stack.signal,
    })
    stack.secrets.admin_token = env.ADMIN_TOKEN ?? ''
    const newDemo = await makeDemoTenant(stack, call)
    const isWanted = isHistoryWanted(settings, newDemo !== null)
    const firstSignIn = await inviteFirstOperator(call, isWanted ? HISTORY_TENANT : null)
    stack.published = true
    publish(stack)
    const makeHistory = () => beginHistory(stack, isWanted)
    const { urls, shardUrls } = stack
    const analystsUrl = stack.analysts?.url ?? null
    return { urls, shardUrls, analystsUrl, newDemo, firstSignIn, makeHistory, stop, kill }
  } catch (error) {
    await stop()
    throw error
  }
}

function withCompileCache(settings: LocalSettings): LocalSettings {
  const folder = compiledFolder(settings.env, settings.projectDir)
  return { ...settings, env: { NODE_COMPILE_CACHE: folder, ...settings.env } }
}

async function openStack(options: {
  settings: LocalSettings
  screen: Screen
  signal: AbortSignal
}): Promise<Stack> {
  const { screen, signal } = options
  const settings = withCompileCache(options.settings)
  openDataDir(settings.dataDir)
  const lock = lockDataDir(settings.dataDir)
  try {
    for (const child of await endLeftovers(lock.leftovers)) {
      screen.note(child.name, `stopped process ${child.pid}, left over from a crashed stack`)
    }
    removeStackFile(settings.dataDir)
    const secrets = openSecrets(settings.dataDir)
    requireLocalPackages(settings)
    await requireFreePorts(settings)
    const reaper = startOrphanReaper(settings.env)
    const launcher = createLauncher({ pathVar: settings.env.PATH, onLaunch: reaper.add })
    const urls = Object.fromEntries(
      SERVICE_NAMES.map((name) => [name, `http://${listenAddress(settings, name)}`]),
    ) as Stack['urls']
    return {
      settings,
      screen,
      signal,
      secrets,
      lock,
      reaper,
      launcher,
      urls,
      shardUrls: [],
      urlOf: {},
      children: new Map(),
      logs: [],
      analysts: null,
      history: null,
      published: false,
      stopping: false,
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function startServers(stack: Stack): Promise<Env> {
  const { settings, secrets, launcher, screen } = stack
  const stopTogether = new AbortController()
  const signal = AbortSignal.any([stack.signal, stopTogether.signal])
  const ports = await choosePorts(settings.dataDir)
  const context: ServerContext = {
    settings,
    secrets,
    launcher,
    ports,
    shards: await chooseShardPorts(settings, ports.clickhouse),
    report: screen.note,
    signal,
  }
  const startChild = async ({ spec, what, afterReady }: EmbeddedServer, server: ServerName) => {
    const since = performance.now()
    signal.throwIfAborted()
    await addChild(stack, spec, TO_SHOW[server]).start(signal)
    await afterReady()
    screen.step(spec.name, what, since)
  }
  const embed = { nats: embeddedNats, postgres: embeddedPostgres, clickhouse: embeddedClickHouse }
  const starts = SERVER_NAMES.map(async (name) => {
    const external = settings.external[name]
    if (external !== undefined) {
      stack.urls[name] = external
      screen.step(name, `external, from ${name.toUpperCase()}_URL`, performance.now())
      return
    }
    const server: EmbeddedServer = await embed[name](context)
    stack.urls[name] = server.url
    if (server.urlOf !== undefined) stack.urlOf[name] = server.urlOf
    await startChild(server, name)
  })
  const shards = embeddedShards(context)
  const others = shards.map((shard) => startChild(shard, 'clickhouse'))
  await allOrNone([...starts, ...others], stopTogether)
  if (shards.length > 0) stack.shardUrls = [stack.urls.clickhouse, ...shards.map(({ url }) => url)]
  return serviceEnv(settings, secrets, stack.urls, stack.shardUrls)
}

/** The first failure cancels the others and is thrown. */
async function allOrNone(starts: Promise<void>[], cancel: AbortController): Promise<void> {
  try {
    await Promise.all(starts)
  } catch (error) {
    cancel.abort()
    await Promise.allSettled(starts)
    throw error
  }
}

async function startServices(stack: Stack, env: Env): Promise<void> {
  const { settings, screen } = stack
  stack.signal.throwIfAborted()
  const since = performance.now()
  const launch: Launcher['launch'] = (spec) => {
    const child = stack.launcher.launch(spec)
    child.once('exit', () => stack.reaper.remove(child.pid as number))
    return child
  }
  if (await completeClickhouse(settings.dataDir, stack.urls.clickhouse)) {
    screen.step('restore', 'ClickHouse is restored', since)
  }
  const log = addLog(stack, 'migrate', showJsonWarnings)
  await runMigrations({
    settings,
    env: toProcessEnv(stack, env, 'migrate'),
    launch,
    log,
    signal: stack.signal,
  })
  screen.step('migrations', 'applied', since)
  const restored = await completeStreams(settings.dataDir, stack.urls.nats)
  if (restored !== null) {
    screen.step('restore', `${restored} messages of the streams are published again`, since)
  }

  const stopTogether = new AbortController()
  const signal = AbortSignal.any([stack.signal, stopTogether.signal])
  const start = async (name: ServiceName) => {
    const begun = performance.now()
    const onMessage = name === 'console' ? saveRotatedDemo(stack) : undefined
    const child = serviceSpec(settings, name, toProcessEnv(stack, env, name), onMessage)
    await addChild(stack, child, showJsonWarnings).start(signal)
    screen.step(name, stack.urls[name], begun)
  }
  const startAll = (names: readonly ServiceName[]) => allOrNone(names.map(start), stopTogether)
  if (!(await needsSwitch(toProcessEnv(stack, env, 'migrate').POSTGRES_URL ?? ''))) {
    return startAll(SERVICE_NAMES)
  }
  await startAll(['console'])
  const switching = performance.now()
  const access = { consoleUrl: stack.urls.console, adminToken: env.ADMIN_TOKEN ?? '' }
  await switchKeys(createConsoleCall({ ...access, signal, timeoutMs: SWITCH_CALL_MS }))
  // Said where it can be read: nothing brings the data back to the form before.
  const step = 'every process has its own; releases before cannot read this data any more'
  screen.step('keys', step, switching)
  await startAll(SERVICE_NAMES.filter((name) => name !== 'console'))
}

async function makeDemoTenant(stack: Stack, call: ConsoleCall): Promise<DemoTenant | null> {
  const since = performance.now()
  const made = await ensureDemoTenant(call, {
    known: stack.secrets.demo,
    ownDatabase: stack.settings.external.postgres === undefined,
  })
  if (made === null) return null
  stack.secrets.demo = made
  saveDemoTenant(stack.settings.dataDir, made)
  stack.screen.step('demo', 'sandbox tenant created', since)
  return made
}

function beginHistory(stack: Stack, isWanted: boolean): void {
  if (stack.stopping || !isWanted) return
  stack.history = startDemoHistory({
    settings: stack.settings,
    launch: stack.launcher.launch,
    log: addLog(stack, 'demo-history', showJsonWarnings),
    consoleUrl: stack.urls.console,
    onGone: stack.reaper.remove,
    report: (line) => (stack.stopping ? undefined : stack.screen.note('demo', line)),
  })
}

/** The console sends the demo tenant's new credentials after a rotation, before it responds. */
function saveRotatedDemo(stack: Stack): (message: unknown) => object {
  return (message) => {
    const { demo } = message as { demo?: Partial<DemoTenant> }
    const known = stack.secrets.demo
    if (known !== undefined && demo?.tenant_id === known.tenant_id) {
      // The message has only the rotated credentials.
      stack.secrets.demo = { ...known, ...demo }
      saveDemoTenant(stack.settings.dataDir, stack.secrets.demo)
      if (stack.published) publish(stack)
    }
    return { type: 'kept' }
  }
}

function addLog(stack: Stack, name: string, toShow: (line: string) => string | null): ChildLog {
  const log = openChildLog({
    file: join(stack.settings.dataDir, 'logs', `${name}.log`),
    toShow,
    // Messages during a stop are expected, so they go only to the log files.
    show: (line) => (stack.stopping ? undefined : stack.screen.note(name, line)),
  })
  stack.logs.push(log)
  return log
}

function addChild(
  stack: Stack,
  spec: ChildSpec,
  toShow: (line: string) => string | null,
): SupervisedChild {
  const child = superviseChild(spec, {
    launch: stack.launcher.launch,
    log: addLog(stack, spec.name, toShow),
    report: (line) => stack.screen.note(spec.name, line),
    onPid: (pid, state) => {
      if (state === 'gone') return stack.reaper.remove(pid)
      stack.lock.addChild(spec.name, pid, spec.stopSignal)
      if (stack.published) publish(stack)
    },
  })
  stack.children.set(spec.name, child)
  return child
}

function publish(stack: Stack): void {
  const pids: StackFile['pids'] = {}
  for (const [name, child] of stack.children) {
    const pid = child.pid()
    if (pid !== undefined) pids[name] = pid
  }
  const { demo } = stack.secrets
  const content: StackFile = {
    ...stack.urls,
    ...(stack.shardUrls.length > 0 ? { clickhouse_shards: [...stack.shardUrls] } : {}),
    internal: internalUrls(stack),
    admin_token: stack.secrets.admin_token,
    pids,
    attestation_keys_file: testKeysPath(stack.settings.dataDir),
    ...(usesDemoNetwork(stack.settings)
      ? { network_data: demoNetworkFolder(stack.settings.dataDir) }
      : {}),
    ...(stack.analysts ? { analysts: stack.analysts.url } : {}),
    ...(demo ? { demo } : {}),
  }
  writeJson(stackFilePath(stack.settings.dataDir), content)
}

function internalUrls({ settings, analysts }: Stack): StackFile['internal'] {
  const urls = SERVICE_NAMES.map((name) => [name, `http://${internalAddress(settings, name)}`])
  const services = Object.fromEntries(urls) as Record<ServiceName, string>
  return { ...services, ...(analysts ? { analysts: analysts.internalUrl } : {}) }
}

async function stopStack(stack: Stack, grace: typeof STOP): Promise<void> {
  stack.stopping = true
  const services = SERVICE_NAMES.flatMap((name) => stack.children.get(name) ?? [])
  const servers = [...stack.children.values()].filter((child) => !services.includes(child))
  await stack.history?.stop(HISTORY_STOP_MS)
  await stack.analysts?.close()
  await Promise.all(services.map((child) => child.stop(grace.servicesMs)))
  await Promise.all(servers.map((child) => child.stop(grace.serversMs)))
  await stack.reaper.close()
  for (const log of stack.logs) log.close()
  stack.lock.release()
}

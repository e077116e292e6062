/**
 * The whole service as the local stack runs it, supervisor included, but child by child: each
 * server can hang, be down for as long as needed, or have its disk filled. The supervisor restarts
 * what ends by itself, and restarts are counted.
 */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { openChildLog } from '../../../deploy/local/stack/child-log.ts'
import { createLauncher, sendSignal } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import {
  type EmbeddedServer,
  embeddedClickHouse,
  embeddedNats,
  embeddedPostgres,
  type ServerContext,
} from '../../../deploy/local/stack/servers.ts'
import { serviceEnv, serviceSpec, toProcessEnv } from '../../../deploy/local/stack/services.ts'
import {
  type Env,
  internalAddress,
  listenAddress,
  readSettings,
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServerName,
  type ServiceName,
} from '../../../deploy/local/stack/settings.ts'
import { openSecrets } from '../../../deploy/local/stack/state-files.ts'
import { type ChildSpec, superviseChild } from '../../../deploy/local/stack/supervised-child.ts'
import { callAdmin } from '../../support/http/tenant-client.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { freePortBase } from '../../support/process/stack.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'

export type ManagedChild = {
  /** Starts it. The supervisor restarts it until `down`. */
  start: () => Promise<void>
  /** kill -9 without a restart. */
  down: () => Promise<void>
  signal: (signal: NodeJS.Signals) => void
  /** Restarts by the supervisor. */
  restarts: () => number
}

export type OutageRig = {
  servers: Record<ServerName, ManagedChild>
  services: Record<ServiceName, ManagedChild>
  /** Of the services, without a slash at the end. */
  urls: Record<ServiceName, string>
  /** Of their internal listeners. */
  internalUrls: Record<ServiceName, string>
  /** Null when the servers use the machine's own disk. */
  disks: Record<ServerName, SmallDisk> | null
  nats: Nats
  postgres: Postgres
  clickhouse: Clickhouse
  /** Calls the admin API. @throws on anything but a 2xx */
  admin: (path: string, body: object) => Promise<Record<string, unknown>>
  /** Lines of the supervisor. */
  reported: string[]
  stop: () => Promise<void>
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
/** Twice the size of the drill's data, and the server's own files. */
const disksMb: Record<ServerName, number> = { nats: 1_024, postgres: 768, clickhouse: 1_536 }

type OutageRigOptions = {
  /** Each server's data on a disk that can be filled; needs root. */
  smallDisks: boolean
  /** Further settings of the processes. */
  env?: Env
}

export async function startOutageRig(options: OutageRigOptions): Promise<OutageRig> {
  return await startWhole((closing, stop) => startAll(options, closing, stop))
}

async function startAll(
  { smallDisks, env: more = {} }: OutageRigOptions,
  closing: Closing,
  stop: () => Promise<void>,
): Promise<OutageRig> {
  const dir = mkdtempSync(join(tmpdir(), 'di-outages-'))
  closing.push(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }))
  const disks = smallDisks ? mountAll(dir, closing) : null
  for (const name of SERVER_NAMES) mkdirSync(diskOf(dir, name), { recursive: true })
  const supervisor = createSupervisor(dir, closing)
  const env = { ...toEnv(dir, await freePortBase()), ...more }
  const settings = readSettings({ env, projectDir })
  const secrets = openSecrets(dir)
  const ports = {} as Record<ServerName, number>
  for (const name of SERVER_NAMES) ports[name] = await choosePort({})
  const contextOf = (name: ServerName): ServerContext => ({
    settings: { ...settings, dataDir: diskOf(dir, name) },
    secrets,
    ports,
    shards: [],
    launcher: supervisor.launcher,
    report: () => undefined,
    signal: new AbortController().signal,
  })
  const embedded: Record<ServerName, EmbeddedServer> = {
    nats: await embeddedNats(contextOf('nats')),
    postgres: await embeddedPostgres(contextOf('postgres')),
    clickhouse: await embeddedClickHouse(contextOf('clickhouse')),
  }
  const urls = mapNames(SERVER_NAMES, (name) => embedded[name].url)
  const servers = mapNames(SERVER_NAMES, (name) => supervisor.keep(embedded[name].spec))
  await Promise.all(SERVER_NAMES.map((name) => servers[name].start()))
  await embedded.postgres.afterReady()
  await migratePostgres(urls.postgres)
  await migrateClickhouse(urls.clickhouse, urls.postgres)
  const stores = await openStores(urls, closing)
  const all = serviceEnv(settings, secrets, urls, [])
  const access = { secrets, urls, urlOf: {} }
  const services = mapNames(SERVICE_NAMES, (name) =>
    supervisor.keep(serviceSpec(settings, name, toProcessEnv(access, all, name))),
  )
  await Promise.all(SERVICE_NAMES.map((name) => services[name].start()))
  const serviceUrls = mapNames(SERVICE_NAMES, (name) => `http://${listenAddress(settings, name)}`)
  return {
    servers,
    services,
    disks,
    stop,
    reported: supervisor.reported,
    urls: serviceUrls,
    internalUrls: mapNames(SERVICE_NAMES, (name) => `http://${internalAddress(settings, name)}`),
    ...stores,
    admin: (path, body) =>
      callAdmin(serviceUrls.console, secrets.admin_token, { method: 'POST', path, body }),
  }
}

const diskOf = (dir: string, name: ServerName) => join(dir, `disk-${name}`)

function mountAll(dir: string, closing: Closing): Record<ServerName, SmallDisk> {
  return mapNames(SERVER_NAMES, (name) => {
    const disk = mountSmallDisk(diskOf(dir, name), disksMb[name])
    closing.push(disk.unmount)
    return disk
  })
}

function mapNames<N extends string, T>(names: readonly N[], make: (name: N) => T): Record<N, T> {
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<N, T>
}

/** Without the settings of the test run itself. */
function toEnv(dir: string, portBase: number): Env {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|VITEST|NODE_ENV$|(NATS|POSTGRES|CLICKHOUSE)_URL)/.test(name),
  )
  return {
    ...Object.fromEntries(kept),
    DATA_DIR: dir,
    PORT_BASE: `${portBase}`,
    LOG_LEVEL: 'warn',
  }
}

function createSupervisor(dir: string, closing: Closing) {
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const reported: string[] = []
  const pids: (() => number | undefined)[] = []
  // A paused server receives no signal but SIGKILL, so it would outlive this process.
  const killAll = () => {
    for (const pid of pids) if (pid() !== undefined) sendSignal(pid()!, 'SIGKILL')
  }
  process.on('exit', killAll)
  closing.push(() => process.off('exit', killAll))
  const keep = (spec: ChildSpec): ManagedChild => {
    const { name } = spec
    const log = openChildLog({
      file: join(dir, `${name}.log`),
      toShow: () => null,
      show: () => undefined,
    })
    let launches = 0
    let starts = 0
    const create = () =>
      superviseChild(spec, {
        launch: launcher.launch,
        log,
        report: (line) => reported.push(`${name}: ${line}`),
        onPid: (_pid, state) => {
          if (state === 'started') launches++
        },
      })
    let child = create()
    const down = async () => {
      const pid = child.pid()
      const stopped = child.stop(0)
      if (pid !== undefined) sendSignal(pid, 'SIGKILL')
      await stopped
    }
    pids.push(() => child.pid())
    closing.push(down)
    return {
      start: async () => {
        if (starts > 0) child = create()
        starts++
        const before = launches
        await child.start(new AbortController().signal)
        // The first start is retried while its predecessor is still ending.
        launches = before + 1
      },
      down,
      signal: (signal) => sendSignal(child.pid()!, signal),
      restarts: () => launches - starts,
    }
  }
  return { launcher, reported, keep }
}

async function openStores(
  urls: Record<ServerName, string>,
  closing: Closing,
): Promise<Pick<OutageRig, 'nats' | 'postgres' | 'clickhouse'>> {
  const nats = await connectNats(urls.nats, 'drill', quietLog)
  closing.push(nats.close)
  await ensureStreams(nats)
  const postgres = createPostgres(urls.postgres, {
    role: 'drill',
    log: quietLog,
    statementTimeoutMs: 60_000,
  })
  const clickhouse = createClickhouse(urls.clickhouse, { name: 'drill' })
  closing.push(postgres.close, () => clickhouse.close())
  return { nats, postgres, clickhouse }
}

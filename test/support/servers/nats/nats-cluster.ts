// Three real nats-servers with the shipped configuration of deploy/cluster/, unchanged. Each
// reaches each other over a separate proxy that can be cut; and each can be killed and started
// again on its port and files. The first can begin with the store of a single server.

import type { ChildProcess } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findNatsServer, natsGreets } from '../../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../../deploy/local/stack/await-ready.ts'
import {
  createLauncher,
  endChild,
  exitOf,
  type LaunchSpec,
} from '../../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../../deploy/local/stack/ports/ports.ts'
import { type NatsUser, natsUserNames, passwordVariable } from '../../../../deploy/nats-users.ts'
import { until } from '../../process/until.ts'
import { startProxy } from '../../telemetry/edge-rig.ts'

const projectDir = fileURLToPath(new URL('../../../..', import.meta.url))

export type ClusterNode = {
  name: string
  /** The URL of this server alone. */
  url: string
  isAlive: () => boolean
  /** Sends kill -9. */
  kill: () => Promise<void>
  /** Starts it again, and waits until it accepts connections. */
  start: () => Promise<void>
  /** Drops all traffic between it and the other two; none of them gets a notice. */
  cut: () => void
  mend: () => void
  /** Whether it is up to date with the others. */
  isCurrent: () => Promise<boolean>
  /** Names of the clients that are connected to it. */
  listClients: () => Promise<string[]>
  /** The leader of a stream, as far as this server knows; null when it knows none. */
  findLeader: (stream: string) => Promise<string | null>
}

export type NatsCluster = {
  nodes: ClusterNode[]
  /** All three, in the form of NATS_URL. */
  url: string
  /** The same for the user of one process. */
  urlOf: (user: NatsUser) => string
  version: string
  /** Resolves once all servers are up to date. */
  settled: (limitMs?: number) => Promise<unknown>
  stop: () => Promise<void>
}

type Wire = Awaited<ReturnType<typeof startProxy>>
type Plan = { name: string; port: number; httpPort: number; routePort: number }

export type ClusterOptions = {
  /** A folder with the store of a server that has stopped, which the first server begins with. */
  firstStore?: string
  /** Starts nats-server itself, without the look of `start.sh` at the store. */
  looksAtStore?: boolean
}

/** Starts three servers and waits until they are one cluster. */
export async function startNatsCluster(options: ClusterOptions = {}): Promise<NatsCluster> {
  const binary = await findNatsServer({ env: process.env, projectDir })
  const dir = mkdtempSync(join(tmpdir(), 'di-nats-cluster-'))
  const taken = new Set<number>()
  const nextPort = async () => {
    const port = await choosePort({ taken })
    taken.add(port)
    return port
  }
  const plans: Plan[] = []
  for (const name of ['nats-1', 'nats-2', 'nats-3']) {
    const [port, httpPort, routePort] = [await nextPort(), await nextPort(), await nextPort()]
    plans.push({ name, port, httpPort, routePort })
  }
  // wires.get('a b') leads from a to b.
  const wires = new Map<string, Wire>()
  for (const from of plans) {
    for (const to of plans.filter((other) => other !== from)) {
      const wire = await startProxy(`nats://127.0.0.1:${to.routePort}`)
      wires.set(`${from.name} ${to.name}`, wire)
    }
  }
  const { firstStore, looksAtStore = true } = options
  if (firstStore !== undefined) {
    const from = join(firstStore, 'jetstream')
    cpSync(from, join(dir, plans[0]!.name, 'data/jetstream'), { recursive: true })
  }
  const nodes = plans.map((plan) =>
    createNode({ plan, dir, binary: binary.file, wires, looksAtStore }),
  )
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.end()))
    for (const wire of wires.values()) wire.close()
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  }
  const settled = (limitMs = 60_000) =>
    until(
      'every server of the cluster is current',
      async () => (await Promise.all(nodes.map((node) => node.isCurrent()))).every(Boolean),
      limitMs,
    )
  try {
    await Promise.all(nodes.map((node) => node.start()))
    await settled()
  } catch (error) {
    await stop()
    throw error
  }
  const hosts = plans.map(({ port }) => `127.0.0.1:${port}`)
  const urlOf = (user: NatsUser) => `nats://${user}:${password}@${hosts.join()}`
  return {
    nodes,
    url: urlOf('di'),
    urlOf,
    version: binary.version,
    settled,
    stop,
  }
}

const password = 'nats-test-password'

/** The folders and secrets around the shipped file, which its `include`s expect. */
function prepare(
  plan: Plan,
  dir: string,
  wires: Map<string, Wire>,
): { file: string; script: string; store: string } {
  const root = join(dir, plan.name)
  const [etc, secrets] = [join(root, 'etc/nats'), join(root, 'run/secrets')]
  for (const folder of [etc, secrets]) mkdirSync(folder, { recursive: true })
  const [file, script] = [join(etc, 'nats.conf'), join(etc, 'start.sh')]
  copyFileSync(join(projectDir, 'deploy/cluster/nats.conf'), file)
  copyFileSync(join(projectDir, 'deploy/cluster/start.sh'), script)
  copyFileSync(join(projectDir, 'deploy/nats-users.conf'), join(etc, 'nats-users.conf'))
  const passwords = natsUserNames.map((user) => `${passwordVariable(user)}: ${password}\n`)
  writeFileSync(join(secrets, 'nats_passwords'), passwords.join(''))
  const routes = [...wires]
    .filter(([between]) => between.startsWith(`${plan.name} `))
    .map(([, { url }]) => `  "nats-route://route:route-password@${new URL(url).host}"`)
  const cluster = [
    'authorization { user: route, password: route-password, timeout: 5 }',
    'routes: [',
    ...routes,
    ']',
    // Servers advertise their addresses to one another, which would bypass the wires here.
    'advertise: "127.0.0.1:1"',
  ]
  writeFileSync(join(secrets, 'nats_cluster'), `${cluster.join('\n')}\n`)
  return { file, script, store: join(root, 'data') }
}

function createNode(options: {
  plan: Plan
  dir: string
  binary: string
  wires: Map<string, Wire>
  looksAtStore: boolean
}): ClusterNode & { end: () => Promise<void> } {
  const { plan, wires } = options
  const { file, script, store } = prepare(plan, options.dir, wires)
  const spec: LaunchSpec = {
    ...(options.looksAtStore
      ? { command: script, args: [] }
      : { command: options.binary, args: ['--config', file] }),
    env: {
      PATH: process.env.PATH,
      NATS_SERVER: options.binary,
      NATS_SERVER_NAME: plan.name,
      NATS_LISTEN: `"127.0.0.1:${plan.port}"`,
      NATS_HTTP_LISTEN: `"127.0.0.1:${plan.httpPort}"`,
      NATS_CLUSTER_LISTEN: `"127.0.0.1:${plan.routePort}"`,
      NATS_STORE_DIR: JSON.stringify(store),
    },
    orphanSignal: 'SIGTERM',
  }
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const own = [...wires].filter(([between]) => between.split(' ').includes(plan.name))
  let child: ChildProcess | null = null
  const isAlive = () => child !== null && child.exitCode === null && child.signalCode === null
  const start = async () => {
    child = launcher.launch(spec)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        output = (output + chunk).slice(-4_000)
      })
    }
    try {
      const isReady = () => natsGreets(plan.port)
      await awaitReady({ name: plan.name, child, isReady, limitMs: 30_000 })
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${output}`)
    }
  }
  const read = readFrom(plan.httpPort)
  return {
    name: plan.name,
    url: `nats://di:${password}@127.0.0.1:${plan.port}`,
    isAlive,
    start,
    kill: async () => {
      if (child === null || !isAlive()) return
      child.kill('SIGKILL')
      await exitOf(child)
    },
    end: async () => {
      if (child !== null && isAlive()) await endChild(child, { signal: 'SIGTERM', graceMs: 3_000 })
    },
    cut: () => {
      for (const [, wire] of own) wire.freeze()
    },
    mend: () => {
      for (const [, wire] of own) wire.thaw()
    },
    ...read,
  }
}

type Peer = { name: string; current: boolean; offline?: boolean }
type Jsz = {
  meta_cluster?: { leader?: string; replicas?: Peer[] }
  account_details?: { stream_detail?: { name: string; cluster?: { leader?: string } }[] }[]
}

/** A server's state over HTTP; null values without an answer. */
function readFrom(httpPort: number): Pick<ClusterNode, 'isCurrent' | 'listClients' | 'findLeader'> {
  const request = async (path: string) => {
    const signal = AbortSignal.timeout(1_000)
    const response = await fetch(`http://127.0.0.1:${httpPort}/${path}`, { signal })
    return response.ok ? ((await response.json()) as unknown) : null
  }
  const get = (path: string) => request(path).catch(() => null)
  return {
    isCurrent: async () => {
      if ((await get('healthz')) === null) return false
      // Until its leader has contact with the others, which are offline at first, a cluster places
      // nothing; and only the leader has contact with all. A server is not in its own list.
      const { meta_cluster: meta } = ((await get('jsz')) as Jsz | null) ?? {}
      const others = meta?.replicas ?? []
      if (!meta?.leader) return false
      if (others.some((peer) => peer.name === meta.leader)) return true
      return others.length === 2 && others.every((peer) => peer.current && !peer.offline)
    },
    listClients: async () => {
      const found = (await get('connz?limit=1000')) as { connections?: { name?: string }[] } | null
      return (found?.connections ?? []).map(({ name }) => name ?? '')
    },
    findLeader: async (stream) => {
      const found = (await get('jsz?accounts=1&streams=1')) as Jsz | null
      const streams = found?.account_details?.flatMap((account) => account.stream_detail ?? [])
      return streams?.find(({ name }) => name === stream)?.cluster?.leader ?? null
    },
  }
}

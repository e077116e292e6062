/**
 * The service on a cluster of three nats-servers: the migrations, two edges, a scorer and a console
 * as processes of their own, with PostgreSQL and ClickHouse. It says what was stored where.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { type NatsCluster, startNatsCluster } from '../../support/servers/nats-cluster.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { chooseAddresses } from '../../support/servers/service-addresses.ts'
import { quietLog, sumOf } from '../../support/telemetry/edge-rig.ts'

export type Stored = {
  /** How many messages of the stream hold an event, by its id. */
  inStream: Map<string, number>
  inClickhouse: Set<string>
  /** How many alerts a session has. */
  alerts: Map<string, number>
  seqs: number[]
}

export type ClusterRig = {
  cluster: NatsCluster
  nats: Nats
  edgeUrls: string[]
  tenantId: string
  secret: string
  /** Whether every edge takes telemetry. */
  areEdgesReady: () => Promise<boolean>
  /** A counter of all edges, or of the scorer. */
  sumEdges: (name: string, labels?: Record<string, string>) => Promise<number>
  sumScorer: (name: string, labels?: Record<string, string>) => Promise<number>
  /** Streams and buckets that are not on three servers. */
  listThin: () => Promise<string[]>
  /** Rotates the tenant's HMAC secret through the console. */
  rotate: () => Promise<string>
  /** Waits until the scorer has worked the stream off. */
  drained: (limitMs: number) => Promise<void>
  readStored: () => Promise<Stored>
  stop: () => Promise<void>
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const tenantId = 'acme'

/** Starts everything and makes one sandbox tenant. */
export async function startClusterRig(): Promise<ClusterRig> {
  return await startWhole(startAll)
}

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<ClusterRig> {
  const starting = [startNatsCluster(), startPostgres(), startClickhouse()] as const
  const [cluster, database, clickhouseServer] = await Promise.all(starting)
  closing.push(cluster.stop, database.stop, clickhouseServer.stop)
  const postgresUrl = await database.createDatabase()
  const token = randomBytes(32).toString('base64url')
  const env = {
    NATS_URL: cluster.url,
    NATS_REPLICAS: '3',
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: clickhouseServer.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: token,
    LOG_LEVEL: 'error',
  }
  await runToEnd('services/migrate/main.ts', env)
  const start = async (name: ServiceName) => {
    const service = await startService(name, env)
    closing.push(service.close)
    return service
  }
  const names = ['console', 'scorer', 'ingest', 'ingest'] as const
  const [admin, scorer, ...edges] = await Promise.all(names.map(start))
  const edgeUrls = edges.map(({ url }) => url)
  const internalUrls = edges.map(({ internalUrl }) => internalUrl)
  const nats = await connectNats(cluster.url, 'test', quietLog, 3)
  const postgres = createPostgres(postgresUrl, { role: 'test', log: quietLog })
  const clickhouse = createClickhouse(clickhouseServer.url, { name: 'test' })
  closing.push(nats.close, postgres.close, () => clickhouse.close())
  const call = async (path: string, body: object) => {
    const response = await fetch(`${admin!.url}/admin/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`)
    return String(answer.hmac_secret)
  }
  const secret = await call('/tenants', { tenant_id: tenantId, environment: 'sandbox' })
  const areEdgesReady = async () => (await Promise.all(internalUrls.map(isReady))).every(Boolean)
  await until('the edges are ready', areEdgesReady, 20_000)
  const sum = async (urls: string[], name: string, labels: Record<string, string>) => {
    const texts = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).text()))
    return texts.reduce((total, text) => total + sumOf(text, name, labels), 0)
  }
  return {
    cluster,
    nats,
    edgeUrls,
    tenantId,
    secret,
    areEdgesReady,
    stop,
    sumEdges: (name, labels = {}) => sum(internalUrls, name, labels),
    sumScorer: (name, labels = {}) => sum([scorer!.internalUrl], name, labels),
    listThin: () => listThin(nats),
    rotate: () => call(`/tenants/${tenantId}/rotate`, { hmac: true }),
    drained: async (limitMs) => {
      try {
        await until('the stream is worked off', () => isDrained(nats), limitMs)
      } catch (error) {
        throw new Error(`${(error as Error).message}: ${await describeBacklog(nats)}`)
      }
    },
    readStored: async () => ({
      inStream: await readStream(nats),
      inClickhouse: await readClickhouse(clickhouse),
      ...(await readAlerts(postgres)),
    }),
  }
}

const isReady = (url: string) =>
  fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) }).then(
    (response) => response.ok,
    () => false,
  )

function launch(program: string, env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [program], {
    cwd: projectDir,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, PARENT_PID: String(process.pid), ...env },
  })
}

async function runToEnd(program: string, env: Record<string, string>): Promise<void> {
  const [code] = (await once(launch(program, env), 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
}

async function startService(
  name: ServiceName,
  env: Record<string, string>,
): Promise<{ url: string; internalUrl: string; close: () => Promise<void> }> {
  const { url, internalUrl, env: listen } = await chooseAddresses(name)
  const child = launch(`services/${name}/main.ts`, { ...env, ...listen })
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  try {
    await until(`${name} is ready`, () => isReady(internalUrl), 30_000)
  } catch (error) {
    const said = await fetch(`${internalUrl}/readyz`).then((response) => response.text(), String)
    await close()
    throw new Error(`${(error as Error).message}: ${said}`)
  }
  return { url, internalUrl, close }
}

async function listThin(nats: Nats): Promise<string[]> {
  const thin: string[] = []
  for await (const { config } of nats.manager.streams.list()) {
    if (config.num_replicas !== 3) thin.push(config.name)
  }
  return thin
}

async function isDrained(nats: Nats): Promise<boolean> {
  try {
    const { state } = await nats.manager.streams.info(telemetryStream)
    for (const durable of [scorerConsumer, deciderConsumer]) {
      const info = await nats.manager.consumers.info(telemetryStream, durable)
      if (info.ack_floor.stream_seq !== state.last_seq) return false
    }
    return true
  } catch {
    return false
  }
}

async function describeBacklog(nats: Nats): Promise<string> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const lines = [`stream ${state.last_seq}`]
  for (const durable of [scorerConsumer, deciderConsumer]) {
    const info = await nats.manager.consumers.info(telemetryStream, durable)
    const { ack_floor, delivered, num_pending, num_ack_pending, num_waiting } = info
    lines.push(
      `${durable}: acknowledged to ${ack_floor.stream_seq}, delivered to ${delivered.stream_seq}, ` +
        `pending ${num_pending}, unacknowledged ${num_ack_pending}, asked for ${num_waiting}`,
    )
  }
  return lines.join('; ')
}

/** In one pass over the whole stream. */
async function readStream(nats: Nats): Promise<Map<string, number>> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const counts = new Map<string, number>()
  if (state.messages === 0) return counts
  const consumer = await nats.jetstream.consumers.get(telemetryStream)
  for await (const message of await consumer.consume({ max_messages: 1_000 })) {
    for (const { event_id } of decodeBatch(message.data, message.seq).events) {
      counts.set(event_id, (counts.get(event_id) ?? 0) + 1)
    }
    if (message.seq >= state.last_seq) break
  }
  return counts
}

async function readClickhouse(
  clickhouse: ReturnType<typeof createClickhouse>,
): Promise<Set<string>> {
  const result = await clickhouse.query({
    query: 'select distinct event_id from telemetry where tenant_id = {tenantId:String}',
    query_params: { tenantId },
    format: 'JSONEachRow',
  })
  const rows = (await result.json()) as { event_id: string }[]
  return new Set(rows.map(({ event_id }) => event_id))
}

async function readAlerts(postgres: Postgres): Promise<Pick<Stored, 'alerts' | 'seqs'>> {
  const { rows } = await postgres.query<{ session_id: string; seq: number }>(
    'select session_id, seq from alerts where tenant_id = $1 order by seq',
    [tenantId],
  )
  const alerts = new Map<string, number>()
  for (const { session_id } of rows) alerts.set(session_id, (alerts.get(session_id) ?? 0) + 1)
  return { alerts, seqs: rows.map(({ seq }) => Number(seq)) }
}

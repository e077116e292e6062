/**
 * The service on a cluster of three nats-servers: two edges, a scorer and a console as processes of
 * their own, with PostgreSQL and ClickHouse. Reads back what each store holds.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import type { NatsUser } from '../../../deploy/nats-users.ts'
import { callAdmin } from '../../support/http/tenant-client.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { createServiceProcess, spawnService } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { type NatsCluster, startNatsCluster } from '../../support/servers/nats/nats-cluster.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'
import { countEvents, readProgress } from '../../support/telemetry/read-stream.ts'

export type Stored = {
  /** How many messages of the stream contain an event, by its id. */
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
  /** Whether every edge accepts telemetry. */
  areEdgesReady: () => Promise<boolean>
  /** The sum of a counter over all edges, or its value at the scorer. */
  sumEdges: (name: string, labels?: Record<string, string>) => Promise<number>
  sumScorer: (name: string, labels?: Record<string, string>) => Promise<number>
  /** Streams and buckets that are not on three servers. */
  listUnreplicated: () => Promise<string[]>
  /** Rotates the tenant's HMAC secret through the console. */
  rotate: () => Promise<string>
  /** Waits until both consumers have acknowledged the whole stream. */
  drained: (limitMs: number) => Promise<void>
  readStored: () => Promise<Stored>
  stop: () => Promise<void>
}

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
  await migrate(env)
  const start = async (name: ServiceName) => {
    const NATS_URL = cluster.urlOf(name as NatsUser)
    const service = await createServiceProcess(name, { ...env, NATS_URL })
    closing.push(service.kill)
    await service.start()
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
    const answer = await callAdmin(admin!.url, token, { method: 'POST', path, body })
    return String((answer as { hmac_secret: string }).hmac_secret)
  }
  const secret = await call('/tenants', { tenant_id: tenantId, environment: 'sandbox' })
  const areEdgesReady = async () =>
    (await Promise.all(edges.map((edge) => edge.isReady()))).every(Boolean)
  await until('the edges are ready', areEdgesReady)
  const sum = async (urls: string[], name: string, labels: Record<string, string>) => {
    const counts = await Promise.all(urls.map((url) => readMetric(url, name, labels)))
    return counts.reduce((total, count) => total + count, 0)
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
    listUnreplicated: () => listUnreplicated(nats),
    rotate: () => call(`/tenants/${tenantId}/rotate`, { hmac: true }),
    drained: async (limitMs) => {
      try {
        await until('both consumers acknowledged the whole stream', () => isDrained(nats), limitMs)
      } catch (error) {
        const progress = JSON.stringify(await readProgress(nats))
        throw new Error(`${(error as Error).message}: ${progress}`)
      }
    },
    readStored: async () => ({
      inStream: await countEvents(nats),
      inClickhouse: await readClickhouse(clickhouse),
      ...(await readAlerts(postgres)),
    }),
  }
}

/** Runs the migration job. @throws with its output when it fails */
export async function migrate(
  env: Record<string, string>,
  args: readonly string[] = [],
): Promise<void> {
  const child = spawnService('migrate/main.ts', env, [], args)
  let output = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    output += chunk
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`the migrations ended with ${code}: ${output}`)
}

async function listUnreplicated(nats: Nats): Promise<string[]> {
  const found: string[] = []
  for await (const { config } of nats.manager.streams.list()) {
    if (config.num_replicas !== 3) found.push(config.name)
  }
  return found
}

async function isDrained(nats: Nats): Promise<boolean> {
  const progress = await readProgress(nats).catch(() => null)
  return progress !== null && progress.acknowledged === progress.lastSequence
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

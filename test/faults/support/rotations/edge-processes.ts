/**
 * A console and three edges as processes on a real nats-server and PostgreSQL. A test can
 * disconnect an edge from NATS and set a wrong wall clock.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { edgeKey } from '#shared/core/tenants/directory-entries.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { callAdmin } from '../../../support/http/tenant-client.ts'
import { type Closing, startWhole } from '../../../support/process/closing.ts'
import {
  createServiceProcess,
  type ServiceProcess,
} from '../../../support/process/service-process.ts'
import { until } from '../../../support/process/until.ts'
import { migratePostgres } from '../../../support/servers/databases.ts'
import { startNats } from '../../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../../support/servers/postgres-server.ts'
import { quietLog, startProxy } from '../../../support/telemetry/edge-rig.ts'
import { decodeEvents, readMessages } from '../../../support/telemetry/read-stream.ts'

export type EdgeProcess = Pick<
  ServiceProcess,
  'url' | 'launch' | 'isReady' | 'isAlive' | 'kill'
> & {
  name: string
  /** Its readiness and its metrics, for an error message. */
  describe: () => Promise<string>
  pause: () => void
  resume: () => void
  /** Drops all traffic between it and NATS; neither side sees an end of the connection. */
  cut: () => void
  mend: () => void
  /** Its wall clock jumps by an hour. */
  jumpClock: () => void
}

export type RotateRequest = { hmac?: boolean; webhook?: boolean; api_key?: boolean }

export type Rotated = {
  hmac_secret?: string
  webhook_secret?: string
  public_api_key?: string
  duration_ms: number
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

export type EdgeProcesses = {
  edges: EdgeProcess[]
  nats: Nats
  postgres: Postgres
  tenantId: string
  /** The secret that the tenant was created with. */
  secret: string
  /** Rotates through the admin API. */
  rotate: (request: RotateRequest) => Promise<Rotated>
  /** The newest HMAC secret in Postgres, even before the tenant gets it. */
  readNewestSecret: () => Promise<string>
  /** Edges that the console waits for: running ones, and dead ones until their lease has ended. */
  countRegistered: () => Promise<number>
  /** The id of every event in the stream, and the clock error of its edge. */
  readStored: () => Promise<Map<string, string>>
  stop: () => Promise<void>
}

const hourMs = 3_600_000
/** The wall clock error of each edge: at the start, and after each jump. */
const clocks = [
  [0, hourMs],
  [hourMs, 0, -hourMs],
  [-hourMs, 0],
]

/** Starts everything and makes one tenant. */
export async function startEdgeProcesses(): Promise<EdgeProcesses> {
  return await startWhole(startAll)
}

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<EdgeProcesses> {
  const [server, database] = await Promise.all([startNats(), startPostgres()])
  closing.push(server.stop, database.stop)
  const postgresUrl = await database.createDatabase()
  const nats = await connectNats(server.url, 'test', quietLog)
  closing.push(nats.close)
  await Promise.all([migratePostgres(postgresUrl), ensureStreams(nats)])
  const postgres = createPostgres(postgresUrl, { role: 'test', log: quietLog })
  closing.push(postgres.close)
  const masterKey = randomBytes(32).toString('base64')
  const shared = { MASTER_KEY: masterKey, LOG_LEVEL: 'warn' }
  const token = randomBytes(32).toString('base64url')
  const admin = await createServiceProcess('console', {
    ...shared,
    NATS_URL: server.urlOf('console'),
    POSTGRES_URL: postgresUrl,
    ADMIN_TOKEN: token,
  })
  closing.push(admin.kill)
  const call = (path: string, body: object) =>
    callAdmin<Record<string, unknown>>(admin.url, token, { method: 'POST', path, body })
  const starting = clocks.map((shiftsMs, at) =>
    startEdge(`edge ${at + 1}`, {
      natsUrl: server.urlOf('ingest'),
      shiftsMs,
      env: shared,
      closing,
    }),
  )
  const [edges] = await Promise.all([Promise.all(starting), admin.start()])
  const tenantId = 'acme'
  const created = await call('/tenants', { tenant_id: tenantId, environment: 'live' })
  const sealer = createSealer([masterKey])
  const areReady = async () =>
    (await Promise.all(edges.map((edge) => edge.isReady()))).every(Boolean)
  await until('every edge is ready', areReady)
  return {
    edges,
    nats,
    postgres,
    tenantId,
    secret: String(created.hmac_secret),
    rotate: async (request) => (await call(`/tenants/${tenantId}/rotate`, request)) as Rotated,
    readNewestSecret: async () => {
      const { rows } = await postgres.query<{ sealed: string }>(
        `select sealed from tenant_secrets where kind = 'hmac' and state <> 'retired'
         order by secret_id desc limit 1`,
      )
      return sealer.unseal(rows[0]!.sealed, { tenantId, kind: 'hmac' })
    },
    countRegistered: async () => {
      const bucket = await openTenantsBucket(nats)
      let count = 0
      for await (const key of await bucket.keys(edgeKey('*'))) {
        // The entry of an edge that was considered dead stays and is marked so.
        const entry = await bucket.get(key)
        if (entry !== null && !entry.string().includes('"gone":true')) count++
      }
      return count
    },
    readStored: () => readStored(nats),
    stop,
  }
}

async function startEdge(
  name: string,
  {
    natsUrl,
    shiftsMs,
    env,
    closing,
  }: { natsUrl: string; shiftsMs: number[]; env: Record<string, string>; closing: Closing },
): Promise<EdgeProcess> {
  const proxy = await startProxy(natsUrl)
  closing.push(proxy.close)
  const clock = new URL('../../../support/process/shifted-clock.ts', import.meta.url)
  const edge = await createServiceProcess(
    'ingest',
    { ...env, NATS_URL: proxy.url, SHIFTED_CLOCK_MS: shiftsMs.join() },
    ['--import', fileURLToPath(clock)],
  )
  closing.push(edge.kill)
  await edge.start()
  const { url, launch, isReady, isAlive, kill } = edge
  return {
    name,
    url,
    launch,
    isReady,
    isAlive,
    kill,
    describe: async () => {
      const readiness = fetch(`${edge.internalUrl}/readyz`).then((answer) => answer.text(), String)
      const texts = await Promise.all([readiness, edge.readMetrics().catch(String)])
      return texts.join('\n').replaceAll(/^#.*\n/gm, '')
    },
    pause: () => edge.signal('SIGSTOP'),
    resume: () => edge.signal('SIGCONT'),
    cut: proxy.freeze,
    mend: proxy.thaw,
    jumpClock: () => edge.signal('SIGWINCH'),
  }
}

async function readStored(nats: Nats): Promise<Map<string, string>> {
  const stored = new Map<string, string>()
  for await (const message of readMessages(nats)) {
    const storedMs = message.info.timestampNanos / 1e6
    for (const { event_id, received_at } of decodeEvents(message)) {
      const hours = Math.round((received_at - storedMs) / hourMs)
      stored.set(event_id, hours === 0 ? 'right' : `${hours > 0 ? '+' : ''}${hours} h`)
    }
  }
  return stored
}

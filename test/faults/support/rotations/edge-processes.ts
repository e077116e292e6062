/**
 * A console and three edges as processes of their own, each edge behind a wire to NATS that can be
 * cut and with a wall clock that can be wrong; Postgres and nats-server are real as well. The test
 * itself stays on the direct wire.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { edgeKey } from '#shared/core/tenants/directory-entries.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createSealer } from '#shared/io/tenants/sealed-secrets.ts'
import { type Closing, startWhole } from '../../../support/process/closing.ts'
import { until } from '../../../support/process/until.ts'
import { migratePostgres } from '../../../support/servers/databases.ts'
import { startNats } from '../../../support/servers/nats-server.ts'
import { startPostgres } from '../../../support/servers/postgres-server.ts'
import { chooseAddresses } from '../../../support/servers/service-addresses.ts'
import { quietLog, startProxy } from '../../../support/telemetry/edge-rig.ts'
import { callAdmin } from '../call-admin.ts'

export type EdgeProcess = {
  name: string
  url: string
  /** Whether it takes telemetry. */
  ready: () => Promise<boolean>
  /** Whether its process lives. */
  isAlive: () => boolean
  /** What it says of itself when it does not. */
  explain: () => Promise<string>
  pause: () => void
  resume: () => void
  kill: () => Promise<void>
  /** Starts it again on its port, and does not wait for it. */
  start: () => void
  /** Nothing passes between it and NATS any more, and neither is told. */
  cut: () => void
  mend: () => void
  /** Its wall clock jumps by an hour. */
  jumpClock: () => void
}

export type Asked = { hmac?: boolean; webhook?: boolean; api_key?: boolean }

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
  /** What the tenant was created with. */
  secret: string
  /** Asks the console, and waits for its answer. */
  rotate: (asked: Asked) => Promise<Rotated>
  /** The newest HMAC secret that Postgres holds, on or not: nobody has been told of it yet. */
  readNewestSecret: () => Promise<string>
  /** How many edges the console has to wait for: living ones, and dead ones until forgotten. */
  countRegistered: () => Promise<number>
  /** Every event in the stream: its id, and how far the clock that stamped it was off. */
  readStored: () => Promise<Map<string, string>>
  stop: () => Promise<void>
}

const projectDir = fileURLToPath(new URL('../../../..', import.meta.url))
const hourMs = 3_600_000
/** Each edge's wall clock: what it is off by at the start, and after each jump. */
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
  const started = await Promise.all([
    startConsole({ ...shared, NATS_URL: server.url, POSTGRES_URL: postgresUrl }),
    ...clocks.map((shiftsMs, at) => startEdge(`edge ${at + 1}`, server.url, shiftsMs, shared)),
  ])
  for (const { close } of started) closing.push(close)
  const [admin, ...edges] = started as [Console, ...(EdgeProcess & Closable)[]]
  const tenantId = 'acme'
  const created = await admin.call('/tenants', { tenant_id: tenantId, environment: 'live' })
  const sealer = createSealer([masterKey])
  await until('', async () => (await Promise.all(edges.map((edge) => edge.ready()))).every(Boolean))
  return {
    edges,
    nats,
    postgres,
    tenantId,
    secret: String(created.hmac_secret),
    rotate: async (asked) =>
      (await admin.call(`/tenants/${tenantId}/rotate`, asked)) as unknown as Rotated,
    readNewestSecret: async () => {
      const { rows } = await postgres.query<{ sealed: string }>(
        `select sealed from tenant_secrets where kind = 'hmac' and state <> 'retired'
         order by secret_id desc limit 1`,
      )
      return sealer.unseal(rows[0]!.sealed, { tenantId, kind: 'hmac' })
    },
    countRegistered: async () => {
      let count = 0
      for await (const _ of await (await openTenantsBucket(nats)).keys(edgeKey('*'))) count++
      return count
    },
    readStored: () => readStored(nats),
    stop,
  }
}

type Closable = { close: () => Promise<unknown> }
type Console = Closable & {
  call: (path: string, body: object) => Promise<Record<string, unknown>>
}

function launch(program: string, env: Record<string, string>, flags: string[] = []): ChildProcess {
  return spawn(process.execPath, [...flags, program], {
    cwd: projectDir,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, PARENT_PID: String(process.pid), ...env },
  })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const answersReady = (url: string) =>
  fetch(`${url}/readyz`, { signal: AbortSignal.timeout(500) }).then(
    (response) => response.ok,
    () => false,
  )

async function startConsole(env: Record<string, string>): Promise<Console> {
  const { url, internalUrl, env: listen } = await chooseAddresses('console')
  const token = randomBytes(32).toString('base64url')
  const child = launch('services/console/main.ts', {
    ...env,
    ADMIN_TOKEN: token,
    ...listen,
  })
  await until('the console is ready', () => answersReady(internalUrl), 20_000)
  const call = (path: string, body: object) => callAdmin(url, token, path, body)
  return { call, close: () => end(child) }
}

async function startEdge(
  name: string,
  natsUrl: string,
  shiftsMs: number[],
  env: Record<string, string>,
): Promise<EdgeProcess & Closable> {
  const wire = await startProxy(natsUrl)
  const { url, internalUrl, env: listen } = await chooseAddresses('ingest')
  const clock = fileURLToPath(new URL('../../../support/process/shifted-clock.ts', import.meta.url))
  const start = () =>
    launch(
      'services/ingest/main.ts',
      {
        ...env,
        NATS_URL: wire.url,
        ...listen,
        SHIFTED_CLOCK_MS: shiftsMs.join(),
      },
      ['--import', clock],
    )
  let child = start()
  const ready = () => answersReady(internalUrl)
  await until(`${name} is ready`, ready, 20_000)
  return {
    name,
    url,
    ready,
    explain: async () => {
      const answers = await Promise.all(
        ['readyz', 'metrics'].map((path) =>
          fetch(`${internalUrl}/${path}`).then((response) => response.text(), String),
        ),
      )
      return answers.join('\n').replaceAll(/^#.*\n/gm, '')
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    kill: () => end(child),
    start: () => {
      child = start()
    },
    cut: wire.freeze,
    mend: wire.thaw,
    jumpClock: () => child.kill('SIGWINCH'),
    isAlive: () => child.exitCode === null && child.signalCode === null,
    close: async () => {
      await end(child)
      wire.close()
    },
  }
}

/** In one pass over the whole stream. */
async function readStored(nats: Nats): Promise<Map<string, string>> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const stored = new Map<string, string>()
  if (state.messages === 0) return stored
  const consumer = await nats.jetstream.consumers.get(telemetryStream)
  const messages = await consumer.consume({ max_messages: 1_000 })
  for await (const message of messages) {
    const storedMs = message.info.timestampNanos / 1e6
    for (const { event_id, received_at } of decodeBatch(message.data, message.seq).events) {
      const hours = Math.round((received_at - storedMs) / hourMs)
      stored.set(event_id, hours === 0 ? 'right' : `${hours > 0 ? '+' : ''}${hours} h`)
    }
    if (message.seq >= state.last_seq) break
  }
  return stored
}

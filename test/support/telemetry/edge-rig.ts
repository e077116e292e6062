// Edges for tests: a real nats-server, the console's side of the tenant directory, and edges in
// this process (or as separate processes) in front of it. Tests read back the whole stream.

import { type ChildProcess, spawn } from 'node:child_process'
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { type AcceptedEvent, decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { syncedKey, type TenantEntry, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { createAcceptedTally } from '../../../services/ingest/accepted-tally.ts'
import { createIngest, type Edge } from '../../../services/ingest/app.ts'
import { openBacklogLimit } from '../../../services/ingest/backlog-limit.ts'
import { openEvidence } from '../../../services/ingest/installs/open-evidence.ts'
import type { VerifyEvidence } from '../../../services/ingest/installs/verify-evidence.ts'
import { createRequestLog } from '../../../services/ingest/request-log.ts'
import { createStaleSecretRequests } from '../../../services/ingest/stale-secret-requests.ts'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import { listen } from '../../../shared/io/http/http-server.ts'
import { createInternalServer } from '../../../shared/io/http/internal-server.ts'
import { createSealer, type Sealer } from '../../../shared/io/keys/console-keys.ts'
import { createEdgeKeys, type EdgeKeys, toEdgeKeyTexts } from '../../../shared/io/keys/edge-keys.ts'
import { toDerivedKeys } from '../../../shared/io/keys/process-keys.ts'
import { connectNats, type Nats } from '../../../shared/io/nats/connection.ts'
import { ensureStreams } from '../../../shared/io/nats/streams/ensure-streams.ts'
import { startStreamKeeper } from '../../../shared/io/nats/streams/stream-keeper.ts'
import { createLog, type Log } from '../../../shared/io/process/log.ts'
import { createMetrics } from '../../../shared/io/process/metrics.ts'
import { answerRequestLogQueries } from '../../../shared/io/telemetry/request-log-answers.ts'
import {
  createTelemetryPublisher,
  type PublishBatch,
} from '../../../shared/io/telemetry/telemetry-publisher.ts'
import { openDirectory, putProven } from '../../../shared/io/tenants/directory/directory-entries.ts'
import {
  openTenantDirectory,
  type TenantDirectory,
} from '../../../shared/io/tenants/directory/edge-directory.ts'
import { projectTenant } from '../../../shared/io/tenants/directory/tenant-directory.ts'
import { startStaleSecretReporter } from '../../../shared/io/tenants/stale-secret-requests.ts'
import { nodeEnv } from '../process/node-env.ts'
import { sumOf } from '../process/read-metric.ts'
import { until } from '../process/until.ts'
import { startNats, type TestNats } from '../servers/nats/nats-server.ts'
import { chooseAddresses } from '../servers/service-addresses.ts'

export const nowMs = () => performance.now()

/** A log that tests do not print. */
export const quietLog = createLog('test', 'silent')

export type TestTenant = {
  tenantId: string
  secret: string
  entry: TenantEntry
  /** The revision of the entry. */
  revision: number
}

export type EdgeRig = {
  server: TestNats
  /** The test's own connection, like a console's. */
  nats: Nats
  masterKey: string
  sealer: Sealer
  /** Projects a tenant, with the given changes. */
  projectTenant: (
    tenantId: string,
    change?: Partial<TenantEntry> & { secret?: string | null; policy?: Policy },
  ) => Promise<TestTenant>
  /** Every event in the stream, in its order. */
  readStored: () => Promise<AcceptedEvent[]>
  /** Messages in the stream. */
  countMessages: () => Promise<number>
  startEdge: (options?: EdgeOptions) => Promise<TestEdge>
  /** Starts an edge as a process and waits until it is ready, or only until it is alive. */
  spawnEdge: (options?: SpawnOptions) => Promise<SpawnedEdge>
  stop: () => Promise<void>
}

export type EdgeOptions = {
  /** Another URL of the server than the direct one. */
  natsUrl?: string
  /** The rig's own by default. */
  keys?: EdgeKeys
  /** Wraps the publisher, for example to lose acknowledgements. */
  wrapPublish?: (publish: PublishBatch) => PublishBatch
  /** Whether to wait until the edge may accept telemetry. */
  ready?: boolean
  wallMs?: () => number
  /** The clock of leases and of time limits, which a test may slow down. */
  monotonicMs?: () => number
  /** Wraps what verifies evidence, for example to hold it back. */
  wrapEvidence?: (verify: VerifyEvidence) => VerifyEvidence
  /** Replaces the service's own bound. */
  connectionsMax?: number
  /** What addresses are looked up in. */
  network?: () => NetworkSources | null
  trustedProxies?: readonly string[]
  log?: Log
}

export type TestEdge = {
  url: string
  /** The URL of readiness and metrics. */
  internalUrl: string
  edgeId: string
  nats: Nats
  directory: TenantDirectory
  metrics: () => Promise<string>
  /** The sum of a counter's series with these labels. */
  count: (name: string, labels?: Record<string, string>) => Promise<number>
  /** Answers no more queries for its request log. */
  beSilent: () => void
  close: () => Promise<void>
}

export type SpawnOptions = { await?: 'readyz' | 'healthz'; env?: Record<string, string> }

export type SpawnedEdge = {
  url: string
  internalUrl: string
  child: ChildProcess
  output: () => string
}

/** @param options of the nats-server */
export async function startEdgeRig({
  telemetryStreams,
  ...options
}: {
  syncAlways?: boolean
  telemetryStreams?: number
} = {}): Promise<EdgeRig> {
  const server = await startNats(options)
  const nats = await connectNats({ url: server.url, telemetryStreams }, 'test', quietLog)
  await ensureStreams(nats)
  const masterKey = randomBytes(32).toString('base64')
  const sealer = createSealer([masterKey])
  await putSynced({ nats, sealer }, 0)
  const keeper = startStreamKeeper({
    findNats: () => nats,
    log: quietLog,
    metrics: createMetrics('console'),
  })
  const closing: (() => Promise<void>)[] = []
  const rig: EdgeRig = {
    server,
    nats,
    masterKey,
    sealer,
    projectTenant: (tenantId, change) => project({ nats, sealer }, tenantId, change ?? {}),
    readStored: () => readStored(nats),
    countMessages: async () => (await nats.manager.streams.info(telemetryStream)).state.messages,
    startEdge: async (options = {}) => {
      const edge = await startEdge(rig, options)
      closing.push(edge.close)
      return edge
    },
    spawnEdge: async (options = {}) => {
      const edge = await spawnEdge(rig, options)
      closing.push(async () => {
        if (edge.child.exitCode !== null || edge.child.signalCode !== null) return
        edge.child.kill('SIGKILL')
        await once(edge.child, 'exit')
      })
      return edge
    },
    stop: async () => {
      await Promise.all(closing.map((close) => close()))
      await keeper.stop()
      await nats.close()
      await server.stop()
    },
  }
  return rig
}

/** The keys of an edge, as an installation with these master keys gives them to it. */
export const edgeKeysOf = (...masterKeys: [string, ...string[]]): EdgeKeys =>
  createEdgeKeys(toEdgeKeyTexts(masterKeys))

/** The variables of an edge's keys. */
export function edgeEnvOf(masterKey: string): Record<string, string> {
  const { DIRECTORY_PUBLIC_KEY, EDGE_KEY, TELEMETRY_KEY } = toDerivedKeys(masterKey)
  return {
    DIRECTORY_PUBLIC_KEY: DIRECTORY_PUBLIC_KEY!,
    EDGE_KEY: EDGE_KEY!,
    TELEMETRY_KEY: TELEMETRY_KEY!,
  }
}

/** Marks the bucket as synced, as a console does, with at least this number of tenants. */
export function putSynced(deps: { nats: Nats; sealer: Sealer }, tenants: number): Promise<number> {
  return putEntry(deps, syncedKey, { tenants })
}

/** Removes a tenant from every edge, as a console does. */
export function removeTenant(
  deps: { nats: Nats; sealer: Sealer },
  tenantId: string,
): Promise<number> {
  return putEntry(deps, tenantKey(tenantId), null)
}

/** Writes an entry with its proof over any existing one. */
export async function putEntry(
  { nats, sealer }: { nats: Nats; sealer: Sealer },
  key: string,
  value: unknown,
): Promise<number> {
  const directory = await openDirectory(nats, sealer)
  const present = await directory.bucket.get(key)
  return putProven(directory, key, JSON.stringify(value), present?.revision ?? 0)
}

async function project(
  { nats, sealer }: { nats: Nats; sealer: Sealer },
  tenantId: string,
  change: Partial<TenantEntry> & { secret?: string | null; policy?: Policy },
): Promise<TestTenant> {
  const { secret = randomBytes(32).toString('base64url'), policy = defaultPolicy, ...more } = change
  const sealed = secret === null ? null : sealer.seal(secret, { tenantId, kind: 'hmac' })
  const entry: TenantEntry = {
    tenant_id: tenantId,
    environment: 'live',
    status: 'active',
    epoch: 1,
    hmac_secret_sealed: sealed,
    policy_version: 1,
    policy_hash: toPolicyHash(policy),
    ingest_rate: null,
    // The default limits of a tenant would end most tests under load.
    ingest_bytes: { perSecond: 1e9, burst: 1e9 },
    ...more,
  }
  const document = { hash: entry.policy_hash, text: JSON.stringify(policy) }
  const revision = await projectTenant(await openDirectory(nats, sealer), entry, document)
  return { tenantId, secret: secret ?? '', entry, revision }
}

async function readStored(nats: Nats): Promise<AcceptedEvent[]> {
  await until('the test is connected', nats.connected)
  const { state } = await nats.manager.streams.info(telemetryStream)
  const events: AcceptedEvent[] = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await nats.manager.streams.getMessage(telemetryStream, { seq })
    const batch = decodeBatch(message.data, message.seq)
    if (batch.invalid.length > 0) throw new Error(`message ${seq}: ${batch.invalid[0]?.detail}`)
    events.push(...batch.events)
  }
  return events
}

let edges = 0

/** Starts an edge in this process. */
export async function startEdge(
  rig: Pick<EdgeRig, 'server' | 'masterKey'> & { nats: Pick<Nats, 'telemetryStreams'> },
  options: EdgeOptions = {},
): Promise<TestEdge> {
  const { length: telemetryStreams } = rig.nats.telemetryStreams
  const settings = { url: options.natsUrl ?? rig.server.urlOf('ingest'), telemetryStreams }
  const nats = await connectNats(settings, 'ingest', quietLog)
  const metrics = createMetrics('ingest')
  const edgeId = `edge-${process.pid}-${++edges}`
  const keys = options.keys ?? edgeKeysOf(rig.masterKey)
  const directory = openTenantDirectory({
    nats,
    keys,
    log: quietLog,
    metrics,
    edgeId,
    nowMs: options.monotonicMs ?? nowMs,
  })
  const staleSecretRequests = createStaleSecretRequests(metrics, nowMs)
  const reporter = startStaleSecretReporter({
    ...staleSecretRequests,
    nats,
    prover: keys.proverOf('edge report'),
    edgeId,
    metrics,
    log: quietLog,
    everyMs: 100,
  })
  const wallMs = options.wallMs ?? Date.now
  const hasTenant = (tenantId: string) => directory.find(tenantId) !== undefined
  const requestLog = createRequestLog({ hasTenant, wallMs })
  const answers = answerRequestLogQueries({
    nats,
    prover: keys.proverOf('request log'),
    log: quietLog,
    edgeId: directory.edgeId,
    read: requestLog.read,
    forget: requestLog.forget,
  })
  let stopping = false
  const { countEdges } = directory
  const batchProver = keys.batches
  const streams = nats.telemetryStreams.map((stream) => {
    const publish = createTelemetryPublisher(nats, stream, batchProver)
    return {
      publish: options.wrapPublish?.(publish) ?? publish,
      backlog: openBacklogLimit({ nats, stream, log: quietLog, metrics, countEdges }),
    }
  })
  const edge: Edge = {
    directory,
    streams,
    connected: nats.connected,
    close: directory.close,
  }
  const stops: (() => Promise<void> | void)[] = []
  const lifecycle = {
    onStop: (_name: string, step: () => Promise<void> | void) => stops.push(step),
  }
  const evidence = openEvidence({}, { lifecycle, log: quietLog, metrics, wallMs })
  const { wrapEvidence = (verify) => verify } = options
  const ingest = createIngest({
    natsFault: () => (nats.connected() ? null : 'is not connected'),
    log: options.log ?? quietLog,
    metrics,
    telemetryStreams: nats.telemetryStreams,
    edge: () => edge,
    stopping: () => stopping,
    staleSecretRequests,
    requestLog,
    tally: createAcceptedTally(),
    tracing: null,
    decoyKey: createSecretKey(randomBytes(43)),
    challengeKeys: keys.challenges,
    evidence: { ...evidence, verifyEvidence: wrapEvidence(evidence.verifyEvidence) },
    newBatchId: () => `bat_${randomUUID()}`,
    nowMs: options.monotonicMs ?? nowMs,
    wallMs,
    network: options.network ?? (() => null),
    trustedProxies: options.trustedProxies ?? [],
    ...(options.connectionsMax === undefined ? {} : { connectionsMax: options.connectionsMax }),
  })
  const internal = createInternalServer({
    log: quietLog,
    metrics,
    stopping: () => stopping,
    readyChecks: ingest.readyChecks,
    warnings: ingest.warnings,
  })
  const url = await listen(ingest.app, { host: '127.0.0.1', port: 0 })
  const internalUrl = await listen(internal, { host: '127.0.0.1', port: 0 })
  if (options.ready !== false) await until('the edge holds a lease', directory.leaseValid)
  let closed: Promise<void> | null = null
  const close = async () => {
    stopping = true
    ingest.app.server.closeAllConnections()
    await ingest.app.close()
    await internal.close()
    answers.close()
    for (const stop of stops) await stop()
    for (const { backlog } of streams) await backlog.close()
    await directory.close()
    await reporter.close()
    await nats.close()
  }
  return {
    url,
    internalUrl,
    edgeId,
    nats,
    directory,
    metrics: () => metrics.registry.metrics(),
    count: async (name, labels = {}) => sumOf(await metrics.registry.metrics(), name, labels),
    beSilent: answers.close,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

async function spawnEdge(
  rig: EdgeRig,
  { await: path = 'readyz', env: more = {} }: SpawnOptions,
): Promise<SpawnedEdge> {
  const { env, url, internalUrl } = await chooseAddresses('ingest')
  const child = spawn(process.execPath, [join(projectDir, 'services/ingest/main.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...nodeEnv(),
      NATS_URL: rig.server.urlOf('ingest'),
      ...edgeEnvOf(rig.masterKey),
      ...env,
      ...more,
      PARENT_PID: String(process.pid),
    },
  })
  let output = ''
  const keep = (chunk: Buffer) => {
    output += chunk
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  await until(`the spawned edge answers ${path}`, async () => {
    if (child.exitCode !== null) throw new Error(`ingest ended at its start: ${output}`)
    return fetch(`${internalUrl}/${path}`).then(
      (response) => response.ok,
      () => false,
    )
  })
  return { url, internalUrl, child, output: () => output }
}

/**
 * A proxy to a server that can be frozen: it drops all traffic without a notice to either side.
 * @param toClient changes what the server sends
 */
export async function startProxy(
  serverUrl: string,
  toClient: (bytes: Buffer) => Buffer = (bytes) => bytes,
) {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let frozen = false
  const proxy = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk: Buffer) => to.write(to === client ? toClient(chunk) : chunk))
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (frozen) from.pause()
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(serverUrl)
  url.port = String((proxy.address() as AddressInfo).port)
  const setFrozen = (wanted: boolean) => {
    frozen = wanted
    for (const socket of sockets) {
      if (frozen) socket.pause()
      else socket.resume()
    }
  }
  return {
    url: url.href,
    freeze: () => setFrozen(true),
    thaw: () => setFrozen(false),
    close: () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    },
  }
}

export type Answer = {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

/** Sends bytes to an edge, signed by default. */
export async function send(
  edge: { url: string },
  body: string | Uint8Array,
  options: { secret?: string; headers?: Record<string, string>; path?: string } = {},
): Promise<Answer> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (options.secret !== undefined) headers['x-service-signature'] = signBody(body, options.secret)
  const response = await fetch(`${edge.url}${options.path ?? '/v1/rasp/ingest'}`, {
    method: 'POST',
    headers: { ...headers, ...options.headers },
    body: body as string,
  })
  const parsed = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, body: parsed }
}

/**
 * Sends again as long as the edge judges nothing: after a stall of the machine it has no lease for
 * a moment, and answers 503.
 */
export async function sendJudged(...parameters: Parameters<typeof send>): Promise<Answer> {
  return until('the edge judges', async () => {
    const answer = await send(...parameters)
    return answer.status === 503 ? null : answer
  })
}

let bodies = 0

/** A valid submission as an object, different each time. */
export function telemetryOf(tenantId: string, more: Record<string, unknown> = {}) {
  bodies++
  return {
    tenant_id: tenantId,
    device_id: `device-${bodies}`,
    session_id: `session-${bodies}`,
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
    ...more,
  }
}

/** The same as text. */
export function bodyOf(tenantId: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify(telemetryOf(tenantId, more))
}

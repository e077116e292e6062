/**
 * The api, the console with its jobs, and an edge in this process on real servers. Calls of the api
 * and the console are injected; those of the edge, which reads sockets itself, go over HTTP.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { createSealer, toMasterKeys } from '#shared/io/keys/console-keys.ts'
import { createKnownForm } from '#shared/io/keys/key-form.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createPasswordHasher } from '#shared/io/operators/password-hash.ts'
import { createStopSteps } from '#shared/io/process/lifecycle.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { readConsoleConfig } from '../../../services/console/config.ts'
import { openConnections, sliceMaxMs } from '../../../services/console/connections.ts'
import { createConsoleDeps } from '../../../services/console/console-deps.ts'
import { startJobs } from '../../../services/console/jobs/jobs.ts'
import { createBacktests } from '../../../services/console/policies/backtest.ts'
import { createSuggestions } from '../../../services/console/policies/suggestions.ts'
import { createDirectoryWriter } from '../../../services/console/tenants/directory.ts'
import { createApiRig } from '../http/api-rig.ts'
import { testLog as log } from '../http/console-rig.ts'
import { type Call, type CallAnswer, createCaller } from '../http/http-call.ts'
import { startClickhouse } from '../servers/clickhouse-server.ts'
import { startNats } from '../servers/nats/nats-server.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { startEdge } from '../telemetry/edge-rig.ts'
import type { Credentials } from './calls.ts'
import { type CallJson, makeExisting } from './existing.ts'
import { toCredentials } from './known-values.ts'
import type { OpenapiDocument, Operation } from './operations.ts'

export type OpenapiRig = {
  documents: { api: OpenapiDocument; admin: OpenapiDocument }
  send: (operation: Operation, call: Call) => Promise<CallAnswer>
  credentials: Credentials
  close: () => Promise<void>
}

const origin = 'https://console.example'

/** Starts everything and fills it. */
export async function startOpenapiRig(): Promise<OpenapiRig> {
  const steps = createStopSteps(log)
  const [postgres, clickhouse, server] = await Promise.all([
    startPostgres(),
    startClickhouse({ isMigrated: true }),
    startNats(),
  ])
  for (const { stop } of [postgres, clickhouse, server]) steps.onStop('a server', stop)
  const urls = { postgres: await postgres.createMigratedDatabase(), clickhouse: clickhouse.url }
  const nats = await connectNats(server.url, 'test', log)
  steps.onStop('nats', nats.close)
  await ensureStreams(nats)
  const masterKey = randomBytes(32).toString('base64')
  const adminToken = randomBytes(32).toString('base64url')
  const env = {
    POSTGRES_URL: urls.postgres,
    CLICKHOUSE_URL: urls.clickhouse,
    CLICKHOUSE_EMBEDDED: '1',
    NATS_URL: server.url,
    MASTER_KEY: masterKey,
    ADMIN_TOKEN: adminToken,
    ALLOW_PRIVATE_WEBHOOKS: '1',
    PUBLIC_URL: origin,
  }
  const console = await openConsole(env, steps)
  const api = await createApiRig(urls)
  steps.onStop('api', api.close)
  const edge = await startEdge({ server, masterKey, nats }, { trustedProxies: ['127.0.0.1'] })
  steps.onStop('edge', edge.close)
  const callConsole: CallJson = (method, path, { body, headers = {} } = {}) =>
    callJson(console, method, `/admin/v1${path}`, { body, headers: { origin, ...headers } })
  const authorization = `Bearer ${adminToken}`
  const known = await makeExisting({
    admin: async (method, path, body) =>
      (
        await callConsole<never>(method, path, {
          ...(body && { body }),
          headers: { authorization },
        })
      ).body,
    callConsole,
    callApi: (method, path, options) => callJson(api.app, method, path, options),
    alerts: api.alerts,
    telemetry: api.telemetry,
  })
  const caller = createCaller()
  steps.onStop('calls', caller.close)
  const readDocument = async (app: FastifyInstance, path: string) =>
    (await app.inject(path)).json<OpenapiDocument>()
  return {
    documents: {
      api: await readDocument(api.app, '/openapi.json'),
      admin: await readDocument(console, '/admin/v1/openapi.json'),
    },
    send: ({ server, path }, call) => {
      if (server === 'ingest_url') return caller.send(edge.url, call)
      return inject(path.startsWith('/admin/') ? console : api.app, call)
    },
    credentials: toCredentials(known, { adminToken, origin }),
    close: steps.run,
  }
}

/** The console as its process builds it, with the jobs in this thread. */
async function openConsole(
  env: Record<string, string>,
  steps: ReturnType<typeof createStopSteps>,
): Promise<FastifyInstance> {
  const config = readConsoleConfig(env)
  const metrics = createMetrics('console')
  const shared = { log, metrics, nowMs: () => performance.now(), wallMs: Date.now }
  const connections = openConnections({
    config,
    steps,
    log,
    metrics,
    name: 'console',
    longMaxMs: sliceMaxMs,
  })
  const { postgres, longClickhouse, leases, findNats } = connections
  const keyForm = createKnownForm(postgres)
  await keyForm.refresh()
  const sealer = createSealer(toMasterKeys(config), keyForm.read)
  const long = { postgres, leases, clickhouse: longClickhouse, ...shared }
  const backtests = createBacktests(long)
  const suggestions = createSuggestions(long)
  steps.onStop('backtests', backtests.stop)
  steps.onStop('suggestions', suggestions.stop)
  startJobs({
    ...shared,
    metrics: createMetrics('console', { isThread: true }),
    steps,
    sealer,
    connections,
    projection: createTenantProjection({ findNats, sealer, postgres, ...shared }),
    directory: createDirectoryWriter(findNats, sealer, shared.nowMs),
  })
  const deps = createConsoleDeps({
    config,
    connections,
    sealer,
    keyForm,
    backtests,
    suggestions,
    ...shared,
    networkData: createNetworkData({ folder: null, isCheckOnly: true, ...shared }),
    revokedSerials: () => null,
    publicUrl: () => origin,
  })
  const passwords = createPasswordHasher({ memory: 1_024, passes: 1, parallelism: 1 })
  // Wrong tokens come from other addresses, so that their limit does not slow other calls.
  const http = { log, metrics, trustedProxies: ['127.0.0.1'] }
  const app = await createConsoleApp({ ...deps, passwords }, http)
  steps.onStop('http', () => app.close())
  return app
}

async function inject(app: FastifyInstance, call: Call): Promise<CallAnswer> {
  const startedMs = performance.now()
  const { method, path, headers, body } = call
  const answer = await app.inject({
    method: method as 'GET',
    url: path,
    headers,
    ...(body === undefined ? {} : { payload: body }),
  })
  return {
    status: answer.statusCode,
    headers: answer.headers as CallAnswer['headers'],
    text: answer.payload,
    body: answer.rawPayload,
    tookMs: performance.now() - startedMs,
  }
}

async function callJson<T>(
  app: FastifyInstance,
  method: string,
  path: string,
  { body, headers = {} }: { body?: object | undefined; headers?: Record<string, string> } = {},
): Promise<{ body: T; cookie: string }> {
  const answer = await inject(app, {
    method,
    path,
    headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    body: body && JSON.stringify(body),
  })
  const { status, text } = answer
  if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text}`)
  const [cookie = ''] = String(answer.headers['set-cookie'] ?? '').split(';', 1)
  return { body: JSON.parse(text) as T, cookie }
}

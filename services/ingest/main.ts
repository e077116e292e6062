/**
 * The ingest process. It listens once it holds a credential lease, accepts telemetry while it does,
 * and stores every accepted submission before it ends.
 */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { firstLeaseMaxMs } from '#shared/core/base/limits/ingest.ts'
import { listTelemetryStreams } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { closeHttp } from '#shared/io/http/close-http.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { createEdgeKeys, type EdgeKeys } from '#shared/io/keys/edge-keys.ts'
import { readEdgeKeys, warnOfMasterKey } from '#shared/io/keys/process-keys.ts'
import { type NatsLink, openNats } from '#shared/io/nats/connection.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { toNatsSettings } from '#shared/io/process/config.ts'
import { createLifecycle, type Lifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import type { Poller } from '#shared/io/process/poll.ts'
import { startClaimReporter } from '#shared/io/reconciliation/accepted-claims.ts'
import { answerRequestLogQueries } from '#shared/io/telemetry/request-log-answers.ts'
import { createTelemetryPublisher } from '#shared/io/telemetry/telemetry-publisher.ts'
import { openTenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import { startStaleSecretReporter } from '#shared/io/tenants/stale-secret-requests.ts'
import { openTracing } from '#shared/io/tracing/open-tracing.ts'
import { type AcceptedTally, createAcceptedTally } from './accepted-tally.ts'
import { createIngest, type Edge } from './app.ts'
import { openBacklogLimit } from './backlog-limit.ts'
import { edgeKeyVariables, readIngestConfig } from './config.ts'
import { openEvidence } from './installs/open-evidence.ts'
import { createRequestLog, type RequestLog } from './request-log.ts'
import { createStaleSecretRequests, type StaleSecretRequests } from './stale-secret-requests.ts'

const nowMs = () => performance.now()

/** How long unfinished requests may delay a stop. Draining follows, within the limit of a stop. */
const unfinishedMs = 4_500

async function main(): Promise<void> {
  const config = readIngestConfig(process.env)
  const log = createLog('ingest', config.LOG_LEVEL)
  warnOfMasterKey(log, config, edgeKeyVariables)
  const lifecycle = createLifecycle(log, {
    parentPid: config.PARENT_PID,
    stopDelayMs: config.STOP_DELAY_MS,
  })
  const metrics = createMetrics('ingest')
  const tracing = await openTracing(config, { service: 'ingest', lifecycle, log, metrics })

  const staleSecretRequests = createStaleSecretRequests(metrics, nowMs)
  const tally = createAcceptedTally()
  const requestLog = createRequestLog({
    hasTenant: (tenantId) => edge()?.directory.find(tenantId) !== undefined,
    wallMs: Date.now,
  })
  const evidence = openEvidence(config, { lifecycle, log, metrics, wallMs: Date.now })
  const networkData = createNetworkData({
    folder: config.NETWORK_DATA ?? null,
    measuresDocumentation: config.NETWORK_DATA_DOCUMENTATION,
    log,
    metrics,
    wallMs: Date.now,
  })
  let networkPoller: Poller | null = null
  // Steps run in reverse order: a file that is being read holds up no request.
  lifecycle.onStop('network data', () => networkPoller?.stop())
  const link = openNats(toNatsSettings(config), 'ingest', log)
  lifecycle.onStop('nats', link.close)
  const keys = createEdgeKeys(readEdgeKeys(config))
  const edge: () => Edge | null = openEdge({
    keys,
    link,
    log,
    metrics,
    lifecycle,
    staleSecretRequests,
    tally,
    requestLog,
  })
  const ingest = createIngest({
    log,
    metrics,
    telemetryStreams: listTelemetryStreams(config.TELEMETRY_STREAMS),
    edge,
    natsFault: link.fault,
    stopping: lifecycle.stopping,
    staleSecretRequests,
    tally,
    requestLog,
    tracing,
    decoyKey: createSecretKey(randomBytes(43)),
    challengeKeys: keys.challenges,
    evidence,
    network: networkData.sources,
    issuer: config.SERVICE_ISSUER ?? config.PUBLIC_API_URL,
    newBatchId: () => `bat_${randomUUID()}`,
    nowMs,
    wallMs: Date.now,
    trustedProxies: config.TRUSTED_PROXIES,
  })
  const warnings = {
    ...ingest.warnings,
    attestation_status: evidence.warning,
    network_data: networkData.warning,
  }
  let listening = false
  const readyChecks = {
    ...ingest.readyChecks,
    listener: () => (listening ? null : 'is not open yet'),
  }
  const address = config.INGEST_INTERNAL_LISTEN
  const internal = { lifecycle, log, metrics, readyChecks, warnings, address }
  const internalUrl = await serveInternally(internal)
  lifecycle.onStop('drain', ingest.drained)
  lifecycle.onStop('http', () => closeHttp(ingest.app, unfinishedMs))
  // So that no event is unmeasured because the files are still being read.
  await Promise.all([awaitFirstLease(edge), networkData.look()])
  if (lifecycle.stopping()) return
  networkPoller = networkData.start()
  const url = await listen(ingest.app, config.INGEST_LISTEN, config.REUSE_PORT)
  listening = true
  log.info({ url, internal_url: internalUrl }, 'listening')
}

/** Waits for a lease, so that a balancer that only connects sends no request to be refused. */
async function awaitFirstLease(edge: () => Edge | null): Promise<void> {
  const untilMs = nowMs() + firstLeaseMaxMs
  while (edge()?.directory.leaseValid() !== true && nowMs() < untilMs) await sleep(20)
}

/** Opens what ingest needs from NATS, once it is connected. @returns null until then */
function openEdge(options: {
  keys: EdgeKeys
  link: NatsLink
  log: Log
  metrics: Metrics
  lifecycle: Lifecycle
  staleSecretRequests: StaleSecretRequests
  tally: AcceptedTally
  requestLog: RequestLog
}): () => Edge | null {
  const { keys, link, log, metrics, lifecycle, staleSecretRequests, tally, requestLog } = options
  let edge: Edge | null = null
  link.opened.then(
    (nats) => {
      const edgeId = randomBytes(9).toString('base64url')
      const directory = openTenantDirectory({ nats, keys, log, metrics, edgeId, nowMs })
      const prover = keys.proverOf('edge report')
      const reporter = startStaleSecretReporter({
        nats,
        prover,
        edgeId,
        log,
        metrics,
        ...staleSecretRequests,
      })
      const { drainChanged, requeue } = tally
      const claims = startClaimReporter({
        nats,
        prover,
        edgeId,
        log,
        metrics,
        drainChanged,
        requeue,
      })
      const answers = answerRequestLogQueries({
        nats,
        prover: keys.proverOf('request log'),
        log,
        edgeId: directory.edgeId,
        read: requestLog.read,
        forget: requestLog.forget,
      })
      const { countEdges } = directory
      const batchProver = keys.batches
      const streams = nats.telemetryStreams.map((stream) => ({
        publish: createTelemetryPublisher(nats, stream, batchProver),
        backlog: openBacklogLimit({ nats, stream, log, metrics, countEdges }),
      }))
      edge = {
        directory,
        streams,
        connected: nats.connected,
        close: async () => {
          answers.close()
          for (const { backlog } of streams) await backlog.close()
          await directory.close()
          await reporter.close()
          await claims.close()
        },
      }
      if (lifecycle.stopping()) void edge.close()
    },
    () => undefined,
  )
  lifecycle.onStop('edge', () => edge?.close())
  return () => edge
}

run(main)

/**
 * The ingest process: listens at once, takes telemetry as soon as NATS and the tenant directory
 * allow it, and drains what it has taken before it ends.
 */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { startClaimReporter } from '#shared/io/accepted-claims.ts'
import { closeHttp } from '#shared/io/close-http.ts'
import { openTenantDirectory } from '#shared/io/edge-directory.ts'
import { listen } from '#shared/io/http-server.ts'
import { serveInternally } from '#shared/io/internal-server.ts'
import { createLifecycle, type Lifecycle, run } from '#shared/io/lifecycle.ts'
import { createLog, type Log } from '#shared/io/log.ts'
import { createMetrics, type Metrics } from '#shared/io/metrics.ts'
import { connectNats } from '#shared/io/nats.ts'
import { startRetiredUseReporter } from '#shared/io/retired-use.ts'
import { createSealer, toMasterKeys } from '#shared/io/sealed-secrets.ts'
import { createTelemetryPublisher } from '#shared/io/telemetry-publisher.ts'
import { type AcceptedTally, createAcceptedTally } from './accepted-tally.ts'
import { createIngest, type Edge } from './app.ts'
import { type IngestConfig, readIngestConfig } from './config.ts'
import { createRetiredUse, type RetiredUse } from './retired-use.ts'
import { openUndecidedRoom } from './undecided-room.ts'

const nowMs = () => performance.now()

/**
 * How long unfinished requests may hold up a stop; draining and leaving follow within its limit.
 */
const unfinishedMs = 4_500

async function main(): Promise<void> {
  const config = readIngestConfig(process.env)
  const log = createLog('ingest', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, config.PARENT_PID)
  const metrics = createMetrics('ingest')

  const retiredUse = createRetiredUse(metrics, nowMs)
  const tally = createAcceptedTally()
  const edge = openEdge({ config, log, metrics, lifecycle, retiredUse, tally })
  const ingest = createIngest({
    log,
    metrics,
    edge,
    stopping: lifecycle.stopping,
    retiredUse,
    tally,
    decoyKey: createSecretKey(randomBytes(43)),
    newBatchId: () => `bat_${randomUUID()}`,
    nowMs,
    wallMs: Date.now,
    trustedProxies: config.TRUSTED_PROXIES,
  })
  const { readyChecks, warnings } = ingest
  const address = config.INGEST_INTERNAL_LISTEN
  const internal = { lifecycle, log, metrics, readyChecks, warnings, address }
  const internalUrl = await serveInternally(internal)
  lifecycle.onStop('drain', ingest.drained)
  lifecycle.onStop('http', () => closeHttp(ingest.app, unfinishedMs))
  const url = await listen(ingest.app, config.INGEST_LISTEN, config.REUSE_PORT)
  log.info({ url, internal_url: internalUrl }, 'listening')
}

/** Connects in the background: without NATS the process lives, answers its health and refuses. */
function openEdge(options: {
  config: IngestConfig
  log: Log
  metrics: Metrics
  lifecycle: Lifecycle
  retiredUse: RetiredUse
  tally: AcceptedTally
}): () => Edge | null {
  const { config, log, metrics, lifecycle, retiredUse, tally } = options
  let edge: Edge | null = null
  const sealer = createSealer(toMasterKeys(config))
  connectNats(config.NATS_URL, 'ingest', log, config.NATS_REPLICAS).then(
    (connected) => {
      const nats = { ...connected, telemetryBytesMax: config.TELEMETRY_STREAM_MAX_BYTES }
      const edgeId = randomBytes(9).toString('base64url')
      const directory = openTenantDirectory({ nats, sealer, log, metrics, edgeId, nowMs })
      const reporter = startRetiredUseReporter({ nats, edgeId, log, metrics, ...retiredUse })
      const { takeChanged, giveBack } = tally
      const claims = startClaimReporter({
        nats,
        edgeId,
        log,
        metrics,
        takeChanged,
        giveBack,
      })
      const room = openUndecidedRoom({ nats, log, metrics, countEdges: directory.countEdges })
      edge = {
        directory,
        room,
        connected: nats.connected,
        publish: createTelemetryPublisher(nats, log),
        close: async () => {
          await room.close()
          await directory.close()
          await reporter.close()
          await claims.close()
          await nats.close()
        },
      }
      if (lifecycle.stopping()) void edge.close()
    },
    (error: unknown) => {
      log.fatal({ err: error }, 'NATS refuses the connection')
      lifecycle.stop('NATS refuses the connection')
    },
  )
  lifecycle.onStop('edge', () => edge?.close())
  return () => edge
}

run(main)

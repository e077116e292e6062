/**
 * An edge that publishes every event separately, to measure the benefit of batches: the service's
 * own ingest with other bounds.
 */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { listen } from '#shared/io/http/http-server.ts'
import { createEdgeKeys, toEdgeKeyTexts } from '#shared/io/keys/edge-keys.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTelemetryPublisher } from '#shared/io/telemetry/telemetry-publisher.ts'
import { openTenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import { createAcceptedTally } from '../../../services/ingest/accepted-tally.ts'
import { createIngest, type Edge } from '../../../services/ingest/app.ts'
import { openBacklogLimit } from '../../../services/ingest/backlog-limit.ts'
import { openEvidence } from '../../../services/ingest/installs/open-evidence.ts'
import { createRequestLog } from '../../../services/ingest/request-log.ts'
import { createStaleSecretRequests } from '../../../services/ingest/stale-secret-requests.ts'

process.on('message', async ({ natsUrl, masterKey }: { natsUrl: string; masterKey: string }) => {
  const log = createLog('bench', 'silent')
  const metrics = createMetrics('ingest')
  const nowMs = () => performance.now()
  const nats = await connectNats(natsUrl, 'ingest', log)
  const edgeId = randomBytes(9).toString('base64url')
  const keys = createEdgeKeys(toEdgeKeyTexts([masterKey]))
  const directory = openTenantDirectory({ nats, keys, log, metrics, edgeId, nowMs })
  const { countEdges } = directory
  const edge: Edge = {
    directory,
    streams: nats.telemetryStreams.map((stream) => ({
      backlog: openBacklogLimit({ nats, stream, log, metrics, countEdges }),
      publish: createTelemetryPublisher(nats, stream, keys.batches),
    })),
    connected: nats.connected,
    close: directory.close,
  }
  const { app } = createIngest({
    natsFault: () => null,
    log,
    metrics,
    nowMs,
    wallMs: Date.now,
    edge: () => edge,
    stopping: () => false,
    staleSecretRequests: createStaleSecretRequests(metrics, nowMs),
    requestLog: createRequestLog({
      hasTenant: (tenantId) => directory.find(tenantId) !== undefined,
      wallMs: Date.now,
    }),
    tally: createAcceptedTally(),
    tracing: null,
    decoyKey: createSecretKey(randomBytes(43)),
    challengeKeys: keys.challenges,
    evidence: openEvidence(
      {},
      { lifecycle: { onStop: () => undefined }, log, metrics, wallMs: Date.now },
    ),
    newBatchId: () => `bat_${randomUUID()}`,
    commitLimits: { batchEventsMax: 1, publishesInFlightMax: 256 },
  })
  const url = await listen(app, { host: '127.0.0.1', port: 0 })
  while (!directory.leaseValid()) await new Promise((resolve) => setTimeout(resolve, 10))
  process.send!(Number(new URL(url).port))
})
process.send!('ready')

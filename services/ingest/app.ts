/**
 * Builds the HTTP server of ingest from its parts. It works before NATS is connected: until then it
 * refuses submissions and answers `/healthz`.
 */
import type { KeyObject } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { incompleteBodiesBytesMax } from '#shared/core/base/limits/http.ts'
import {
  batchBytesMax,
  batchEventsMax,
  delayedRefusalsMax,
  lingerMs,
  lingerUntilEvents,
  publishAttemptMs,
  publishesInFlightMax,
  publishTimeoutMs,
  queuedBytesMax,
  queuedRequestsMax,
  refusalDelayMs,
  scoringSliceMs,
  waitingBytesMax,
  waitingEventsMax,
} from '#shared/core/base/limits/ingest.ts'
import { verifySignature } from '#shared/core/telemetry/signature.ts'
import { createClientAddresses } from '#shared/io/http/client-address.ts'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import { createRefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { PublishBatch } from '#shared/io/telemetry/telemetry-publisher.ts'
import type { TenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import type { AcceptedTally } from './accepted-tally.ts'
import { createAdmission } from './admission.ts'
import type { BacklogLimit } from './backlog-limit.ts'
import { createBodyBudget } from './body-budget.ts'
import { type CommitLimits, createGroupCommit } from './group-commit.ts'
import {
  handleSubmission,
  ingestPath,
  type Pending,
  processSubmission,
  respondSettled,
  type Submission,
  type SubmissionDeps,
} from './http/handle-submission.ts'
import { tracePublish } from './http/trace-submissions.ts'
import { createIngestObserver, type IngestBacklog } from './metrics.ts'
import { createRefusalDelay } from './refusal-delay.ts'
import type { RequestLog } from './request-log.ts'
import type { StaleSecretRequests } from './stale-secret-requests.ts'

/** What ingest needs from NATS. */
export type Edge = {
  directory: Pick<TenantDirectory, 'find' | 'leaseValid' | 'synced' | 'fault'>
  publish: PublishBatch
  backlog: Pick<BacklogLimit, 'add' | 'mayWait' | 'warning'>
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  close: () => Promise<void>
}

type IngestDeps = {
  log: Log
  metrics: Metrics
  /** Null before the first connection to NATS. */
  edge: () => Edge | null
  stopping: () => boolean
  staleSecretRequests: StaleSecretRequests
  requestLog: Pick<RequestLog, 'noteAccepted' | 'noteRefused'>
  tally: Pick<AcceptedTally, 'count'>
  /** Null while it is off. */
  tracing: Tracing | null
  /** Why NATS is not connected, or null. */
  natsFault: () => string | null
  /** A random key as long as tenants' secrets. */
  decoyKey: KeyObject
  newBatchId: () => string
  /** The monotonic clock. */
  nowMs: () => number
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
  /** Proxies in front, as in `TRUSTED_PROXIES`; none by default. */
  trustedProxies?: readonly string[]
  /** Overrides the limit, for tests. */
  connectionsMax?: number
  /** Overrides limits, for tests and benchmarks. */
  commitLimits?: Partial<CommitLimits>
}

export type Ingest = {
  app: FastifyInstance
  /** For `/readyz`. */
  readyChecks: Record<string, ReadyCheck>
  /** Shown by `/readyz` while the process stays ready. */
  warnings: Record<string, ReadyCheck>
  /** Resolves when every admitted submission has its response. */
  drained: () => Promise<void>
}

const commitLimits: CommitLimits = {
  batchEventsMax,
  batchBytesMax,
  publishesInFlightMax,
  lingerMs,
  lingerUntilEvents,
  waitingEventsMax,
  waitingBytesMax,
  publishTimeoutMs,
  publishAttemptMs,
}

/** Builds the server. The caller listens, closes the server and waits for `drained`. */
export function createIngest(deps: IngestDeps): Ingest {
  const { edge, log, metrics } = deps
  const submissions = createSubmissionDeps(deps)
  const { refusals } = submissions
  const app = createHttpServer({
    notFoundHint: `Telemetry is sent to POST ${ingestPath}; the REST API has another address.`,
    log,
    metrics,
    refusals,
    trustedProxies: deps.trustedProxies ?? [],
    stopping: deps.stopping,
    ...(deps.connectionsMax === undefined ? {} : { connectionsMax: deps.connectionsMax }),
    direct: (request, response) => {
      if (request.method !== 'POST' || !isIngest(request.url)) return false
      handleSubmission(submissions, request, response)
      return true
    },
  })
  addRoute(app, submissions)
  const drained = async () => {
    await submissions.admission.drained()
    await submissions.commit.drained()
  }
  const readyChecks: Record<string, ReadyCheck> = {
    nats: deps.natsFault,
    directory: () => {
      const present = edge()
      return present === null ? 'is not loaded' : present.directory.fault()
    },
    storage: submissions.observe.findStorageFault,
  }
  const warnings = { stream: () => edge()?.backlog.warning() ?? null }
  return { app, readyChecks, warnings, drained }
}

function isIngest(url: string | undefined): boolean {
  return url === ingestPath || url?.startsWith(`${ingestPath}?`) === true
}

function createSubmissionDeps(deps: IngestDeps): SubmissionDeps {
  const { edge, nowMs } = deps
  const backlog: IngestBacklog = {
    waiting: () => submissions.commit.waiting(),
    queued: () => submissions.admission.queued(),
    incompleteBytes: () => submissions.bodies.bytes(),
    delayedRefusals: () => submissions.refusalDelay.delayed(),
  }
  const observe = createIngestObserver(deps.metrics, backlog, nowMs)
  const submissions: SubmissionDeps = {
    log: deps.log,
    addresses: createClientAddresses(deps.trustedProxies ?? []),
    refusals: createRefusalLog(deps.log),
    bodies: createBodyBudget(incompleteBodiesBytesMax),
    observe,
    refusalDelay: createRefusalDelay({
      later: setTimeout,
      stopping: deps.stopping,
      delayMs: refusalDelayMs,
      delayedMax: delayedRefusalsMax,
    }),
    staleSecretRequests: deps.staleSecretRequests,
    requestLog: deps.requestLog,
    tally: deps.tally,
    tracing: deps.tracing,
    stopping: deps.stopping,
    addToBacklog: (...event) => edge()?.backlog.add(...event),
    connected: () => edge()?.connected() === true,
    decide: {
      findTenant: (tenantId) => edge()?.directory.find(tenantId),
      leaseValid: () => edge()?.directory.leaseValid() === true,
      synced: () => edge()?.directory.synced() === true,
      mayWait: (tenantId, share) => edge()?.backlog.mayWait(tenantId, share) !== false,
      verify: verifySignature,
      decoyKey: deps.decoyKey,
      nowMs,
      wallMs: deps.wallMs,
    },
    admission: createAdmission<Submission>({
      process: (submission) => processSubmission(submissions, submission),
      // Without a broker submissions do not wait: each is refused.
      hasCapacity: () => !submissions.connected() || submissions.commit.hasCapacity(),
      defer: setImmediate,
      later: setTimeout,
      nowMs,
      limits: { scoringSliceMs, queuedRequestsMax, queuedBytesMax },
    }),
    commit: createGroupCommit<Pending>({
      publish: (message, batchId, timeoutMs, batch) => {
        const publish = (tracedEvents?: string) =>
          edge()!.publish(message, batchId, timeoutMs, tracedEvents)
        return deps.tracing === null ? publish() : tracePublish(batch, publish)
      },
      settle: (pending, settlement) => respondSettled(submissions, pending, settlement),
      onSettled: () => submissions.admission.resume(),
      defer: setImmediate,
      later: setTimeout,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      newBatchId: deps.newBatchId,
      nowMs,
      limits: { ...commitLimits, ...deps.commitLimits },
      observe: observe.commit,
    }),
  }
  return submissions
}

/** Adds the route, so that other methods get a 405 with `Allow`. */
function addRoute(app: FastifyInstance, submissions: SubmissionDeps): void {
  // Only an escaped spelling of the path arrives here: `direct` handles the plain one.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.hijack()
    handleSubmission(submissions, request.raw, reply.raw)
  }
  app.post(ingestPath, { onRequest, schema: { hide: true } as object }, () => undefined)
}

/**
 * The intake over HTTP: `POST /v1/rasp/ingest`, and `/healthz`. It is built before NATS is there:
 * without it the process lives, answers its health and refuses.
 */
import type { KeyObject } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  batchBytesMax,
  batchEventsMax,
  decidingMs,
  delayedRefusalsMax,
  incompleteBodiesBytesMax,
  lingerMs,
  lingerUntilEvents,
  publishAttemptMs,
  publishesInFlightMax,
  publishTimeoutMs,
  queuedBytesMax,
  queuedRequestsMax,
  refusalDelayMs,
  waitingBytesMax,
  waitingEventsMax,
} from '#shared/core/base/limits.ts'
import { verifySignature } from '#shared/core/telemetry/signature.ts'
import { createClientAddresses } from '#shared/io/http/client-address.ts'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import { createRefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { PublishBatch } from '#shared/io/telemetry/telemetry-publisher.ts'
import type { TenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import type { AcceptedTally } from './accepted-tally.ts'
import { createAdmission } from './admission.ts'
import { createBodyBudget } from './body-budget.ts'
import { type CommitLimits, createGroupCommit } from './group-commit.ts'
import {
  answerPending,
  decideSubmission,
  type Intake,
  ingestPath,
  type Pending,
  receiveTelemetry,
  type Submission,
} from './intake.ts'
import { createIngestObserver } from './observe.ts'
import { createRefusalDelay } from './refusal-delay.ts'
import type { StaleSecretRequests } from './stale-secret-requests.ts'
import type { UndecidedRoom } from './undecided-room.ts'

/** What the intake works with once NATS is there. */
export type Edge = {
  directory: Pick<TenantDirectory, 'find' | 'leaseValid' | 'synced' | 'fault'>
  publish: PublishBatch
  room: Pick<UndecidedRoom, 'stored' | 'mayWait' | 'warning'>
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  close: () => Promise<void>
}

export type IngestDeps = {
  log: Log
  metrics: Metrics
  /** Null until NATS has been reached for the first time. */
  edge: () => Edge | null
  stopping: () => boolean
  /** Counts what was signed with a secret that a rotation replaced. */
  staleSecretRequests: StaleSecretRequests
  /** Counts what is answered with a 200, for reconciliation. */
  tally: Pick<AcceptedTally, 'count'>
  /** Why NATS does not answer, or null. */
  natsFault: () => string | null
  /** A key that no tenant has, of the length that tenants' secrets have. */
  decoyKey: KeyObject
  newBatchId: () => string
  /** The monotonic clock. */
  nowMs: () => number
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
  /** Proxies in front, as in `TRUSTED_PROXIES`; none by default. */
  trustedProxies?: readonly string[]
  /** Other than the service's own bound, for tests. */
  connectionsMax?: number
  /** Other bounds of group commit than the service's own. */
  commitLimits?: Partial<CommitLimits>
}

export type Ingest = {
  app: FastifyInstance
  /** What the edge needs to do its job, for `/readyz`. */
  readyChecks: Record<string, ReadyCheck>
  /** What an operator is to know meanwhile. */
  warnings: Record<string, ReadyCheck>
  /** Resolves once everything taken is answered. */
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

/**
 * Builds the server; the caller listens and, in the end, closes it and waits until it is drained.
 */
export function createIngest(deps: IngestDeps): Ingest {
  const { edge, log, metrics } = deps
  const intake = createIntake(deps)
  const { refusals } = intake
  const app = createHttpServer({
    log,
    metrics,
    refusals,
    trustedProxies: deps.trustedProxies ?? [],
    ...(deps.connectionsMax === undefined ? {} : { connectionsMax: deps.connectionsMax }),
    direct: (request, response) => {
      if (request.method !== 'POST' || !isIngest(request.url)) return false
      receiveTelemetry(intake, request, response)
      return true
    },
  })
  addRoute(app, intake)
  const drained = async () => {
    await intake.admission.drained()
    await intake.commit.drained()
  }
  const readyChecks: Record<string, ReadyCheck> = {
    nats: deps.natsFault,
    directory: () => {
      const present = edge()
      return present === null ? 'is not loaded' : present.directory.fault()
    },
    storage: intake.observe.findStorageFault,
  }
  const warnings = { stream: () => edge()?.room.warning() ?? null }
  return { app, readyChecks, warnings, drained }
}

function isIngest(url: string | undefined): boolean {
  return url === ingestPath || url?.startsWith(`${ingestPath}?`) === true
}

function createIntake(deps: IngestDeps): Intake {
  const { edge, nowMs } = deps
  const observe = createIngestObserver(deps.metrics, {
    nowMs,
    waiting: () => intake.commit.waiting(),
    queued: () => intake.admission.queued(),
    incompleteBytes: () => intake.bodies.bytes(),
    delayedRefusals: () => intake.hold.held(),
  })
  const intake: Intake = {
    log: deps.log,
    addresses: createClientAddresses(deps.trustedProxies ?? []),
    refusals: createRefusalLog(deps.log),
    bodies: createBodyBudget(incompleteBodiesBytesMax),
    observe,
    hold: createRefusalDelay({
      later: setTimeout,
      stopping: deps.stopping,
      holdMs: refusalDelayMs,
      heldMax: delayedRefusalsMax,
    }),
    staleSecretRequests: deps.staleSecretRequests,
    tally: deps.tally,
    stopping: deps.stopping,
    stored: (...event) => edge()?.room.stored(...event),
    connected: () => edge()?.connected() === true,
    edge: {
      findTenant: (tenantId) => edge()?.directory.find(tenantId),
      leaseValid: () => edge()?.directory.leaseValid() === true,
      synced: () => edge()?.directory.synced() === true,
      mayWait: (tenantId, share) => edge()?.room.mayWait(tenantId, share) !== false,
      verify: verifySignature,
      decoyKey: deps.decoyKey,
      nowMs,
      wallMs: deps.wallMs,
    },
    admission: createAdmission<Submission>({
      decide: (submission) => decideSubmission(intake, submission),
      // Without a broker nothing is held: each is told so.
      hasRoom: () => !intake.connected() || intake.commit.hasRoom(),
      defer: setImmediate,
      later: setTimeout,
      nowMs,
      limits: { decidingMs, queuedRequestsMax, queuedBytesMax },
    }),
    commit: createGroupCommit<Pending>({
      publish: (message, batchId, timeoutMs) => edge()!.publish(message, batchId, timeoutMs),
      settle: (pending, settlement) => answerPending(intake, pending, settlement),
      onSettled: () => intake.admission.resume(),
      defer: setImmediate,
      later: setTimeout,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      newBatchId: deps.newBatchId,
      nowMs,
      limits: { ...commitLimits, ...deps.commitLimits },
      observe: observe.commit,
    }),
  }
  return intake
}

/** Makes the address known, so that other methods are told what it takes. */
function addRoute(app: FastifyInstance, intake: Intake): void {
  // Only a spelling of the address that the direct way does not know, escaped, gets here.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.hijack()
    receiveTelemetry(intake, request.raw, reply.raw)
  }
  app.post(ingestPath, { onRequest, schema: { hide: true } as object }, () => undefined)
}

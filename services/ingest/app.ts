/**
 * Builds the HTTP server of ingest from its parts. It works before NATS is connected: until then it
 * refuses submissions and answers `/healthz`.
 */
import { hash, type KeyObject } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { incompleteBodiesBytesMax } from '#shared/core/base/limits/http.ts'
import {
  batchBytesMax,
  batchEventsMax,
  delayedRefusalsMax,
  incompleteBatchesBytesMax,
  lingerMs,
  lingerUntilEvents,
  publishAttemptMs,
  publishesInFlightMax,
  publishTimeoutMs,
  refusalDelayMs,
  waitingBytesMax,
  waitingEventsMax,
} from '#shared/core/base/limits/ingest.ts'
import { incompleteRegistrationsBytesMax } from '#shared/core/base/limits/installs.ts'
import { createFairShares } from '#shared/core/http/fair-shares.ts'
import { toInstallRoot } from '#shared/core/installs/install-token.ts'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { verifySignature } from '#shared/core/telemetry/signature.ts'
import {
  listTelemetryStreams,
  type TelemetryStream,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { createClientAddresses } from '#shared/io/http/client-address.ts'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import { createBodyBudget } from '#shared/io/http/incoming/body-budget.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import { createRefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { PublishBatch } from '#shared/io/telemetry/telemetry-publisher.ts'
import type { TenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import type { AcceptedTally } from './accepted-tally.ts'
import type { BacklogLimit } from './backlog-limit.ts'
import { createPressureReader } from './edge-pressure.ts'
import type { CommitLimits } from './group-commit.ts'
import { handleClientBatch, processClientBatch, refuseBatch } from './http/handle-client-batch.ts'
import {
  batchPath,
  endUnsettled,
  handleSubmission,
  ingestPath,
  installsPath,
  isPath,
  type Pending,
  type PendingRegistration,
  processSubmission,
  respondRefused,
  respondSettled,
  type Submission,
  type SubmissionDeps,
} from './http/handle-submission.ts'
import { tracePublish } from './http/trace-submissions.ts'
import { challengePath, handleChallenge } from './installs/handle-challenge.ts'
import {
  handleRegistration,
  processRegistration,
  type RegistrationDeps,
  refuseRegistration,
} from './installs/handle-registration.ts'
import type { OpenedEvidence } from './installs/open-evidence.ts'
import { createRegistrationBounds } from './installs/registration-bounds.ts'
import { createRegistrationObserver } from './installs/registration-metrics.ts'
import { createIntakes } from './intakes.ts'
import { createIngestObserver, type IngestBacklog } from './metrics.ts'
import { createRefusalDelay } from './refusal-delay.ts'
import { refusals } from './refusals.ts'
import type { RequestLog } from './request-log.ts'
import type { StaleSecretRequests } from './stale-secret-requests.ts'
import { createVerdictIssuer } from './verdicts/issue-verdict.ts'

/** What ingest needs of a telemetry stream. */
export type EdgeStream = {
  publish: PublishBatch
  backlog: Pick<BacklogLimit, 'add' | 'mayWait' | 'warning'>
}

/** What ingest needs from NATS. */
export type Edge = {
  directory: Pick<
    TenantDirectory,
    'find' | 'leaseValid' | 'synced' | 'keysKnown' | 'fault' | 'verdictSigner'
  >
  /** In the order of their numbers. */
  streams: readonly EdgeStream[]
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  close: () => Promise<void>
}

type IngestDeps = {
  log: Log
  metrics: Metrics
  /** The telemetry streams that it writes to; the first one by default. */
  telemetryStreams?: readonly TelemetryStream[]
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
  /** What addresses are looked up in; left out or null, nothing is measured. */
  network?: () => NetworkSources | null
  /** A random key as long as tenants' secrets. */
  decoyKey: KeyObject
  /** Keys of challenges, 32 bytes each: the first one makes them, all of them check. */
  challengeKeys: readonly [Uint8Array, ...Uint8Array[]]
  /** What verifies the evidence of installs and of their events. */
  evidence: Pick<OpenedEvidence, 'verifyEvidence' | 'verifyEvent' | 'revoked'>
  newBatchId: () => string
  /** The claim `iss` of verdict tokens; `defaultIssuer` by default. */
  issuer?: string | undefined
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

/** An edge that is not ready gets nothing: its load would move to the others, one after another. */
const overloadWarning = 'is overloaded: more telemetry comes than can be decided, some is refused'

/** The claim `iss` where neither SERVICE_ISSUER nor PUBLIC_API_URL is set. */
const defaultIssuer = 'device-intelligence'

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
  const { edge, log, metrics, telemetryStreams: streams = listTelemetryStreams(1) } = deps
  const registrations = createRegistrationDeps(deps, () => submissions)
  const submissions = createSubmissionDeps(deps, streams, registrations)
  const { refusals, observe } = submissions
  const challenges = {
    key: deps.challengeKeys[0],
    wallMs: deps.wallMs,
    stopping: deps.stopping,
    challenged: registrations.observe.challenged,
  }
  const app = createHttpServer({
    notFoundHint: `Telemetry is sent to POST ${ingestPath}, many events to POST ${batchPath}; the REST API has another address.`,
    log,
    metrics,
    refusals,
    trustedProxies: deps.trustedProxies ?? [],
    stopping: deps.stopping,
    ...(deps.connectionsMax === undefined ? {} : { connectionsMax: deps.connectionsMax }),
    direct: (request, response) => {
      const { method, url } = request
      if (method === 'POST') {
        if (isPath(url, ingestPath)) handleSubmission(submissions, request, response)
        else if (isPath(url, batchPath)) handleClientBatch(submissions, request, response)
        else if (isPath(url, installsPath)) handleRegistration(registrations, request, response)
        else return false
      } else if (method === 'GET' && isPath(url, challengePath)) {
        handleChallenge(challenges, request, response)
      } else return false
      return true
    },
  })
  const routes: [Method, string, Handle][] = [
    ['POST', ingestPath, (...exchange) => handleSubmission(submissions, ...exchange)],
    ['POST', batchPath, (...exchange) => handleClientBatch(submissions, ...exchange)],
    ['POST', installsPath, (...exchange) => handleRegistration(registrations, ...exchange)],
    ['GET', challengePath, (...exchange) => handleChallenge(challenges, ...exchange)],
  ]
  for (const route of routes) addRoute(app, ...route)
  const readyChecks: Record<string, ReadyCheck> = {
    nats: deps.natsFault,
    directory: () => {
      const present = edge()
      return present === null ? 'is not loaded' : present.directory.fault()
    },
    storage: observe.findStorageFault,
  }
  const streamWarnings = Object.fromEntries(
    streams.map(({ number, suffix }) => [
      `stream${suffix}`,
      () =>
        edge()?.streams[number - 1]?.backlog.warning() ??
        observe.findStreamFault(number) ??
        (submissions.intakes.overloaded(number) ? overloadWarning : null),
    ]),
  )
  const { intakes } = submissions
  const drained = async () => {
    await intakes.drained()
    await registrations.bounds.drained()
    await Promise.all(submissions.evidenceWaits)
    await intakes.drained()
  }
  const warnings: Record<string, ReadyCheck> = {
    ...streamWarnings,
    'verdict key': () => {
      const present = edge()
      if (present === null || present.directory.verdictSigner() !== null) return null
      return 'is not known, so submissions get no verdict token'
    },
  }
  return { app, readyChecks, warnings, drained }
}

/** @param submissions made after it */
function createRegistrationDeps(
  deps: IngestDeps,
  submissions: () => SubmissionDeps,
): RegistrationDeps {
  const bounds = createRegistrationBounds(deps.nowMs)
  return {
    get submissions() {
      return submissions()
    },
    bodies: createBodyBudget(incompleteRegistrationsBytesMax),
    challengeKeys: deps.challengeKeys,
    verifyEvidence: deps.evidence.verifyEvidence,
    bounds,
    observe: createRegistrationObserver(deps.metrics, bounds.count),
  }
}

function createSubmissionDeps(
  deps: IngestDeps,
  streams: readonly TelemetryStream[],
  registrations: RegistrationDeps,
): SubmissionDeps {
  const { edge, nowMs } = deps
  const queueFill = () => submissions.intakes.waiting().events / waitingEventsMax
  const shares = createFairShares(createPressureReader(queueFill), nowMs())
  const backlog: IngestBacklog = {
    waiting: () => submissions.intakes.waiting(),
    queued: () => submissions.intakes.queued(),
    incompleteBytes: () =>
      submissions.bodies.bytes() + submissions.batchBodies.bytes() + registrations.bodies.bytes(),
    delayedRefusals: () => submissions.refusalDelay.delayed(),
  }
  const observe = createIngestObserver(deps.metrics, { backlog, shares, streams, nowMs })
  const submissions: SubmissionDeps = {
    log: deps.log,
    addresses: createClientAddresses(deps.trustedProxies ?? []),
    refusals: createRefusalLog(deps.log),
    bodies: createBodyBudget(incompleteBodiesBytesMax),
    batchBodies: createBodyBudget(incompleteBatchesBytesMax),
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
    verifyEvent: deps.evidence.verifyEvent,
    evidenceWaits: new Set(),
    addToBacklog: (stream, ...event) => edge()?.streams[stream - 1]?.backlog.add(...event),
    connected: () => edge()?.connected() === true,
    decide: {
      findTenant: (tenantId) => edge()?.directory.find(tenantId),
      leaseValid: () => edge()?.directory.leaseValid() === true,
      keysKnown: () => {
        const directory = edge()?.directory
        return directory?.synced() === true && directory.keysKnown()
      },
      mayWait: ({ tenantId, telemetryStream, undecidedShare }) => {
        const backlog = edge()?.streams[telemetryStream - 1]?.backlog
        return backlog?.mayWait(tenantId, undecidedShare) !== false
      },
      shares,
      verify: verifySignature,
      decoyKey: deps.decoyKey,
      decoyRoot: toInstallRoot(1, hash('sha256', deps.decoyKey.export(), 'buffer')),
      nowMs,
      wallMs: deps.wallMs,
      revoked: deps.evidence.revoked,
      network: deps.network ?? (() => null),
      issueVerdict: createVerdictIssuer({
        findSigner: () => edge()?.directory.verdictSigner() ?? null,
        issuer: deps.issuer ?? defaultIssuer,
        log: deps.log,
      }),
    },
    intakes: createIntakes<Submission, Pending | PendingRegistration>({
      connected: () => submissions.connected(),
      process: (submission) => {
        if (submission.kind === 'registration') processRegistration(registrations, submission)
        else if (submission.kind === 'batch') processClientBatch(submissions, submission)
        else processSubmission(submissions, submission)
      },
      refuse: ({ kind, response }) => {
        if (kind === 'registration') refuseRegistration(registrations, response, refusals.overload)
        else if (kind === 'batch') refuseBatch(submissions, response, refusals.overload)
        else respondRefused(submissions, response, refusals.overload)
      },
      guessStream: (submission) => {
        const named = findTenant(submission.body)
        submission.named = named
        const tenant = named === null ? undefined : edge()?.directory.find(named)
        return tenant?.telemetryStream ?? 1
      },
      streamOf: ({ acceptance }) => acceptance.telemetryStream,
      publish: (stream, message, batchId, timeoutMs, batch) => {
        const publish = (tracedEvents?: string) =>
          edge()!.streams[stream - 1]!.publish(message, batchId, timeoutMs, tracedEvents)
        return deps.tracing === null ? publish() : tracePublish(batch, publish)
      },
      settle: (pending, settlement) => {
        if ('respond' in pending) pending.respond(settlement)
        else respondSettled(submissions, pending, settlement)
      },
      onSettleFailed: (pending, error) => endUnsettled(submissions, pending, error),
      observers: observe.commits,
      newBatchId: deps.newBatchId,
      nowMs,
      commitLimits: { ...commitLimits, ...deps.commitLimits },
    }),
  }
  return submissions
}

type Method = 'GET' | 'POST'
type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** Adds a route, so that other methods get a 405 with `Allow`. */
function addRoute(app: FastifyInstance, method: Method, url: string, handle: Handle): void {
  // Only an escaped spelling of the path arrives here: `direct` handles the plain one.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.hijack()
    handle(request.raw, reply.raw)
  }
  const schema = { hide: true } as object
  app.route({ method, url, onRequest, schema, handler: () => undefined })
}

/**
 * The delivery engine: finds due deliveries, sends them and records the outcomes. It needs only
 * Postgres; hints call `wake` to save the wait for the next sweep. Any number of engines may work
 * on one database. Data flow: sweep or hint -> claim loop -> attempt -> outcome recorder.
 */
import { LRUCache } from 'lru-cache'
import {
  deliveryClaimMs,
  deliverySweepMs,
  webhookFailedAttemptsMin,
  webhookFailingMaxMs,
  webhooksCachedMax,
  webhookTimeoutMs,
} from '#shared/core/base/limits/deliveries.ts'
import type { Network } from '#shared/core/deliveries/outbound-address.ts'
import { toWebhookKeys, type WebhookKeys } from '#shared/core/deliveries/webhook-signing.ts'
import type { ClaimedDelivery, DeliveryQueue } from '#shared/io/deliveries/claim-deliveries.ts'
import { createDeliveryStore, type DeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import type { Outbound } from '#shared/io/deliveries/outbound/outbound-client.ts'
import type { RecordedHealth } from '#shared/io/deliveries/record-outcomes.ts'
import type { Opener } from '#shared/io/keys/sealed-secrets.ts'
import { type Postgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import { createClaimLoop } from './claim/claim-loop.ts'
import { createSendLimiter, type SendLimits } from './claim/send-limiter.ts'
import { startSweep } from './claim/sweep.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import {
  type AttemptDeps,
  attemptDelivery,
  type FreshClaim,
  type ReleaseReason,
} from './send/attempt-delivery.ts'
import { createCircuitBreaker } from './send/circuit-breaker.ts'
import { toLogFields } from './send/log-fields.ts'
import { createOutcomeRecorder } from './send/outcome-recorder.ts'
import { createReadWebhook } from './send/read-webhook.ts'
import { traceAttempt } from './send/trace-attempt.ts'
import { createFindTarget } from './send/webhook-targets.ts'
import { createStopSignal } from './stop-signal.ts'

type EngineDeps = {
  postgres: Postgres
  outbound: Outbound
  /** Of webhook secrets. */
  opener: Opener
  /** Null while it is off. */
  tracing: Tracing | null
  log: Log
  metrics: Metrics
  /** The wall clock, for timestamps that receivers see. */
  nowMs: () => number
  monotonicMs: () => number
  random: () => number
  /** A globally unique id for a claim. */
  newId: () => string
}

export type EngineSettings = {
  limits: SendLimits
  allowPrivate: boolean
  allowNetworks?: readonly Network[]
  sweepMs?: number
  claimMs?: number
  timeoutMs?: number
}

export type Engine = {
  wake: (queue: DeliveryQueue) => void
  metrics: ReturnType<typeof createDeliveryMetrics>
  /**
   * Stops claiming, waits for requests in flight, aborts the rest and releases their claims.
   * @param graceMs how long to wait for requests in flight
   */
  stop: (graceMs: number) => Promise<void>
}

/**
 * After a Postgres failure expired claims are not taken over for this long: their processes may
 * still have outcomes to record.
 */
const takeOverPauseMs = 10_000
/**
 * How long a stop waits for the last outcomes: a delivery without a recorded outcome is sent again.
 */
const recordGraceMs = 2_000

/** Builds an engine and starts its sweep. */
export function startEngine(deps: EngineDeps, settings: EngineSettings): Engine {
  const { postgres, log, monotonicMs } = deps
  const limiter = createSendLimiter(settings.limits)
  const metrics = createDeliveryMetrics(deps.metrics, limiter.inFlight)
  const stopping = createStopSignal()
  const observed = observeFailures(postgres, monotonicMs)
  const store = createDeliveryStore(observed.postgres)
  const breaker = createCircuitBreaker()
  const recorder = createOutcomeRecorder({
    record: (outcomes) => store.recordOutcomes(outcomes, monotonicMs()),
    onHealth: (health) => handleHealth({ store, metrics, log, wake: loop.wake }, health),
    monotonicMs,
    log,
    metrics,
  })
  const attemptDeps = createAttemptDeps(deps, settings, { store, breaker, metrics })
  const loop = createClaimLoop({
    claim: async (queues) => {
      const claimMs = settings.claimMs ?? deliveryClaimMs
      const startMs = monotonicMs()
      const claimed = await store.claimDeliveries({
        queues,
        claim: deps.newId(),
        claimMs,
        takeOver: observed.healthyForMs() > takeOverPauseMs,
      })
      return claimed.map((one) => toFreshClaim(one, { startMs, claimMs }))
    },
    attempt: (one) =>
      traceAttempt(deps.tracing, one, (claimed) => attemptDelivery(claimed, attemptDeps, stopping)),
    limiter,
    recorder,
    monotonicMs,
    log,
    metrics,
  })
  const sweep = startSweep({
    findDueQueues: store.findDueQueues,
    countDue: store.countDue,
    findFailing: store.findFailingWebhooks,
    wake: loop.wake,
    everyMs: settings.sweepMs ?? deliverySweepMs,
    monotonicMs,
    log,
    metrics,
  })
  return {
    wake: loop.wake,
    metrics,
    stop: async (graceMs) => {
      loop.stop()
      await within(loop.idle(), graceMs)
      stopping.stop()
      await loop.idle()
      await within(recorder.drained(), recordGraceMs)
      recorder.stop()
      await sweep.stop()
    },
  }
}

/** What an attempt needs: connections, the current webhook with its secret, clocks, and metrics. */
function createAttemptDeps(
  deps: EngineDeps,
  settings: EngineSettings,
  { store, breaker, metrics }: AttemptParts,
): AttemptDeps {
  const { log, nowMs, monotonicMs } = deps
  return {
    connect: deps.outbound.connect,
    readWebhook: createReadWebhook({
      read: store.readWebhooks,
      extendLease: async (leaseMs) => {
        await store.extendSecretLease(leaseMs)
        metrics.leaseExtensions.inc()
        log.warn(
          { lease_ms: leaseMs },
          'Postgres is slow: rotations of webhook secrets wait longer',
        )
      },
      monotonicMs,
    }),
    openKeys: createKeyCache(deps.opener),
    recordAttempt: (tenantId, url, attempt) =>
      breaker.record(tenantId, url, { ...attempt, atMs: monotonicMs() }),
    findTarget: createFindTarget({
      allowPrivate: settings.allowPrivate,
      allowNetworks: settings.allowNetworks ?? [],
    }),
    nowMs,
    monotonicMs,
    random: deps.random,
    onSend: ({ attempts, createdAtMs }) => {
      if (attempts > 0) return
      metrics.firstAttemptSeconds.observe(Math.max(0, monotonicMs() - createdAtMs) / 1_000)
    },
    onRedial: () => metrics.redials.inc(),
    onRelease: (claimed, why, error) => {
      metrics.released.inc({ reason: why })
      logRelease(log, toLogFields(claimed), why, error)
    },
    timeoutMs: settings.timeoutMs ?? webhookTimeoutMs,
  }
}

type AttemptParts = {
  store: DeliveryStore
  breaker: ReturnType<typeof createCircuitBreaker>
  metrics: DeliveryMetrics
}

/** Logs a change of a webhook's circuit once, and acts on it. */
async function handleHealth(
  { store, metrics, log, wake }: HealthDeps,
  health: RecordedHealth,
): Promise<void> {
  const { tenantId, failingForMs, failedAttempts, wasCircuitOpen, isCircuitOpen } = health
  const about = { tenant_id: tenantId, failed_attempts: failedAttempts }
  if (failingForMs === null) {
    if (!wasCircuitOpen) return
    metrics.circuitChanges.inc({ state: 'closed' })
    log.info(about, 'a webhook works again: its circuit is closed')
    for (const retry of [false, true]) wake({ tenantId, retry })
    return
  }
  if (!wasCircuitOpen && isCircuitOpen) {
    metrics.circuitChanges.inc({ state: 'open' })
    log.warn(about, 'a webhook fails: its circuit is open, half-open probes follow')
  }
  const isLong = failingForMs >= webhookFailingMaxMs
  if (!isLong || failedAttempts < webhookFailedAttemptsMin) return
  if (!(await store.switchFailingOff(health))) return
  metrics.switchedOff.inc({ reason: 'failing' })
  log.warn(about, 'a webhook has failed for five days: it is switched off')
}

type HealthDeps = {
  store: DeliveryStore
  metrics: DeliveryMetrics
  log: Log
  wake: (queue: DeliveryQueue) => void
}

/** Converts a claim's times to the monotonic clock, counted from before the claim was sent. */
function toFreshClaim(
  { ageMs, secretLeaseMs, webhook, ...claimed }: ClaimedDelivery,
  { startMs, claimMs }: { startMs: number; claimMs: number },
): FreshClaim {
  return {
    ...claimed,
    claimedUntilMs: startMs + claimMs,
    createdAtMs: startMs - ageMs,
    webhook: { ...webhook, signUntilMs: startMs + secretLeaseMs },
  }
}

/** Caches unsealed secrets. During a rotation two of a tenant sign. */
function createKeyCache(opener: Opener): AttemptDeps['openKeys'] {
  const opened = new LRUCache<string, WebhookKeys>({ max: webhooksCachedMax })
  return (sealed, tenantId) => {
    const id = `${tenantId} ${sealed}`
    const keys =
      opened.get(id) ?? toWebhookKeys(opener.unseal(sealed, { tenantId, kind: 'webhook' }))
    opened.set(id, keys)
    return keys
  }
}

function logRelease(log: Log, about: object, why: ReleaseReason, error: unknown): void {
  if (why === 'unsealable' || why === 'error') {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    log.error({ ...about, err: cause, why }, 'a delivery could not be attempted')
  } else {
    log.debug({ ...about, why }, 'a delivery was not attempted')
  }
}

/** Records when Postgres last failed. */
function observeFailures(postgres: Postgres, monotonicMs: () => number) {
  let failedAtMs = Number.NEGATIVE_INFINITY
  const observe = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      if (error instanceof PostgresUnavailableError) failedAtMs = monotonicMs()
      throw error
    }
  }
  const observed: Postgres = {
    ...postgres,
    query: (sql, values) => observe(postgres.query(sql, values)),
    transaction: (work) => observe(postgres.transaction(work)),
  }
  return { postgres: observed, healthyForMs: () => monotonicMs() - failedAtMs }
}

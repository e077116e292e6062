/**
 * The delivery engine: Postgres, the outbound side and the clock put together. It needs nothing but
 * Postgres to find and send what is due; whoever has a hint calls `wake`. Any number of engines may
 * work on one database.
 */
import { LRUCache } from 'lru-cache'
import {
  deliveryClaimMs,
  deliverySweepMs,
  webhookFailedAttemptsMin,
  webhookFailingMaxMs,
  webhooksRememberedMax,
  webhookTimeoutMs,
} from '#shared/core/deliveries/delivery-limits.ts'
import type { Network } from '#shared/core/deliveries/outbound-address.ts'
import { toWebhookKeys, type WebhookKeys } from '#shared/core/deliveries/webhook-signing.ts'
import type { ClaimedDelivery, Lane } from '#shared/io/deliveries/delivery-claim-store.ts'
import { createDeliveryStore, type RecordedHealth } from '#shared/io/deliveries/delivery-store.ts'
import type { Outbound } from '#shared/io/deliveries/outbound-http.ts'
import { type Postgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'
import type { Sealer } from '#shared/io/tenants/sealed-secrets.ts'
import { type Ask, createClaimLoop } from './claim/claim-due.ts'
import { createSlots, type SlotBounds } from './claim/slots.ts'
import { startSweep } from './claim/sweep-due.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { createBreaker } from './send/breaker.ts'
import {
  type DeliverDeps,
  deliverAlert,
  type FreshClaim,
  type ReleaseReason,
} from './send/deliver-alert.ts'
import { createReadWebhook } from './send/read-webhook.ts'
import { createRecorder } from './send/record-outcomes.ts'
import { createFindTarget } from './send/webhook-targets.ts'
import { createStop } from './stop.ts'

export type EngineDeps = {
  postgres: Postgres
  outbound: Outbound
  sealer: Sealer
  log: Log
  metrics: Metrics
  /** The wall clock, for receivers; nothing of ours is compared with it. */
  nowMs: () => number
  monotonicMs: () => number
  random: () => number
  /** Unique in the world: names this process's claims. */
  newId: () => string
}

export type EngineSettings = {
  bounds: SlotBounds
  allowPrivate: boolean
  allowNetworks?: readonly Network[]
  sweepMs?: number
  claimMs?: number
  timeoutMs?: number
}

export type Engine = {
  wake: (lane: Lane) => void
  metrics: ReturnType<typeof createDeliveryMetrics>
  /**
   * Claims nothing more, lets what is in flight end, gives up the rest and gives its claims back.
   * @param graceMs for requests in flight
   */
  stop: (graceMs: number) => Promise<void>
}

/** How long after a failure of Postgres other processes get to record what they did meanwhile. */
const takeOverPauseMs = 10_000
/**
 * For the last outcomes to be written, once nothing is in flight any more: what is not written is
 * sent again, so it gets most of what a stop has left.
 */
const recordGraceMs = 2_000

/** Builds an engine and starts its sweep. */
export function startEngine(deps: EngineDeps, settings: EngineSettings): Engine {
  const { postgres, log, nowMs, monotonicMs } = deps
  const slots = createSlots(settings.bounds)
  const metrics = createDeliveryMetrics(deps.metrics, slots.inFlight)
  const stopping = createStop()
  const watched = watchFailures(postgres, monotonicMs)
  const store = createDeliveryStore(watched.postgres)
  const breaker = createBreaker()
  const recorder = createRecorder({
    record: (outcomes) => store.recordOutcomes(outcomes, monotonicMs()),
    onHealth: (health) => onHealth(health),
    monotonicMs,
    log,
    metrics,
  })
  const deliverDeps: DeliverDeps = {
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
    openKeys: rememberKeys(deps.sealer),
    noteAttempt: (tenantId, url, ok) => breaker.note(tenantId, url, ok, monotonicMs()),
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
      logRelease(log, { delivery_id: claimed.deliveryId, tenant_id: claimed.tenantId }, why, error)
    },
    timeoutMs: settings.timeoutMs ?? webhookTimeoutMs,
  }
  const loop = createClaimLoop({
    claim: async (asks: readonly Ask[]) => {
      const claimMs = settings.claimMs ?? deliveryClaimMs
      const begunMs = monotonicMs()
      const claimed = await store.claimDeliveries({
        asks,
        claim: deps.newId(),
        claimMs,
        takeOver: watched.quietForMs() > takeOverPauseMs,
      })
      return claimed.map((one) => toFreshClaim(one, { begunMs, claimMs }))
    },
    deliver: (claimed) => deliverAlert(claimed, deliverDeps, stopping),
    slots,
    recorder,
    monotonicMs,
    log,
    metrics,
  })
  const sweep = startSweep({
    findDueLanes: store.findDueLanes,
    countDue: store.countDue,
    wake: loop.wake,
    everyMs: settings.sweepMs ?? deliverySweepMs,
    log,
    metrics,
  })
  /** A webhook that failed or recovered: says so once, and does what follows at once. */
  const onHealth = async (health: RecordedHealth): Promise<void> => {
    const { tenantId, failingForMs, failedAttempts, wasHeld, isHeld } = health
    const about = { tenant_id: tenantId, failed_attempts: failedAttempts }
    if (failingForMs === null) {
      if (!wasHeld) return
      metrics.holds.inc({ change: 'ended' })
      log.info(about, 'a webhook works again: its deliveries are no longer held')
      for (const retry of [false, true]) loop.wake({ tenantId, retry })
      return
    }
    if (!wasHeld && isHeld) {
      metrics.holds.inc({ change: 'begun' })
      log.warn(about, 'a webhook fails: its deliveries are held and probed')
    }
    const isLong = failingForMs >= webhookFailingMaxMs
    if (!isLong || failedAttempts < webhookFailedAttemptsMin) return
    if (!(await store.switchFailingOff(health))) return
    metrics.switchedOff.inc({ reason: 'failing' })
    log.warn(about, 'a webhook has failed for five days: it is off')
  }
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

/** A claim with its moments on the monotonic clock, counted from before it was asked for. */
function toFreshClaim(
  { ageMs, secretLeaseMs, webhook, ...claimed }: ClaimedDelivery,
  { begunMs, claimMs }: { begunMs: number; claimMs: number },
): FreshClaim {
  return {
    ...claimed,
    claimedUntilMs: begunMs + claimMs,
    createdAtMs: begunMs - ageMs,
    webhook: { ...webhook, signUntilMs: begunMs + secretLeaseMs },
  }
}

/**
 * Opens each sealed secret once, one of each tenant. A rotated secret is another sealed text, so
 * none is used too long.
 */
function rememberKeys(sealer: Sealer): DeliverDeps['openKeys'] {
  const opened = new LRUCache<string, { sealed: string; keys: WebhookKeys }>({
    max: webhooksRememberedMax,
  })
  return (sealed, tenantId) => {
    const known = opened.get(tenantId)
    if (known?.sealed === sealed) return known.keys
    const keys = toWebhookKeys(sealer.unseal(sealed, { tenantId, kind: 'webhook' }))
    opened.set(tenantId, { sealed, keys })
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

/** Remembers when Postgres last failed us. */
function watchFailures(postgres: Postgres, monotonicMs: () => number) {
  let failedAtMs = Number.NEGATIVE_INFINITY
  const watch = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      if (error instanceof PostgresUnavailableError) failedAtMs = monotonicMs()
      throw error
    }
  }
  const watched: Postgres = {
    ...postgres,
    query: (sql, values) => watch(postgres.query(sql, values)),
    transaction: (work) => watch(postgres.transaction(work)),
  }
  return { postgres: watched, quietForMs: () => monotonicMs() - failedAtMs }
}

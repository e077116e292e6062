/**
 * Makes one attempt for a claimed delivery: reads the webhook if what the claim knows is too old,
 * connects, signs, posts, and decides the outcome. It checks the lease of the webhook secret just
 * before it writes the request, so a rotated secret, a changed URL or a suspended tenant takes
 * effect at once. Every attempt has the same body and delivery id.
 */
import { locationCharactersMax } from '#shared/core/base/limits/deliveries.ts'
import { webhookTest } from '#shared/core/deliveries/webhook-events.ts'
import { signDelivery, type WebhookKeys } from '#shared/core/deliveries/webhook-signing.ts'
import type { ClaimedDelivery } from '#shared/io/deliveries/claim-deliveries.ts'
import {
  type Outbound,
  type OutboundAnswer,
  type OutboundConnection,
  OutboundError,
  StaleConnectionError,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import type {
  AttemptHealth,
  AttemptRecord,
  DeliveryOutcome,
} from '#shared/io/deliveries/record-outcomes.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import type { StopSignal } from '../stop-signal.ts'
import { decideNext, type NextDecision } from './decide-next.ts'
import type { FreshWebhook, ReadWebhook } from './read-webhook.ts'
import type { FindTarget } from './webhook-targets.ts'

/** A claimed delivery with its webhook at the time of the claim. Times are monotonic. */
export type FreshClaim = Omit<ClaimedDelivery, 'webhook' | 'ageMs' | 'secretLeaseMs'> & {
  webhook: FreshWebhook
  claimedUntilMs: number
  createdAtMs: number
}

export type AttemptDeps = {
  connect: Outbound['connect']
  readWebhook: ReadWebhook
  /** @throws UnsealError */
  openKeys: (sealed: string, tenantId: string) => WebhookKeys
  findTarget: FindTarget
  /** The wall clock, for timestamps that receivers see. */
  nowMs: () => number
  monotonicMs: () => number
  random: () => number
  /** Records an attempt. @returns whether the webhook's circuit must open */
  recordAttempt: (
    tenantId: string,
    url: string,
    attempt: Pick<AttemptHealth, 'ok' | 'probe'>,
  ) => boolean
  /** Called just before the request is written. */
  onSend: (claimed: FreshClaim) => void
  /** Called when a reused connection had ended and the attempt goes over a new one. */
  onRedial: () => void
  /** Called when nothing was sent and the claim is released. */
  onRelease: (claimed: FreshClaim, why: ReleaseReason, error?: unknown) => void
  /** Limit for connecting and for the request until its response, without our database's time. */
  timeoutMs: number
}

/** Why a claim was released without an attempt. */
export type ReleaseReason =
  | 'stopping'
  | 'claim_too_old'
  | 'webhook_changed'
  | 'waiting'
  | 'no_secret'
  | 'unsealable'
  | 'database'
  | 'error'

/** How long a released delivery waits until it is due again. */
const releaseMs: Record<ReleaseReason, number> = {
  stopping: 0,
  claim_too_old: 0,
  webhook_changed: 0,
  // Claims skip suspended tenants and paused webhooks.
  waiting: 0,
  // A rotation has switched the old secret off and will switch the new one on in a moment.
  no_secret: 1_000,
  // Only an operator can fix these.
  unsealable: 60_000,
  database: 0,
  error: 10_000,
}

/** Ends an attempt before anything was sent: the delivery stays as it was. */
class Release extends Error {
  readonly why: ReleaseReason
  constructor(why: ReleaseReason, cause?: unknown) {
    super(why, cause === undefined ? undefined : { cause })
    this.name = 'Release'
    this.why = why
  }
}

/**
 * Makes one attempt, or releases the claim. Never rejects.
 * @param stop aborts the attempt, because the process stops
 */
export async function attemptDelivery(
  claimed: FreshClaim,
  deps: AttemptDeps,
  stop: StopSignal,
): Promise<DeliveryOutcome> {
  const { tenantId, deliveryId, createdAt, alertId, claim, webhook } = claimed
  const base = { tenantId, deliveryId, createdAt, alertId, claim, attempt: null }
  const url = webhook.state === 'on' ? webhook.url : null
  if (url === null) return { ...base, next: { state: 'skipped', reason: 'no_webhook' } }
  const attempt = claimed.attempts + 1
  const atMs = deps.monotonicMs()
  const limit = limitTime(deps, stop)
  let answer: OutboundAnswer | null = null
  let failure: OutboundError | null = null
  try {
    answer = await send({ ...claimed, url }, deps, limit)
  } catch (error) {
    failure = error instanceof OutboundError && error.kind !== 'aborted' ? error : null
    if (failure === null) {
      const why = toReleaseReason(error)
      deps.onRelease(claimed, why, error)
      return { ...base, next: { state: 'pending', dueAtMs: deps.monotonicMs() + releaseMs[why] } }
    }
  } finally {
    limit.end()
  }
  const status = answer?.status ?? null
  const isTest = claimed.event === webhookTest
  const attempted = {
    attempt: attempt - claimed.attemptsBefore,
    once: isTest,
    status,
    retryAfter: answer?.retryAfter,
  }
  const decided = decideNext(attempted, deps.nowMs(), deps.random())
  const next = toNext(decided, deps.monotonicMs())
  const record: AttemptRecord = {
    attempt,
    atMs,
    durationMs: limit.usedMs(),
    status,
    errorKind: failure?.kind ?? (next.state === 'delivered' ? null : 'status'),
    error: failure?.message ?? (answer === null ? null : toFault(answer)),
    address: failure?.address ?? answer?.address ?? null,
    answer: answer === null ? null : toText(answer.body),
  }
  const health = toHealth(claimed, url, record, deps)
  const outcome: DeliveryOutcome = {
    ...base,
    attempt: record,
    next,
    ...(health === null ? {} : { health }),
  }
  return decided.gone ? { ...outcome, switchOff: { url, reason: 'gone' } } : outcome
}

function toNext({ next }: NextDecision, nowMs: number): DeliveryOutcome['next'] {
  return next.state === 'pending' ? { state: 'pending', dueAtMs: nowMs + next.delayMs } : next
}

/** What an attempt shows about its webhook. A failed test event shows nothing. */
function toHealth(
  claimed: FreshClaim,
  url: string,
  { status, errorKind }: AttemptRecord,
  deps: AttemptDeps,
): AttemptHealth | null {
  const ok = errorKind === null
  if (!ok && claimed.event === webhookTest) return null
  const { tenantId, probe } = claimed
  const openCircuit = deps.recordAttempt(tenantId, url, { ok, probe })
  const failure = ok ? null : errorKind === 'status' ? `status ${status}` : errorKind
  return { url, ok, failure, probe, openCircuit }
}

function toReleaseReason(error: unknown): ReleaseReason {
  if (error instanceof Release) return error.why
  if (error instanceof OutboundError) return 'stopping'
  return error instanceof PostgresUnavailableError ? 'database' : 'error'
}

/** Limits of one attempt: the process's stop, and the total time of the receiver. */
type Limit = {
  signal: AbortSignal
  /** Counts the duration of this step as the receiver's time. */
  during: <T>(step: () => Promise<T>) => Promise<T>
  /** The receiver's time so far. */
  usedMs: () => number
  end: () => void
}

function limitTime({ timeoutMs, monotonicMs }: AttemptDeps, stop: StopSignal): Limit {
  const controller = new AbortController()
  const onStop = () => controller.abort(new OutboundError('aborted', 'the process is stopping'))
  const onTimeout = () =>
    controller.abort(new OutboundError('timeout', `no answer within ${timeoutMs} ms`))
  let usedMs = 0
  if (stop.stopped) onStop()
  else stop.addListener(onStop)
  return {
    signal: controller.signal,
    during: async (step) => {
      const startMs = monotonicMs()
      // A step before may have ended in the moment in which its time was over.
      const timer = setTimeout(onTimeout, Math.max(timeoutMs - usedMs, 0))
      try {
        return await step()
      } finally {
        clearTimeout(timer)
        usedMs += monotonicMs() - startMs
      }
    },
    usedMs: () => usedMs,
    end: () => stop.removeListener(onStop),
  }
}

type Sendable = FreshClaim & { url: string }

/** @throws OutboundError for a failed attempt, Release for none */
async function send(claimed: Sendable, deps: AttemptDeps, limit: Limit): Promise<OutboundAnswer> {
  const { tenantId, url, webhook } = claimed
  const target = deps.findTarget(tenantId, url, webhook.environment)
  // Read before connecting: no connection waits unused while a slow database answers.
  const current = canSign(webhook, deps) ? webhook : await deps.readWebhook(tenantId)
  requireClaim(claimed, deps)
  const attempt = async (fresh: boolean) => {
    const connection = await limit.during(() => deps.connect(target, limit.signal, fresh))
    return await signAndPost({ claimed, current, connection }, deps, limit)
  }
  try {
    return await attempt(false)
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error
    // Receivers close idle connections, or after one request: that is no failure.
    deps.onRedial()
    return await attempt(true)
  }
}

/** Whether the lease of the secret is valid. A webhook that is gone has none that could expire. */
const canSign = (webhook: FreshWebhook | null, { monotonicMs }: AttemptDeps): boolean =>
  webhook === null || monotonicMs() < webhook.signUntilMs

/**
 * Signs with a secret whose lease is valid, and posts. There is no await between the last check of
 * the lease and the bytes on the socket.
 */
async function signAndPost(
  {
    claimed,
    current,
    connection,
  }: { claimed: Sendable; current: FreshWebhook | null; connection: OutboundConnection },
  deps: AttemptDeps,
  limit: Limit,
): Promise<OutboundAnswer> {
  let posting = false
  try {
    for (let webhook = current; ; ) {
      if (!canSign(webhook, deps)) webhook = await deps.readWebhook(claimed.tenantId)
      const headers = sign(claimed, webhook, deps)
      limit.signal.throwIfAborted()
      requireClaim(claimed, deps)
      // Check again after signing: the process may have been suspended in between.
      if (!canSign(webhook, deps)) continue
      deps.onSend(claimed)
      posting = true
      return await limit.during(() => connection.post(claimed.body, headers, limit.signal))
    }
  } finally {
    if (!posting) connection.release()
  }
}

/** @throws Release when the webhook is no longer what the delivery was claimed for */
function sign(
  claimed: Sendable,
  webhook: FreshWebhook | null,
  deps: AttemptDeps,
): Record<string, string> {
  const keys = openKeys(claimed, webhook, deps)
  const stamp = {
    deliveryId: claimed.deliveryId,
    attempt: claimed.attempts + 1,
    timestampSeconds: Math.floor(deps.nowMs() / 1_000),
  }
  const headers = signDelivery(claimed.body, keys, stamp, claimed.event)
  const { traceparent } = claimed
  return {
    ...headers,
    'user-agent': userAgent,
    ...(traceparent === null ? {} : { traceparent }),
  }
}

const userAgent = 'device-intelligence-webhook/1'

/** A process that was suspended for long may have lost its claim to another one. */
function requireClaim(claimed: FreshClaim, deps: AttemptDeps): void {
  const left = claimed.claimedUntilMs - deps.monotonicMs()
  if (left < deps.timeoutMs) throw new Release('claim_too_old')
}

/** @throws Release when the webhook is no longer what the delivery was claimed for */
function openKeys(
  { tenantId, url }: Sendable,
  webhook: FreshWebhook | null,
  deps: AttemptDeps,
): WebhookKeys {
  if (webhook === null) throw new Release('webhook_changed')
  if (webhook.suspended || webhook.state === 'paused') throw new Release('waiting')
  const isSame = webhook.state === 'on' && webhook.url === url
  if (!isSame) throw new Release('webhook_changed')
  if (webhook.sealedSecret === null) throw new Release('no_secret')
  try {
    return deps.openKeys(webhook.sealedSecret, tenantId)
  } catch (error) {
    if (error instanceof UnsealError) throw new Release('unsealable', error)
    throw error
  }
}

/** The location of a redirect, and what was wrong with the response. */
function toFault({ status, location, fault }: OutboundAnswer): string | null {
  const isRedirect = status >= 300 && status < 400 && location !== undefined
  const to = isRedirect ? location.slice(0, locationCharactersMax) : null
  const text = [...(to === null ? [] : [`redirects are not followed: ${to}`]), fault ?? []].flat()
  return text.length === 0 ? null : text.join('; ').replaceAll('\u0000', '\ufffd')
}

const decoder = new TextDecoder()

/** A response body as text. Postgres cannot store NUL in text. */
function toText(bytes: Uint8Array): string {
  return decoder.decode(bytes).replaceAll('\u0000', '\ufffd')
}

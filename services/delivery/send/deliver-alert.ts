/**
 * One claimed delivery, from the connection to its outcome. The webhook and its secret are read
 * after the connection stands and just before the request is written, so a rotated secret, a
 * changed URL or a suspended tenant counts at once. The bytes and the delivery id are the same on
 * every attempt.
 */
import { locationCharactersMax } from '#shared/core/deliveries/delivery-limits.ts'
import { webhookTestEvent } from '#shared/core/deliveries/test-event.ts'
import { signDelivery, type WebhookKeys } from '#shared/core/deliveries/webhook-signing.ts'
import type { ClaimedDelivery } from '#shared/io/deliveries/delivery-claim-store.ts'
import type {
  AttemptHealth,
  AttemptRecord,
  DeliveryOutcome,
} from '#shared/io/deliveries/delivery-store.ts'
import {
  type Outbound,
  type OutboundAnswer,
  type OutboundConnection,
  OutboundError,
  StaleConnectionError,
} from '#shared/io/deliveries/outbound-http.ts'
import { PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import { UnsealError } from '#shared/io/tenants/sealed-secrets.ts'
import type { Stop } from '../stop.ts'
import { decideNext, type NextDecision } from './decide-next.ts'
import type { FreshWebhook, ReadWebhook } from './read-webhook.ts'
import type { FindTarget } from './webhook-targets.ts'

/**
 * A claimed delivery with its webhook as it was when the claim was made. Moments are on the
 * process's monotonic clock.
 */
export type FreshClaim = Omit<ClaimedDelivery, 'webhook' | 'ageMs' | 'secretLeaseMs'> & {
  webhook: FreshWebhook
  claimedUntilMs: number
  createdAtMs: number
}

export type DeliverDeps = {
  connect: Outbound['connect']
  readWebhook: ReadWebhook
  /** @throws UnsealError */
  openKeys: (sealed: string, tenantId: string) => WebhookKeys
  findTarget: FindTarget
  /** The wall clock, for receivers: nothing of ours is compared with it. */
  nowMs: () => number
  monotonicMs: () => number
  random: () => number
  /** Notes an attempt; says whether its webhook's deliveries are to be held. */
  noteAttempt: (tenantId: string, url: string, ok: boolean) => boolean
  /** The request is about to be written. */
  onSend: (claimed: FreshClaim) => void
  /** A connection that was used before had ended: the same attempt goes over a fresh one. */
  onRedial: () => void
  /** Nothing was sent and the claim is given back. */
  onRelease: (claimed: FreshClaim, why: ReleaseReason, error?: unknown) => void
  /** Of an attempt: connecting, and from the request to its answer. Our own database's time is not
   * the receiver's. */
  timeoutMs: number
}

/** Why a claim was given back without an attempt. */
export type ReleaseReason =
  | 'stopping'
  | 'claim_too_old'
  | 'webhook_changed'
  | 'waiting'
  | 'no_secret'
  | 'unsealable'
  | 'database'
  | 'error'

/** How long a claim that was given back stays untouched. */
const releaseMs: Record<ReleaseReason, number> = {
  stopping: 0,
  claim_too_old: 0,
  webhook_changed: 0,
  // A suspended tenant and a paused webhook are passed over by claims, however long they last.
  waiting: 0,
  // A rotation has the old secret off and the new one not yet on: that takes a moment.
  no_secret: 1_000,
  // Only an operator can mend these.
  unsealable: 60_000,
  database: 0,
  error: 10_000,
}

/** Not an attempt: the delivery goes back as it was. */
class Release extends Error {
  readonly why: ReleaseReason
  constructor(why: ReleaseReason, cause?: unknown) {
    super(why, cause === undefined ? undefined : { cause })
    this.name = 'Release'
    this.why = why
  }
}

/**
 * Makes one attempt. Never rejects: what is no attempt is a release.
 * @param stop gives the attempt up, because the process stops
 */
export async function deliverAlert(
  claimed: FreshClaim,
  deps: DeliverDeps,
  stop: Stop,
): Promise<DeliveryOutcome> {
  const { tenantId, deliveryId, claim, webhook } = claimed
  const base = { tenantId, deliveryId, claim, attempt: null }
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
  const isTest = claimed.event === webhookTestEvent
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

/** What an attempt says of its webhook. A test that fails says nothing: somebody is trying. */
function toHealth(
  claimed: FreshClaim,
  url: string,
  { status, errorKind }: AttemptRecord,
  deps: DeliverDeps,
): AttemptHealth | null {
  const ok = errorKind === null
  if (!ok && claimed.event === webhookTestEvent) return null
  const hold = deps.noteAttempt(claimed.tenantId, url, ok)
  const failure = ok ? null : errorKind === 'status' ? `status ${status}` : errorKind
  return { url, ok, failure, probe: claimed.probe, hold }
}

function toReleaseReason(error: unknown): ReleaseReason {
  if (error instanceof Release) return error.why
  if (error instanceof OutboundError) return 'stopping'
  return error instanceof PostgresUnavailableError ? 'database' : 'error'
}

/** The limits of one attempt: the process's end, and the time that the receiver may take in all. */
type Limit = {
  signal: AbortSignal
  /** The receiver's time runs during this step. */
  during: <T>(step: () => Promise<T>) => Promise<T>
  /** Time that the receiver has had, in ms. */
  usedMs: () => number
  end: () => void
}

function limitTime({ timeoutMs, monotonicMs }: DeliverDeps, stop: Stop): Limit {
  const controller = new AbortController()
  const onStop = () => controller.abort(new OutboundError('aborted', 'the process is stopping'))
  const onTimeout = () =>
    controller.abort(new OutboundError('timeout', `no answer within ${timeoutMs} ms`))
  let usedMs = 0
  if (stop.stopped) onStop()
  else stop.add(onStop)
  return {
    signal: controller.signal,
    during: async (step) => {
      const begunMs = monotonicMs()
      const timer = setTimeout(onTimeout, timeoutMs - usedMs)
      try {
        return await step()
      } finally {
        clearTimeout(timer)
        usedMs += monotonicMs() - begunMs
      }
    },
    usedMs: () => usedMs,
    end: () => stop.remove(onStop),
  }
}

type Sendable = FreshClaim & { url: string }

/** @throws OutboundError for a failed attempt, Release for none */
async function send(claimed: Sendable, deps: DeliverDeps, limit: Limit): Promise<OutboundAnswer> {
  const { tenantId, url, webhook } = claimed
  const target = deps.findTarget(tenantId, url, webhook.environment)
  const attempt = async (fresh: boolean) => {
    const connection = await limit.during(() => deps.connect(target, limit.signal, fresh))
    return await signAndPost(claimed, connection, deps, limit)
  }
  try {
    return await attempt(false)
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error
    // Receivers end connections that were idle, or at their second request: that is no failure.
    deps.onRedial()
    return await attempt(true)
  }
}

/**
 * Signs with a secret that no rotation has ended, and posts. Nothing is awaited between the last
 * look at its lease and the bytes on the socket.
 */
async function signAndPost(
  claimed: Sendable,
  connection: OutboundConnection,
  deps: DeliverDeps,
  limit: Limit,
): Promise<OutboundAnswer> {
  let posting = false
  try {
    for (let webhook: FreshWebhook | null = claimed.webhook; ; ) {
      const maySign = () => webhook === null || deps.monotonicMs() < webhook.signUntilMs
      if (!maySign()) webhook = await deps.readWebhook(claimed.tenantId)
      const headers = sign(claimed, webhook, deps)
      limit.signal.throwIfAborted()
      requireClaim(claimed, deps)
      // After the signature, not before: a process that was stopped in between must not send it.
      if (!maySign()) continue
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
  deps: DeliverDeps,
): Record<string, string> {
  const keys = openKeys(claimed, webhook, deps)
  const stamp = {
    deliveryId: claimed.deliveryId,
    attempt: claimed.attempts + 1,
    timestampSeconds: Math.floor(deps.nowMs() / 1_000),
  }
  const headers = signDelivery(claimed.body, keys, stamp, claimed.event)
  return { ...headers, 'user-agent': userAgent }
}

const userAgent = 'device-intelligence-webhook/1'

/** A process that was held up for long may have lost its claim; then another one is sending. */
function requireClaim(claimed: FreshClaim, deps: DeliverDeps): void {
  const left = claimed.claimedUntilMs - deps.monotonicMs()
  if (left < deps.timeoutMs) throw new Release('claim_too_old')
}

/** @throws Release when the webhook is no longer what the delivery was claimed for */
function openKeys(claimed: Sendable, webhook: FreshWebhook | null, deps: DeliverDeps): WebhookKeys {
  if (webhook === null) throw new Release('webhook_changed')
  if (webhook.suspended || webhook.state === 'paused') throw new Release('waiting')
  const isSame = webhook.state === 'on' && webhook.url === claimed.url
  if (!isSame) throw new Release('webhook_changed')
  if (webhook.sealedSecret === null) throw new Release('no_secret')
  try {
    return deps.openKeys(webhook.sealedSecret, claimed.tenantId)
  } catch (error) {
    if (error instanceof UnsealError) throw new Release('unsealable', error)
    throw error
  }
}

/** What is to be known of an answer beside its status: where a redirect led, what was wrong. */
function toFault({ status, location, fault }: OutboundAnswer): string | null {
  const isRedirect = status >= 300 && status < 400 && location !== undefined
  const to = isRedirect ? location.slice(0, locationCharactersMax) : null
  const text = [...(to === null ? [] : [`redirects are not followed: ${to}`]), fault ?? []].flat()
  return text.length === 0 ? null : text.join('; ').replaceAll('\u0000', '\ufffd')
}

const decoder = new TextDecoder()

/** An answer as text, whatever it was. Postgres' text cannot hold a NUL. */
function toText(bytes: Uint8Array): string {
  return decoder.decode(bytes).replaceAll('\u0000', '\ufffd')
}

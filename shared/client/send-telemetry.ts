/**
 * Signs telemetry and sends it, with retries. The body becomes bytes once, and every attempt sends
 * these bytes: the service counts equal bytes once, so a retry never counts a session twice.
 */
import {
  sendAttemptsMax,
  sendAttemptTimeoutMs,
  sendBackoffFirstMs,
  sendBackoffMaxMs,
  sendDeadlineMs,
  sendTimeMaxMs,
} from '#shared/core/base/limits/client.ts'
import { clientBatchEventsMax } from '#shared/core/base/limits/ingest.ts'
import { checkSendOptions, describe, fail, isPromise, toBytes } from './check-arguments.ts'
import { TelemetryRefusedError, TelemetryUnavailableError } from './errors.ts'
import { isBatchResult, isIngestResult, type Outcome, readAnswer } from './read-answer.ts'
import type { BatchResult, IngestResult, Telemetry } from './telemetry.ts'

export type SendOptions = {
  /** The host of ingest, such as `https://ingest.example.com`; a path in it stays. */
  ingestUrl: string
  /** The tenant's private HMAC secret. */
  hmacSecret: string
  /** Attempts in all; 5 unless given. */
  attemptsMax?: number
  /** The limit of one attempt, in ms; 15,000 unless given. */
  attemptTimeoutMs?: number
  /** The limit of the call, in ms; 60,000 unless given. */
  deadlineMs?: number
  /** Ends the call. It then throws the signal's reason. */
  signal?: AbortSignal
  /** Another `fetch`, such as one that uses a proxy; the runtime's unless given. */
  fetch?: typeof globalThis.fetch
}

/** Signs a body with the tenant's HMAC secret, for `X-Service-Signature`. */
export type Sign = (body: Uint8Array<ArrayBuffer>, secret: string) => string | Promise<string>

type SignedRequest<Result> = {
  address: string
  body: Uint8Array<ArrayBuffer>
  signature: string
  /** Whether the JSON of a 200 is an answer of the service. */
  isResult: (value: unknown) => value is Result
}

/** Sends telemetry as `sendTelemetry` does, signed by the cryptography of a runtime. */
export async function sendSigned(
  sign: Sign,
  telemetry: Telemetry | string | Uint8Array,
  options: SendOptions,
): Promise<IngestResult> {
  const address = checkSendOptions(options)
  const body = toBody(telemetry)
  const signature = await sign(body, options.hmacSecret)
  return sendUntilAnswered({ address, body, signature, isResult: isIngestResult }, options)
}

/** Sends many submissions in one signed body, as `sendBatch` does. */
export async function sendSignedBatch(
  sign: Sign,
  events: readonly Telemetry[],
  options: SendOptions,
): Promise<BatchResult> {
  const address = `${checkSendOptions(options)}/batch`
  const body = toBatchBody(events)
  const signature = await sign(body, options.hmacSecret)
  return sendUntilAnswered({ address, body, signature, isResult: isBatchResult }, options)
}

async function sendUntilAnswered<Result>(
  request: SignedRequest<Result>,
  options: SendOptions,
): Promise<Result> {
  const { attemptsMax = sendAttemptsMax, deadlineMs = sendDeadlineMs, signal } = options
  const endMs = performance.now() + deadlineMs
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const outcome = await attemptOnce(request, options, endMs - performance.now())
    if (outcome.kind === 'accepted') return outcome.result
    if (outcome.kind === 'refused') throw new TelemetryRefusedError(outcome.refusal)
    signal?.throwIfAborted()
    const waitMs = chooseWaitMs(attempt, outcome.retryAfterMs)
    if (attempt >= attemptsMax || performance.now() + waitMs >= endMs) {
      throw new TelemetryUnavailableError(attempt, outcome, outcome.cause)
    }
    await sleep(waitMs, signal)
  }
}

const sendable = 'pass the telemetry as an object, or as the JSON that you made of it'

function toBody(telemetry: unknown): Uint8Array<ArrayBuffer> {
  const isObject = Object.prototype.toString.call(telemetry) === '[object Object]'
  if (!isObject || isPromise(telemetry)) return toBytes('telemetry', telemetry, sendable)
  // Without it the service cannot find the secret, so its answer would be of the signature.
  const { tenant_id: tenantId } = telemetry as { tenant_id?: unknown }
  if (typeof tenantId !== 'string') {
    fail('telemetry.tenant_id', `must be the tenant's name, not ${describe(tenantId)}`)
  }
  return toBytes('telemetry', toJson(telemetry), sendable)
}

function toBatchBody(events: unknown): Uint8Array<ArrayBuffer> {
  if (!Array.isArray(events)) fail('events', `must be an array, not ${describe(events)}`)
  if (events.length === 0) fail('events', 'is empty: there is nothing to send')
  if (events.length > clientBatchEventsMax) {
    fail('events', `has ${events.length} submissions: send at most ${clientBatchEventsMax} at once`)
  }
  const { tenant_id: tenantId } = (events[0] ?? {}) as { tenant_id?: unknown }
  if (typeof tenantId !== 'string') {
    fail('events[0].tenant_id', `must be the tenant's name, not ${describe(tenantId)}`)
  }
  return toBytes('events', toJson({ tenant_id: tenantId, events }), sendable)
}

function toJson(telemetry: unknown): unknown {
  try {
    return JSON.stringify(telemetry)
  } catch (cause) {
    throw new TypeError(`telemetry cannot be written as JSON: ${(cause as Error).message}`, {
      cause,
    })
  }
}

async function attemptOnce<Result>(
  { address, body, signature, isResult }: SignedRequest<Result>,
  options: SendOptions,
  leftMs: number,
): Promise<Outcome<Result>> {
  const { attemptTimeoutMs = sendAttemptTimeoutMs, fetch = globalThis.fetch } = options
  const limitMs = Math.max(1, Math.min(attemptTimeoutMs, Math.ceil(leftMs), sendTimeMaxMs))
  const { signal, stop } = limitTime(limitMs, options.signal)
  try {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-signature': signature },
      body,
      redirect: 'manual',
      signal,
    })
    return readAnswer(answer, await answer.text(), Date.now(), isResult)
  } catch (cause) {
    return { kind: 'later', status: null, retryAfterMs: null, refusal: null, cause }
  } finally {
    stop()
  }
}

/** A signal that aborts after a time, or when the caller's does. Node before 18.17 has no `AbortSignal.any`. */
function limitTime(limitMs: number, outer: AbortSignal | undefined) {
  const inner = new AbortController()
  const follow = () => inner.abort(outer?.reason)
  const timer = setTimeout(() => {
    inner.abort(new Error(`the attempt took longer than ${limitMs} ms`))
  }, limitMs)
  outer?.addEventListener('abort', follow)
  const stop = () => {
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
  return { signal: inner.signal, stop }
}

/** Ends early when the signal aborts. */
function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.min(ms, sendTimeMaxMs))
    signal?.addEventListener('abort', end)
  })
}

/** Partly random, so that clients that were refused together do not return together. */
function chooseWaitMs(attempt: number, retryAfterMs: number | null): number {
  if (retryAfterMs !== null) return retryAfterMs + Math.random() * sendBackoffFirstMs
  return Math.random() * Math.min(sendBackoffMaxMs, sendBackoffFirstMs * 2 ** (attempt - 1))
}

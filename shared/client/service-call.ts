/**
 * One call of ingest, with retries: every attempt sends the same bytes and the same headers. A call
 * ends with a result or with a typed error, within its bounds.
 */
import {
  sendAttemptsMax,
  sendAttemptTimeoutMs,
  sendBackoffFirstMs,
  sendBackoffMaxMs,
  sendDeadlineMs,
  sendTimeMaxMs,
} from '#shared/core/base/limits/client.ts'
import { type CallSubject, TelemetryRefusedError, TelemetryUnavailableError } from './errors.ts'
import { type Outcome, readAnswer } from './read-answer.ts'

/** What every call of ingest can be given. */
export type CallOptions = {
  /** The host of ingest, such as `https://ingest.example.com`; a path in it stays. */
  ingestUrl: string
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

export type ServiceRequest<Result> = {
  subject: CallSubject
  method: 'GET' | 'POST'
  address: string
  headers: Record<string, string>
  /** Null for a GET. */
  body: Uint8Array<ArrayBuffer> | null
  /** Whether the JSON of a 200 is an answer of the service. */
  isResult: (value: unknown) => value is Result
}

/**
 * Calls ingest until it answers for good.
 * @throws TelemetryRefusedError when the service refuses for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function callService<Result>(
  request: ServiceRequest<Result>,
  options: CallOptions,
): Promise<Result> {
  const { attemptsMax = sendAttemptsMax, deadlineMs = sendDeadlineMs, signal } = options
  const { subject } = request
  const endMs = performance.now() + deadlineMs
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const outcome = await attemptOnce(request, options, endMs - performance.now())
    if (outcome.kind === 'accepted') return outcome.result
    if (outcome.kind === 'refused') throw new TelemetryRefusedError(outcome.refusal, subject)
    signal?.throwIfAborted()
    const waitMs = chooseWaitMs(attempt, outcome.retryAfterMs)
    if (attempt >= attemptsMax || performance.now() + waitMs >= endMs) {
      throw new TelemetryUnavailableError(attempt, outcome, outcome.cause, subject)
    }
    await sleep(waitMs, signal)
  }
}

async function attemptOnce<Result>(
  { method, address, headers, body, isResult }: ServiceRequest<Result>,
  options: CallOptions,
  leftMs: number,
): Promise<Outcome<Result>> {
  const { attemptTimeoutMs = sendAttemptTimeoutMs, fetch = globalThis.fetch } = options
  const limitMs = Math.max(1, Math.min(attemptTimeoutMs, Math.ceil(leftMs), sendTimeMaxMs))
  const { signal, stop } = limitTime(limitMs, options.signal)
  const content = body === null ? {} : { body }
  try {
    const answer = await fetch(address, {
      method,
      headers,
      ...content,
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

/**
 * Signs telemetry and sends it, with retries. The body becomes bytes once, and every attempt sends
 * these bytes: the service counts equal bytes once, so a retry never counts a session twice.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  sendAttemptsMax,
  sendAttemptTimeoutMs,
  sendBackoffFirstMs,
  sendBackoffMaxMs,
  sendDeadlineMs,
} from '#shared/core/base/limits/client.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  type LastAttempt,
  type Refusal,
  TelemetryRefusedError,
  TelemetryUnavailableError,
} from './errors.ts'
import type { IngestResult, Telemetry } from './telemetry.ts'

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
  /** Another `fetch`, such as one that uses a proxy; Node's unless given. */
  fetch?: typeof globalThis.fetch
}

/** What one attempt came to. */
type Outcome =
  | { kind: 'accepted'; result: IngestResult }
  | { kind: 'refused'; refusal: Refusal }
  | ({ kind: 'later'; cause?: unknown } & LastAttempt)

/**
 * Sends telemetry and waits until the service stored it. It tries again after network faults, and
 * after 429, 502, 503 and 504, with random waits, which `Retry-After` lengthens.
 * @param telemetry the submission, or the bytes of one that was serialized already
 * @returns the service's score and action, which replace the client's
 * @throws TelemetryRefusedError when the service refuses the telemetry for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function sendTelemetry(
  telemetry: Telemetry | string | Uint8Array,
  options: SendOptions,
): Promise<IngestResult> {
  const { attemptsMax = sendAttemptsMax, deadlineMs = sendDeadlineMs, signal } = options
  const body = toBytes(telemetry)
  const endMs = performance.now() + deadlineMs
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const outcome = await attemptOnce(body, options, endMs - performance.now())
    if (outcome.kind === 'accepted') return outcome.result
    if (outcome.kind === 'refused') throw new TelemetryRefusedError(outcome.refusal)
    signal?.throwIfAborted()
    const waitMs = chooseWaitMs(attempt, outcome.retryAfterMs)
    if (attempt >= attemptsMax || performance.now() + waitMs >= endMs) {
      throw new TelemetryUnavailableError(attempt, outcome, outcome.cause)
    }
    await sleep(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => {})
  }
}

function toBytes(telemetry: Telemetry | string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (telemetry instanceof Uint8Array) return Uint8Array.from(telemetry)
  const text = typeof telemetry === 'string' ? telemetry : JSON.stringify(telemetry)
  return new TextEncoder().encode(text)
}

async function attemptOnce(
  body: Uint8Array<ArrayBuffer>,
  options: SendOptions,
  leftMs: number,
): Promise<Outcome> {
  const { ingestUrl, hmacSecret, attemptTimeoutMs = sendAttemptTimeoutMs, signal } = options
  const { fetch = globalThis.fetch } = options
  const timeout = AbortSignal.timeout(Math.max(1, Math.min(attemptTimeoutMs, Math.ceil(leftMs))))
  try {
    const answer = await fetch(`${ingestUrl.replace(/\/$/, '')}/v1/rasp/ingest`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signBody(body, hmacSecret),
      },
      body,
      redirect: 'manual',
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    })
    return toOutcome(answer, await answer.text())
  } catch (cause) {
    return { kind: 'later', status: null, retryAfterMs: null, cause }
  }
}

/** Statuses of "later": too much, unavailable, and a proxy without an edge behind it. */
const laterStatuses = [429, 502, 503, 504]

function toOutcome({ status, headers }: Response, text: string): Outcome {
  const body = toObject(text)
  if (status === 200 && body?.status === 'accepted') {
    return { kind: 'accepted', result: body as IngestResult }
  }
  // Any other 200 is of something in between, such as a captive portal.
  if (status === 200 || laterStatuses.includes(status)) {
    const retryAfterMs = readRetryAfter(headers.get('retry-after'), Date.now())
    return { kind: 'later', status, retryAfterMs }
  }
  return { kind: 'refused', refusal: toRefusal(status, headers, body) }
}

function toObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function toRefusal(
  status: number,
  headers: Headers,
  body: Record<string, unknown> | null,
): Refusal {
  const { code, detail, errors } = body ?? {}
  return {
    status,
    code: typeof code === 'string' ? code : null,
    detail: typeof detail === 'string' ? detail : 'the answer gives no reason',
    requestId: headers.get('x-request-id'),
    errors: Array.isArray(errors) ? (errors as Refusal['errors']) : [],
  }
}

/**
 * Reads `Retry-After`: seconds, or an HTTP date.
 * @returns ms to wait, null where there is none that can be read
 */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}

/** Partly random, so that clients that were refused together do not return together. */
function chooseWaitMs(attempt: number, retryAfterMs: number | null): number {
  if (retryAfterMs !== null) return retryAfterMs + Math.random() * sendBackoffFirstMs
  return Math.random() * Math.min(sendBackoffMaxMs, sendBackoffFirstMs * 2 ** (attempt - 1))
}

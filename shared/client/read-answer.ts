/** Reads an answer to telemetry: accepted, refused for good, or to be sent again later. */
import {
  answerTextCharactersMax,
  shownAnswerCharactersMax,
} from '#shared/core/base/limits/client.ts'
import type { LastAttempt, Refusal } from './errors.ts'
import type { BatchResult, IngestResult } from './telemetry.ts'

/** What one attempt came to. */
export type Outcome<Result> =
  | { kind: 'accepted'; result: Result }
  | { kind: 'refused'; refusal: Refusal }
  | ({ kind: 'later'; cause?: unknown } & LastAttempt)

/** Statuses of "later": too slow, too much, unavailable, and a proxy without an edge behind it. */
const laterStatuses = [408, 429, 502, 503, 504]

type Head = Pick<Response, 'status' | 'headers'>

/** The answer to one submission. */
export const isIngestResult = (value: unknown): value is IngestResult =>
  (value as Members | null)?.status === 'accepted'

/** The answer to a batch. */
export const isBatchResult = (value: unknown): value is BatchResult =>
  Array.isArray((value as Members | null)?.events)

/**
 * @param nowMs the clock, ms since 1970
 * @param isResult whether the JSON of a 200 is an answer of the service
 */
export function readAnswer<Result>(
  head: Head,
  text: string,
  nowMs: number,
  isResult: (value: unknown) => value is Result,
): Outcome<Result> {
  const { status, headers } = head
  const body = toObject(text)
  if (status === 200 && isResult(body)) return { kind: 'accepted', result: body }
  const refusal = toRefusal(head, text, body)
  if (!laterStatuses.includes(status)) return { kind: 'refused', refusal }
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), nowMs)
  return { kind: 'later', status, retryAfterMs, refusal }
}

type Members = Record<string, unknown>

function toObject(text: string): Members | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Members) : null
  } catch {
    return null
  }
}

function toRefusal(head: Head, text: string, body: Members | null): Refusal {
  const { code, detail, errors, signature_form: form, received } = body ?? {}
  return {
    status: head.status,
    code: typeof code === 'string' ? code.slice(0, answerTextCharactersMax) : null,
    detail: toText(detail) ?? describeStranger(head, text),
    requestId: head.headers.get('x-request-id'),
    errors: Array.isArray(errors) ? errors.filter(isBodyError) : [],
    signatureForm: toText(form),
    received: isReceived(received) ? received : null,
  }
}

const toText = (value: unknown): string | null =>
  typeof value === 'string' ? value.slice(0, answerTextCharactersMax) : null

function isBodyError(value: unknown): value is Refusal['errors'][number] {
  const { path, message } = (value ?? {}) as Members
  return typeof path === 'string' && typeof message === 'string'
}

function isReceived(value: unknown): value is NonNullable<Refusal['received']> {
  const { bytes, sha256 } = (value ?? {}) as Members
  return typeof bytes === 'number' && typeof sha256 === 'string'
}

/** What answered, when it was not ingest: a proxy, a login page, another address of the service. */
function describeStranger({ status, headers }: Head, text: string): string {
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location !== null) {
    const target = location.slice(0, answerTextCharactersMax)
    return `the answer redirects to ${target}, and ingestUrl must be the last address`
  }
  const start = text.slice(0, shownAnswerCharactersMax).replace(/\s+/g, ' ')
  const type = headers.get('content-type') ?? 'no content type'
  return `the answer is not of ingest (${type}): ${start === '' ? 'it is empty' : start}`
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

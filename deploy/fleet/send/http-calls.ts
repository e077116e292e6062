/**
 * The fleet's HTTP client: keep-alive pools to ingest and the REST API. Only a missing response is
 * an error, whatever the status. Reads wait and try again on 429 and 503.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { parseRetryAfterMs } from '#shared/core/deliveries/retry-schedule.ts'

export type Answer = {
  status: number
  retryAfterMs: number | null
  /** The parsed JSON body, or null when there is none. */
  json: unknown
}

/** Sends one signed body; rejects without a response. */
export type Post = (body: Uint8Array, signature: string) => Promise<Answer>

/** Reads one path; the status is 200 or one that a repeat would not change. */
export type Get = (path: string, signal?: AbortSignal) => Promise<Answer>

const postTimeoutMs = 15_000
const readTimeoutMs = 30_000

/** How long a read is repeated while the service restarts or answers 429 or 503. */
const readPatienceMs = 60_000

type Closing = { close(): Promise<void> }

/**
 * A pool for signed telemetry.
 * @param connections sockets kept open: the phones that are connected at a time
 */
export function openIngest(
  ingestUrl: string,
  connections: number,
  nowMs: () => number,
): Closing & { post: Post } {
  const { origin, path } = target(ingestUrl, '/v1/rasp/ingest')
  const pool = new Pool(origin, {
    connections,
    headersTimeout: postTimeoutMs,
    bodyTimeout: postTimeoutMs,
    connect: { timeout: 5_000 },
  })
  return {
    post: async (body, signature) => {
      const headers = ['content-type', 'application/json', 'x-service-signature', signature]
      const answer = await pool.request({ path, method: 'POST', headers, body })
      return toAnswer(answer.statusCode, answer.headers, await answer.body.text(), nowMs)
    },
    // Does not wait for requests in flight.
    close: () => pool.destroy(),
  }
}

/** A pool for reads with a tenant's public key. */
export function openApi(
  apiUrl: string,
  apiKey: string,
  nowMs: () => number,
): Closing & { get: Get } {
  const { origin, path: base } = target(apiUrl, '')
  const pool = new Pool(origin, {
    connections: 16,
    headersTimeout: readTimeoutMs,
    bodyTimeout: readTimeoutMs,
  })
  const headers = { authorization: `Bearer ${apiKey}` }
  const once = async (path: string, signal: AbortSignal | undefined): Promise<Answer> => {
    const options = { path: base + path, method: 'GET', headers } as const
    const answer = await pool.request(signal === undefined ? options : { ...options, signal })
    return toAnswer(answer.statusCode, answer.headers, await answer.body.text(), nowMs)
  }
  const get: Get = async (path, signal) => {
    const deadlineMs = nowMs() + readPatienceMs
    for (;;) {
      const answer = await once(path, signal).catch((error: unknown) => {
        if (signal?.aborted || nowMs() > deadlineMs) throw error
        return null
      })
      const again = answer === null || answer.status === 429 || answer.status >= 500
      if (!again || nowMs() > deadlineMs) return answer ?? unanswered
      await sleep(Math.min(answer?.retryAfterMs ?? 250, 2_000), undefined, { signal })
    }
  }
  return { get, close: () => pool.destroy() }
}

const unanswered: Answer = { status: 0, retryAfterMs: null, json: null }

function target(url: string, path: string): { origin: string; path: string } {
  const { origin, pathname } = new URL(url)
  return { origin, path: pathname.replace(/\/$/, '') + path }
}

function toAnswer(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  text: string,
  nowMs: () => number,
): Answer {
  const retryAfter = headers['retry-after']
  let json: unknown = null
  try {
    json = text === '' ? null : JSON.parse(text)
  } catch {
    // Not JSON, as from a proxy: the status is enough.
  }
  return {
    status,
    retryAfterMs: typeof retryAfter === 'string' ? parseRetryAfterMs(retryAfter, nowMs()) : null,
    json,
  }
}

/**
 * `sendTelemetry` signs the sent bytes, retries with the same bytes within its bounds, and ends
 * every call with a result or a typed error.
 */
import { describe, expect, it } from 'vitest'
import { sendTelemetry, signBody } from '../../../shared/client/client.ts'
import { TelemetryRefusedError, TelemetryUnavailableError } from '../../../shared/client/errors.ts'
import { readRetryAfter } from '../../../shared/client/read-answer.ts'
import type { Telemetry } from '../../../shared/client/telemetry.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import vectors from '../../vectors/signatures.json' with { type: 'json' }

const hmacSecret = 'q7Yw1vVh0o3mK5tR8uX2zA4cE6gI9jL1nP3rT5vX7zB'

const telemetry: Telemetry = {
  tenant_id: 'acme',
  device_id: 'd-1',
  session_id: 's-1',
  user_id: null,
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'initial' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: {
    root: { su_binary: true, magisk_detected: null, verified_boot_state: 'VERIFIED' },
    emulator: { sensor_count: 12 },
    debugger: {},
    tamper: { pi_device_verdict: ['MEETS_DEVICE_INTEGRITY'] },
    ecosystem: {},
    network: {},
  },
}

const accepted = {
  status: 'accepted',
  rasp_score: 40,
  rasp_action: 'REVIEW',
  event_id: 'evt_1',
  flags: ['ROOTED'],
}

type Sent = { url: string; headers: Headers; body: string; redirect: string | undefined }
type Step = Response | Error

const answer =
  (status: number, body: unknown, headers = {}) =>
  () =>
    new Response(JSON.stringify(body), { status, headers })

/** A `fetch` that gives these answers in order, repeats the last one, and records requests. */
function fakeFetch(...steps: (() => Step)[]) {
  const sent: Sent[] = []
  const fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const body = Buffer.from(init.body as Uint8Array).toString('utf8')
    sent.push({
      url: String(url),
      headers: new Headers(init.headers),
      body,
      redirect: init.redirect,
    })
    const step = steps[Math.min(sent.length, steps.length) - 1]!()
    if (step instanceof Error) throw step
    return step
  }
  return { sent, fetch: fetch as typeof globalThis.fetch }
}

const options = { ingestUrl: 'https://ingest.test', hmacSecret }
const unavailable = answer(503, { code: 'unavailable' }, { 'retry-after': '0' })

/** The error of a call that must fail. */
async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  )
}

describe('a request', () => {
  const bodyOf = (vector: (typeof vectors.vectors)[number]) =>
    vector.body_base64 === undefined
      ? Buffer.from(
          vector.body_pattern!.before +
            vector.body_pattern!.repeat.repeat(vector.body_pattern!.times) +
            vector.body_pattern!.after,
        )
      : Buffer.from(vector.body_base64, 'base64')

  it.each(vectors.vectors)('can be signed without sending: $name', async (vector) => {
    expect(signBody(bodyOf(vector), vector.secret)).toBe(vector.signature)
    expect(await webClient.signBody(bodyOf(vector), vector.secret)).toBe(vector.signature)
  })

  const allowed = vectors.vectors.filter((vector) => vector.secret.length >= 32)

  it.each(allowed)('has the signature of the vector: $name', async (vector) => {
    const body = bodyOf(vector)
    const { fetch, sent } = fakeFetch(answer(200, accepted))
    await sendTelemetry(body, { ...options, hmacSecret: vector.secret, fetch })
    expect(sent[0]!.headers.get('x-service-signature')).toBe(vector.signature)
    expect(sent[0]!.body).toBe(body.toString('utf8'))
  })

  it('is a submission as JSON to the ingest path, and follows no redirect', async () => {
    for (const ingestUrl of ['https://ingest.test', 'https://ingest.test/', 'https://h/a']) {
      const { fetch, sent } = fakeFetch(answer(200, accepted))
      expect(await sendTelemetry(telemetry, { ...options, ingestUrl, fetch })).toEqual(accepted)
      expect(sent).toHaveLength(1)
      expect(sent[0]).toMatchObject({
        url: `${ingestUrl.replace(/\/$/, '')}/v1/rasp/ingest`,
        body: JSON.stringify(telemetry),
        redirect: 'manual',
      })
      expect(sent[0]!.headers.get('content-type')).toBe('application/json')
    }
  })

  it('keeps its value at the call when the caller changes it later', async () => {
    const body = Buffer.from(JSON.stringify(telemetry))
    const before = body.toString('utf8')
    const { fetch, sent } = fakeFetch(
      () => {
        body.fill(0)
        return unavailable()
      },
      answer(200, accepted),
    )
    await sendTelemetry(body, { ...options, fetch })
    expect(sent.map((one) => one.body)).toEqual([before, before])
  })
})

describe('retries', () => {
  it.each([
    ['a network fault', () => new TypeError('fetch failed')],
    ['429', answer(429, { code: 'rate_limited' }, { 'retry-after': '0' })],
    ['503', unavailable],
    ['502 of a proxy', answer(502, 'no edge', { 'retry-after': '0' })],
    ['408', answer(408, { code: 'request_timeout' }, { 'retry-after': '0' })],
    ['504', answer(504, {}, { 'retry-after': '0' })],
  ])('follow %s, with the same bytes and signature', async (_, first) => {
    const { fetch, sent } = fakeFetch(first, answer(200, accepted))
    expect(await sendTelemetry(telemetry, { ...options, fetch })).toEqual(accepted)
    expect(sent).toHaveLength(2)
    expect(sent[1]!.body).toBe(sent[0]!.body)
    expect(sent[1]!.headers.get('x-service-signature')).toBe(
      sent[0]!.headers.get('x-service-signature'),
    )
  })

  it('wait for the time of `Retry-After`', async () => {
    const { fetch } = fakeFetch(answer(429, {}, { 'retry-after': '1' }), answer(200, accepted))
    const startMs = performance.now()
    await sendTelemetry(telemetry, { ...options, fetch })
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(990)
  })

  it('end after the given attempts, with the result of the last one', async () => {
    const { fetch, sent } = fakeFetch(unavailable)
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, attemptsMax: 3 }))
    expect(sent).toHaveLength(3)
    expect(error).toBeInstanceOf(TelemetryUnavailableError)
    expect(error).toMatchObject({ attempts: 3, status: 503, retryAfterMs: 0 })
  })

  it('end at once when the wait would pass the deadline', async () => {
    const { fetch, sent } = fakeFetch(answer(429, {}, { 'retry-after': '3600' }))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch }))
    expect(sent).toHaveLength(1)
    expect(error).toBeInstanceOf(TelemetryUnavailableError)
    expect(error).toMatchObject({ attempts: 1, status: 429, retryAfterMs: 3_600_000 })
  })

  it('name the fault when there was no answer', async () => {
    const { fetch } = fakeFetch(() => new TypeError('fetch failed'))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, attemptsMax: 1 }))
    expect(error).toMatchObject({ name: 'TelemetryUnavailableError', status: null })
    expect((error as Error).cause).toMatchObject({ message: 'fetch failed' })
  })

  it('say the innermost cause, which `fetch` hides', async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
      code: 'ECONNREFUSED',
    })
    const several = Object.assign(new AggregateError([refused]), { code: 'ECONNREFUSED' })
    for (const [cause, text] of [
      [refused, 'no answer (connect ECONNREFUSED 127.0.0.1:1)'],
      [several, 'no answer (ECONNREFUSED)'],
      [
        new Error('self-signed certificate', { cause: null }),
        'no answer (self-signed certificate)',
      ],
    ] as const) {
      const { fetch } = fakeFetch(() => new TypeError('fetch failed', { cause }))
      const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, attemptsMax: 1 }))
      expect((error as Error).message).toBe(`the telemetry was not accepted in 1 attempts: ${text}`)
    }
  })

  it('end with what the last answer said', async () => {
    const { fetch } = fakeFetch(answer(503, { code: 'unavailable', detail: 'NATS is away' }))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, attemptsMax: 1 }))
    expect(error).toMatchObject({
      refusal: { status: 503, code: 'unavailable' },
      message: expect.stringContaining('503 unavailable: NATS is away'),
    })
  })

  /** A `fetch` that never answers and ends when its signal aborts. */
  function hangingFetch() {
    let calls = 0
    const fetch = (_: unknown, init: RequestInit = {}) => {
      calls++
      return new Promise<Response>((_resolve, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    }
    return { calls: () => calls, fetch: fetch as typeof globalThis.fetch }
  }

  it('follow an attempt that takes too long', async () => {
    const { fetch, calls } = hangingFetch()
    const limits = { attemptTimeoutMs: 20, attemptsMax: 2 }
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, ...limits }))
    expect(calls()).toBe(2)
    expect(error).toMatchObject({ name: 'TelemetryUnavailableError', attempts: 2, status: null })
  })

  it('end at the deadline, even during an attempt', async () => {
    const { fetch, calls } = hangingFetch()
    const startMs = performance.now()
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, deadlineMs: 50 }))
    expect(performance.now() - startMs).toBeLessThan(5_000)
    expect(calls()).toBe(1)
    expect(error).toMatchObject({ name: 'TelemetryUnavailableError', attempts: 1 })
  })

  it('have no limit of time where the caller gives none', async () => {
    const { fetch } = fakeFetch(unavailable, answer(200, accepted))
    const limits = { deadlineMs: Infinity, attemptTimeoutMs: Infinity }
    const startMs = performance.now()
    expect(await sendTelemetry(telemetry, { ...options, fetch, ...limits })).toEqual(accepted)
    expect(performance.now() - startMs).toBeLessThan(5_000)
    const far = answer(429, {}, { 'retry-after': '999999999' })
    const { fetch: waiting, sent } = fakeFetch(far)
    const signal = AbortSignal.timeout(100)
    const call = sendTelemetry(telemetry, { ...options, fetch: waiting, ...limits, signal })
    expect(await failureOf(call)).toBe(signal.reason)
    expect(sent).toHaveLength(1)
  })

  it('end when the caller aborts during an attempt', async () => {
    const { fetch } = hangingFetch()
    const signal = AbortSignal.timeout(20)
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch, signal }))
    expect(error).toBe(signal.reason)
  })

  it('end when the caller aborts, with its reason', async () => {
    const abort = new AbortController()
    const reason = new Error('the app closes')
    const { fetch, sent } = fakeFetch(() => {
      abort.abort(reason)
      return unavailable()
    })
    const call = sendTelemetry(telemetry, { ...options, fetch, signal: abort.signal })
    expect(await failureOf(call)).toBe(reason)
    expect(sent).toHaveLength(1)
  })
})

describe('a rejection', () => {
  it.each([400, 401, 413, 415, 307, 500])('with %s is not retried', async (status) => {
    const problem = {
      code: 'invalid_body',
      detail: 'the body is not valid',
      errors: [{ path: '$.signals.root.su_binary', message: 'must be a boolean or null' }],
    }
    const { fetch, sent } = fakeFetch(answer(status, problem, { 'x-request-id': 'req_1' }))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch }))
    expect(sent).toHaveLength(1)
    expect(error).toBeInstanceOf(TelemetryRefusedError)
    const { refusal, message } = error as TelemetryRefusedError
    const unsaid = { signatureForm: null, received: null }
    expect(refusal).toEqual({ ...problem, status, requestId: 'req_1', ...unsaid })
    expect(message).toContain('$.signals.root.su_binary must be a boolean or null')
    expect(message).not.toContain(hmacSecret)
  })

  it('without a readable body has its status', async () => {
    const { fetch } = fakeFetch(() => new Response('<html>', { status: 403 }))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch }))
    expect((error as TelemetryRefusedError).refusal).toMatchObject({
      status: 403,
      code: null,
      errors: [],
      requestId: null,
      detail: 'the answer is not of ingest (text/plain;charset=UTF-8): <html>',
    })
  })

  it('may be a 200 of something in between, which is shown', async () => {
    const page = `<!doctype html>\n<title>Sign in</title>${'x'.repeat(5_000)}`
    const { fetch, sent } = fakeFetch(
      () => new Response(page, { headers: { 'content-type': 'text/html' } }),
    )
    const error = (await failureOf(sendTelemetry(telemetry, { ...options, fetch }))) as Error
    expect(sent).toHaveLength(1)
    expect(error).toBeInstanceOf(TelemetryRefusedError)
    expect(error.message).toContain('200: the answer is not of ingest (text/html): <!doctype html>')
    expect(error.message.length).toBeLessThan(250)
  })

  it('names the address that it is redirected to', async () => {
    const { fetch } = fakeFetch(() => new Response(null, { status: 308, headers: moved }))
    const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch }))
    expect((error as Error).message).toContain('redirects to https://ingest.test/v1/rasp/ingest')
  })
  const moved = { location: 'https://ingest.test/v1/rasp/ingest' }

  it('of the signature says what arrived, in fields and in the message', async () => {
    const received = { bytes: 412, sha256: 'ab'.repeat(32) }
    const form = 'hex; base64 of 32 bytes expected'
    const problem = { code: 'signature_invalid', detail: 'no', signature_form: form, received }
    const { fetch } = fakeFetch(answer(401, problem))
    const error = (await failureOf(
      sendTelemetry(telemetry, { ...options, fetch }),
    )) as TelemetryRefusedError
    expect(error.refusal).toMatchObject({ signatureForm: form, received })
    expect(error.message).toContain(`${form}; the body that arrived has 412 bytes`)
  })

  it('of another form than the service has does not break the client', async () => {
    const strange = { code: 7, detail: {}, errors: [null, 3, { path: 1 }], received: 'x' }
    for (const body of [strange, [], null, 'text', 1]) {
      const { fetch } = fakeFetch(answer(400, body))
      const error = await failureOf(sendTelemetry(telemetry, { ...options, fetch }))
      expect((error as TelemetryRefusedError).refusal).toMatchObject({
        code: null,
        errors: [],
        received: null,
        signatureForm: null,
      })
    }
  })
})

describe('`Retry-After`', () => {
  const nowMs = Date.UTC(2026, 10, 25, 12)

  it.each([
    ['7', 7_000],
    ['0', 0],
    ['Wed, 25 Nov 2026 12:00:30 GMT', 30_000],
    ['Wed, 25 Nov 2026 11:00:00 GMT', 0],
    ['soon', null],
    [null, null],
  ])('%s is read as %s ms', (header, ms) => {
    expect(readRetryAfter(header, nowMs)).toBe(ms)
  })
})

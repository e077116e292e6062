/** `sendBatch` sends submissions of one tenant in one signed body, in both entries of the client. */
import { describe, expect, it } from 'vitest'
import * as client from '../../../shared/client/client.ts'
import type { Telemetry } from '../../../shared/client/telemetry.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import { clientBatchEventsMax } from '../../../shared/core/base/limits/ingest.ts'

const hmacSecret = 'q7Yw1vVh0o3mK5tR8uX2zA4cE6gI9jL1nP3rT5vX7zB'
const none = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }

const submission = (session: string): Telemetry => ({
  tenant_id: 'acme',
  device_id: 'd-1',
  session_id: session,
  sdk_meta: { sdk_version: '4.2.0', platform: 'ios', batch_type: 'initial' },
  scorer: { rasp_score: -1, rasp_action: '', rasp_flags: [] },
  signals: none,
})

const result = {
  accepted: 1,
  invalid: 1,
  events: [
    { status: 'accepted', rasp_score: 0, rasp_action: 'ALLOW', event_id: 'evt_1', flags: [] },
    { status: 'invalid', code: 'invalid_body', detail: 'it is', errors: [] },
  ],
}

type Sent = { url: string; body: string; signature: string | null }

/** A `fetch` that gives these statuses and bodies in order, and records what was sent. */
function fakeFetch(...answers: [status: number, body: unknown][]) {
  const sent: Sent[] = []
  const fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const body = Buffer.from(init.body as Uint8Array).toString('utf8')
    const signature = new Headers(init.headers).get('x-service-signature')
    const [status, answer] = answers[sent.push({ url: String(url), body, signature }) - 1]!
    const headers = { 'retry-after': '0' }
    return new Response(JSON.stringify(answer), { status, headers })
  }
  return { sent, fetch: fetch as typeof globalThis.fetch }
}

describe.each([
  ['Node', client],
  ['WebCrypto', webClient],
])('with the cryptography of %s', (_, { sendBatch, signBody }) => {
  const send = async (events: unknown, fetch: typeof globalThis.fetch) =>
    sendBatch(events as Telemetry[], { ingestUrl: 'https://ingest.test/', hmacSecret, fetch })

  it('signs one body and returns an entry for each submission', async () => {
    const { sent, fetch } = fakeFetch([200, result])
    const events = [submission('s-1'), submission('s-2')]
    expect(await send(events, fetch)).toEqual(result)
    expect(sent).toHaveLength(1)
    expect(sent[0]!.url).toBe('https://ingest.test/v1/rasp/ingest/batch')
    expect(JSON.parse(sent[0]!.body)).toEqual({ tenant_id: 'acme', events })
    expect(sent[0]!.signature).toBe(await signBody(sent[0]!.body, hmacSecret))
  })

  it('repeats the same bytes when some submissions are not certainly stored', async () => {
    const partly = { ...result, code: 'unavailable', unavailable: 1 }
    const { sent, fetch } = fakeFetch([503, partly], [200, result])
    expect(await send([submission('s-1'), submission('s-2')], fetch)).toEqual(result)
    expect(sent).toHaveLength(2)
    expect(sent[1]).toEqual(sent[0])
  })

  it('throws what refuses the batch as a whole', async () => {
    const { sent, fetch } = fakeFetch([401, { code: 'unauthenticated', detail: 'signature' }])
    const failure = send([submission('s-1')], fetch)
    await expect(failure).rejects.toMatchObject({ refusal: { code: 'unauthenticated' } })
    // The answer to a single submission is none to a batch.
    const other = fakeFetch([200, result.events[0]])
    await expect(send([submission('s-1')], other.fetch)).rejects.toThrow('not of ingest')
    expect([sent.length, other.sent.length]).toEqual([1, 1])
  })

  it.each([
    ['no array', submission('s-1'), /^events must be an array, not an object/],
    ['an empty array', [], /^events is empty/],
    [
      'too many',
      Array.from({ length: clientBatchEventsMax + 1 }, () => submission('s')),
      /^events has 101 submissions: send at most 100/,
    ],
    ['no tenant', [{ device_id: 'd' }], /^events\[0\]\.tenant_id must be the tenant's name/],
    ['null', [null], /^events\[0\]\.tenant_id must be/],
  ])('sends nothing of %s', async (_, events, message) => {
    const { sent, fetch } = fakeFetch()
    const failure = await send(events, fetch).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TypeError)
    expect((failure as Error).message).toMatch(message)
    expect(sent).toEqual([])
  })
})

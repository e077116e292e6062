/**
 * Batches of clients on a real broker: each event is answered in its order and stored as if it was
 * sent alone, nothing is called accepted before it is stored, and a retry is safe.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import {
  batchEventsMax,
  clientBatchBytesMax,
  clientBatchEventsMax,
} from '#shared/core/base/limits/ingest.ts'
import { problemSchema } from '#shared/core/http/api-schemas.ts'
import { batchResultSchema } from '#shared/core/http/batch-schemas.ts'
import * as client from '../../../shared/client/client.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeOptions,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

const path = '/v1/rasp/ingest/batch'
let rig: EdgeRig
let acme: TestTenant
let open: TestEdge[] = []

beforeAll(async () => {
  rig = await startEdgeRig()
  acme = await rig.projectTenant('acme', { environment: 'sandbox' })
})
afterEach(async () => {
  await Promise.all(open.map((edge) => edge.close()))
  open = []
})
afterAll(() => rig?.stop())

async function startEdge(options: EdgeOptions = {}): Promise<TestEdge> {
  const edge = await rig.startEdge(options)
  open.push(edge)
  await until('the edge knows the tenants', () => edge.directory.revision() >= acme.revision)
  return edge
}

const batchOf = (events: readonly string[], tenantId = 'acme') =>
  `{"tenant_id":"${tenantId}","events":[${events.join(', ')}]}`
const bodies = (count: number) => Array.from({ length: count }, () => bodyOf('acme'))
const idOf = (body: string) => toEventId(Buffer.from(body))
const sendBatch = (edge: TestEdge, body: string, secret = acme.secret) =>
  send(edge, body, { secret, path })

type Entry = { status: string; event_id?: string; code?: string; errors?: object[] }
const entriesOf = (answer: { body: Record<string, unknown> }) => answer.body.events as Entry[]

async function storedOf(ids: readonly string[]) {
  const stored = await rig.readStored()
  return ids.map((id) => stored.filter((event) => event.event_id === id))
}

describe('a batch', () => {
  it('has an entry for each event in its order, as if each was sent alone', async () => {
    const edge = await startEdge()
    const review = bodyOf('acme', { device_id: 'test-review', extra: ' "],[ é ' })
    const misspelt = bodyOf('acme', { userId: 'u' }).replaceAll('":', '" : ')
    const events = [
      review,
      bodyOf('acme', { session_id: '' }),
      misspelt,
      bodyOf('globex'),
      '7',
      bodyOf('acme', { x: 'x'.repeat(70_000) }),
      bodyOf('acme'),
    ]
    const answer = await sendBatch(edge, batchOf(events))
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ accepted: 3, invalid: 4 })
    expect(batchResultSchema.parse(answer.body)).toEqual(answer.body)
    const entries = entriesOf(answer)
    const statuses = entries.map(({ status, code }) => code ?? status)
    expect(statuses).toEqual([
      ...['accepted', 'invalid_body', 'accepted', 'invalid_body', 'invalid_body'],
      ...['body_too_large', 'accepted'],
    ])
    expect(entries[1]!.errors).toEqual([
      { path: '$.session_id', message: 'must have at least 1 character' },
    ])
    expect(entries[3]!.errors).toEqual([
      { path: '$.tenant_id', message: 'must be the tenant of the batch' },
    ])
    for (const index of [0, 2, 6]) {
      const text = events[index]!
      const [stored] = await storedOf([idOf(text)])
      expect(stored!.map((one) => Buffer.from(one.bodyBytes!).toString())).toEqual([text])
      // The same bytes alone have the same answer.
      const alone = await send(edge, text, { secret: acme.secret })
      expect(entries[index]).toEqual(alone.body)
    }
    expect(await edge.count('di_ingest_client_batches_total', { code: 'accepted' })).toBe(1)
    const outcomes = ['accepted', 'invalid', 'unavailable'].map((outcome) =>
      edge.count('di_ingest_client_batch_events_total', { outcome }),
    )
    expect(await Promise.all(outcomes)).toEqual([3, 4, 0])
    expect(await edge.count('di_ingest_accepted_total')).toBe(6)
  })

  it('is stored without an identifier in plain text, each event under the id that it has alone', async () => {
    const edge = await startEdge()
    const plain = 'AB5E0000-imei'
    const events = [{ identifiers: { a: plain } }, {}, { identifiers: plain }].map((device) =>
      bodyOf('acme', { device }),
    )
    const answer = await sendBatch(edge, batchOf(events))
    expect(entriesOf(answer).map(({ event_id: id }) => id)).toEqual(events.map(idOf))
    const stored = (await storedOf(events.map(idOf))).flat()
    const texts = stored.map(({ bodyBytes }) => Buffer.from(bodyBytes!).toString())
    expect(texts.join()).not.toContain(plain)
    // The tenant has no key to hash with.
    expect(stored.map(({ body }) => body.device)).toEqual([
      { identifiers: {} },
      {},
      { identifiers: {} },
    ])
    expect(texts[1]).toBe(events[1])
  })

  it('of the client package is answered as it says', async () => {
    const edge = await startEdge()
    const events = [bodyOf('acme'), bodyOf('acme', { session_id: '' })].map((body) =>
      JSON.parse(body),
    )
    const options = { ingestUrl: edge.url, hmacSecret: acme.secret }
    const result = await client.sendBatch(events, options)
    expect(result).toMatchObject({ accepted: 1, invalid: 1 })
    expect(result.events.map(({ status }) => status)).toEqual(['accepted', 'invalid'])
    expect(await client.sendBatch(events, options)).toEqual(result)
  })

  it('of the most events and bytes is accepted, and its retry has the same answer', async () => {
    const edge = await startEdge()
    const filler = 'x'.repeat(4_700)
    const events = Array.from({ length: clientBatchEventsMax }, () => bodyOf('acme', { x: filler }))
    const body = batchOf(events)
    expect(body.length).toBeGreaterThan(0.95 * clientBatchBytesMax)
    const first = await sendBatch(edge, body)
    expect(first.body).toMatchObject({ accepted: clientBatchEventsMax, invalid: 0 })
    expect(entriesOf(first).map((entry) => entry.event_id)).toEqual(events.map(idOf))
    expect((await sendBatch(edge, body)).body).toEqual(first.body)
    const tooLarge = batchOf([...events, bodyOf('acme', { x: 'x'.repeat(60_000) })])
    const refused = await sendBatch(edge, tooLarge)
    expect(refused).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
    expect(refused.body.detail).toContain('512 KiB')
  })

  it('that is not signed, or not JSON, is refused as a whole', async () => {
    const edge = await startEdge()
    const body = batchOf(bodies(2))
    expect(await send(edge, body, { path })).toMatchObject({
      status: 401,
      body: { code: 'signature_missing' },
    })
    expect(await sendBatch(edge, body, 'another secret')).toMatchObject({
      status: 401,
      body: { code: 'signature_invalid', received: { bytes: body.length } },
    })
    expect(await sendBatch(edge, `${body}x`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_body' },
    })
    const headers = { 'content-type': 'text/plain' }
    expect((await send(edge, body, { secret: acme.secret, path, headers })).status).toBe(415)
    const get = await fetch(`${edge.url}${path}`)
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST, OPTIONS'])
    expect(await edge.count('di_ingest_client_batches_total')).toBe(4)
    expect(await edge.count('di_ingest_accepted_total')).toBe(0)
  })

  it('beyond the rate of its tenant is refused as a whole, and nothing of it is stored', async () => {
    const rate = { perSecond: 0.1, burst: 50 }
    const limited = await rig.projectTenant('limited', { ingest_rate: rate })
    const edge = await startEdge()
    await until('the edge knows it', () => edge.directory.revision() >= limited.revision)
    const events = Array.from({ length: 40 }, () => bodyOf('limited'))
    const accepted = await sendBatch(edge, batchOf(events, 'limited'), limited.secret)
    expect(accepted.body).toMatchObject({ accepted: 40 })
    const others = Array.from({ length: 40 }, () => bodyOf('limited'))
    const refused = await sendBatch(edge, batchOf(others, 'limited'), limited.secret)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect((await storedOf(others.map(idOf))).flat()).toEqual([])
  })
})

describe('the answer to a batch', () => {
  it('comes after the last of its events is stored', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    let published = 0
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        const outcome = await publish(message, batchId, timeoutMs)
        published++
        await released
        return outcome
      },
    })
    let answered = false
    const answer = sendBatch(edge, batchOf([...bodies(3), '7'])).finally(() => {
      answered = true
    })
    await until('it is published', () => published > 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(answered).toBe(false)
    release()
    expect((await answer).body).toMatchObject({ accepted: 3, invalid: 1 })
  })

  it('is a 503 that names the events that are stored, and the retry stores the others', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    let messages = 0
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        messages++
        // The first two hold the queue; the fourth message has the rest of the last batch.
        if (messages <= 2) await released
        if (messages === 4) {
          throw Object.assign(new Error('full'), { fault: 'stream_full', final: true })
        }
        return publish(message, batchId, timeoutMs)
      },
    })
    const single = () => send(edge, bodyOf('acme'), { secret: acme.secret })
    const held = [single()]
    await until('one is in flight', () => messages === 1)
    held.push(single())
    await until('two are in flight', () => messages === 2)
    const batches = [bodies(100), bodies(100), bodies(100)]
    const answers = []
    for (const [index, events] of batches.entries()) {
      answers.push(sendBatch(edge, batchOf(events)))
      await until('it waits', async () => {
        return (await edge.count('di_ingest_waiting_events')) === 2 + 100 * (index + 1)
      })
    }
    release()
    await Promise.all(held)
    const [first, second, third] = await Promise.all(answers)
    expect([first!.status, second!.status, third!.status]).toEqual([200, 200, 503])
    const stored = batchEventsMax - 200
    const { body } = third!
    expect(problemSchema.parse(body)).toEqual(body)
    expect(body).toMatchObject({ code: 'unavailable', accepted: stored, invalid: 0 })
    expect(body.unavailable).toBe(100 - stored)
    expect(third!.headers.get('retry-after')).not.toBeNull()
    const ids = batches[2]!.map(idOf)
    expect(entriesOf(third!).map((entry) => [entry.status, entry.event_id])).toEqual(
      ids.map((id, index) => [index < stored ? 'accepted' : 'unavailable', id]),
    )
    const found = await storedOf(ids)
    expect(found.map(({ length }) => length)).toEqual(ids.map((_, at) => (at < stored ? 1 : 0)))
    expect((await sendBatch(edge, batchOf(batches[2]!))).body).toMatchObject({ accepted: 100 })
    expect((await storedOf(ids)).every(({ length }) => length > 0)).toBe(true)
  })

  it('is a 503 of the whole when the broker is gone', async () => {
    const edge = await startEdge({
      wrapPublish: () => async () => {
        throw Object.assign(new Error('no'), { fault: 'rejected', final: true })
      },
    })
    const answer = await sendBatch(edge, batchOf([...bodies(2), '7']))
    expect(answer.status).toBe(503)
    expect(answer.body).toMatchObject({ accepted: 0, invalid: 1, unavailable: 2 })
    expect(await edge.count('di_ingest_client_batches_total', { code: 'unavailable' })).toBe(1)
  })
})

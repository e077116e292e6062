// Batch messages: what an edge writes is what a scorer reads, each body byte for byte, and no body can
// pass for another.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/ids.ts'
import { batchEventsMax } from '#shared/core/limits.ts'
import { decodeBatch, type EventHeader, positionsPerMessage } from '#shared/core/messages.ts'
import { PoisonError } from '#shared/core/outcome.ts'
import { encodeEvent, makeBody, makeElement, makeMessage } from '../support/accepted-events.ts'

const toHeader = (bodyText: string): EventHeader => ({
  event_id: toEventId(Buffer.from(bodyText)),
  tenant_id: 'acme',
  received_at: 1_790_000_000_000,
  rasp_score: 0,
  rasp_action: 'ALLOW',
  reasons: [],
  policy_version: 1,
  policy_hash: 'hash',
  epoch: 1,
})
const toMessage = (...elements: string[]) => Buffer.from(`[${elements.join(',')}]`)
const bodiesOf = (message: Uint8Array) =>
  decodeBatch(message, 7).events.map((event) =>
    event.bodyBytes === undefined ? null : Buffer.from(event.bodyBytes).toString(),
  )

describe('a batch message', () => {
  it('has a position for each event that an edge puts into one', () => {
    expect(batchEventsMax).toBeLessThanOrEqual(positionsPerMessage)
  })

  it('gives every body back byte for byte, spaces, escapes and number spellings included', () => {
    const strange = makeBody({ deviceId: 'dé😀' })
      .replace('"device_id":', ' "device\\u005fid" :\t')
      .replace('"rasp_score":12', '"rasp_score":1.20e1')
    const bodies = [makeBody({ nonce: 1 }), ` ${strange}\n`, makeBody({ nonce: 2 })]
    const message = toMessage(...bodies.map((body) => encodeEvent(toHeader(body), body)))
    expect(bodiesOf(message)).toEqual(bodies)
  })

  it('is not fooled by a body that contains the next one’s head', () => {
    const second = makeBody({ nonce: 'second' })
    const head = encodeEvent(toHeader(second), second).slice(1, 60)
    const first = makeBody({
      signals: { root: { list: [{}, { event_id: toHeader(second).event_id, x: head }, {}] } },
    })
    const message = toMessage(...[first, second].map((body) => encodeEvent(toHeader(body), body)))
    const { events, invalid } = decodeBatch(message, 7)
    expect(invalid).toEqual([])
    // Where a body cannot be told apart it is left to its meaning; it is never another's bytes.
    for (const event of events) {
      if (event.bodyBytes !== undefined) {
        expect(toEventId(event.bodyBytes)).toBe(event.event_id)
      }
    }
    expect(events.map((event) => event.body)).toEqual([JSON.parse(first), JSON.parse(second)])
  })

  it('keeps an element that is no event apart from its neighbours', () => {
    const good = makeElement({})
    const foreign = makeElement({}).replace('"tenant_id":"acme","device', '"tenant_id":"b","device')
    const { events, invalid } = decodeBatch(toMessage('1', good, '{}', 'null', foreign, '[]'), 7)
    expect(events).toHaveLength(1)
    expect(invalid.map((one) => one.index)).toEqual([0, 2, 3, 4, 5])
  })

  it('is poison as a whole only when it cannot be read at all', () => {
    for (const text of ['', 'x', '{"a":1}', '[1', '"text"']) {
      expect(() => decodeBatch(Buffer.from(text), 7)).toThrow(PoisonError)
    }
    expect(decodeBatch(Buffer.from('[]'), 7).events).toEqual([])
  })

  it('reads what it writes, whatever the bodies hold', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 6 }), (values) => {
        const facts = values.map((value, nonce) => ({ nonce, more: { value } }))
        const { events, invalid } = decodeBatch(makeMessage(facts), 7)
        expect(invalid).toEqual([])
        events.forEach((event, index) => {
          const text = makeBody(facts[index]!)
          expect(event.body).toEqual(JSON.parse(text))
          expect(Buffer.from(event.bodyBytes!).toString()).toBe(text)
        })
      }),
    )
  })
})

// Batch messages: a scorer reads what an edge writes, each body byte for byte, and no body can pass
// for another.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { batchEventsMax } from '#shared/core/base/limits/ingest.ts'
import { PoisonError } from '#shared/core/base/outcome.ts'
import { encodeRegistration } from '#shared/core/installs/registration.ts'
import {
  decodeBatch,
  type EventHeader,
  listElements,
  offsetsPerMessage,
} from '#shared/core/telemetry/event-batch.ts'
import {
  encodeEvent,
  makeBody,
  makeElement,
  makeMessage,
  makeRegistration,
  makeRegistrationElement,
} from '../../support/telemetry/accepted-events.ts'

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
  it('has an element for each event that an edge puts into it', () => {
    expect(batchEventsMax).toBeLessThanOrEqual(offsetsPerMessage)
  })

  it('returns every body byte for byte, with its spaces, escapes and number spellings', () => {
    const strange = makeBody({ deviceId: 'dé😀' })
      .replace('"device_id":', ' "device\\u005fid" :\t')
      .replace('"rasp_score":12', '"rasp_score":1.20e1')
    const bodies = [makeBody({ nonce: 1 }), ` ${strange}\n`, makeBody({ nonce: 2 })]
    const message = toMessage(...bodies.map((body) => encodeEvent(toHeader(body), body)))
    expect(bodiesOf(message)).toEqual(bodies)
  })

  it('returns ids that ingest refuses by now: earlier edges accepted them', () => {
    const body = makeBody({ deviceId: '..' })
    expect(bodiesOf(toMessage(encodeEvent(toHeader(body), body)))).toEqual([body])
  })

  it('returns bodies that contain the text of their own envelope or of the next one', () => {
    const second = makeBody({ nonce: 'second' })
    const element = encodeEvent(toHeader(second), second)
    const heads = [
      `${element},${element}`,
      element.slice(0, -1),
      `},${element.slice(0, 60)}`,
      '{"head_bytes":1,"body_bytes":1,"event_id":"evt_x","body":{}}',
      ',"body":',
    ]
    for (const text of heads) {
      // As text, and JSON as objects, with spaces that a new serialisation would lose.
      const first = makeBody({
        more: { text, list: [{}, { event_id: toHeader(second).event_id }] },
      })
      const nested = first.replace(/}$/, ` , "more" : [ {} ,${element},${element}, 1.50 ] }`)
      const bodies = [first, nested, second, nested, first]
      const message = toMessage(...bodies.map((body) => encodeEvent(toHeader(body), body)))
      expect(decodeBatch(message, 7).invalid).toEqual([])
      expect(bodiesOf(message)).toEqual(bodies)
    }
  })

  it('keeps an element that is no event apart from its neighbours', () => {
    const good = makeElement({})
    const body = makeBody({})
    const foreign = encodeEvent({ ...toHeader(body), tenant_id: 'b' }, body)
    const otherBytes = encodeEvent({ ...toHeader(body), event_id: 'evt_other' }, body)
    const noBody = encodeEvent(toHeader(body), '7')
    const { events, invalid } = decodeBatch(toMessage(foreign, good, otherBytes, noBody, good), 7)
    expect(events).toHaveLength(2)
    expect(invalid.map(({ index, detail }) => [index, detail])).toEqual([
      [0, 'body: tenant_id'],
      [2, 'event_id'],
      [3, 'body: '],
    ])
  })

  it('accepts no bytes after an element whose lengths do not match its head and body', () => {
    const good = makeElement({})
    const body = makeBody({})
    for (const wrong of [
      '1',
      '{}',
      'null',
      encodeEvent(toHeader(body), body).replace(/"body_bytes":\d+/, '"body_bytes":99999999'),
      encodeEvent(toHeader(body), body).replace(/"body_bytes":\d+/, '"body_bytes":5'),
      ` ${encodeEvent(toHeader(body), body)}`,
    ]) {
      const { events, invalid } = decodeBatch(toMessage(good, wrong, good), 7)
      expect(events).toHaveLength(1)
      expect(invalid.map((one) => one.index)).toEqual([1, 2])
    }
  })

  it('returns registrations beside events, each at its place in the stream', () => {
    const message = toMessage(
      makeElement({ nonce: 1 }),
      makeRegistrationElement({ device_id: 'd' }, 1_790_000_000_000),
      makeElement({ nonce: 2 }),
    )
    const { events, registrations, invalid } = decodeBatch(message, 700)
    expect(invalid).toEqual([])
    expect(events.map(({ streamOffset }) => streamOffset)).toEqual([700, 702])
    const body = makeRegistration({ device_id: 'd' })
    expect(registrations).toEqual([
      {
        registration: true,
        event_id: encodeRegistration(body).id,
        tenant_id: 'acme',
        received_at: 1_790_000_000_000,
        streamOffset: 701,
        body,
      },
    ])
    expect(listElements(message)).toHaveLength(3)
    expect(decodeBatch(toMessage(makeRegistrationElement({})), 7).events).toEqual([])
  })

  it('keeps a registration that an edge cannot have written apart', () => {
    const good = makeRegistrationElement({})
    const anotherId = good.replace(/"event_id":"evt_.{22}"/, `"event_id":"evt_${'x'.repeat(22)}"`)
    const anotherTenant = good.replace(
      '"tenant_id":"acme","received_at"',
      '"tenant_id":"b","received_at"',
    )
    const lengths = (text: string) =>
      text.replace(/"head_bytes":\d+/, () => {
        const start = text.indexOf(',', text.indexOf('"body_bytes"')) + 1
        const end = text.indexOf('"body":') + '"body":'.length
        return `"head_bytes":${end - start}`
      })
    const event = makeElement({}).replace('"event_id"', '"registration":true,"event_id"')
    const message = toMessage(good, anotherId, lengths(anotherTenant), lengths(event), good)
    const { events, registrations, invalid } = decodeBatch(message, 7)
    expect(events).toEqual([])
    expect(registrations).toHaveLength(2)
    expect(invalid.map(({ index, detail }) => [index, detail])).toEqual([
      [1, 'event_id'],
      [2, 'body: tenant_id'],
      [3, 'body: platform'],
    ])
    expect(listElements(message)).toHaveLength(5)
  })

  it('has numbers beyond a double as the text that was sent', () => {
    const body = makeBody({ signals: { root: { ns: 1, list: [2, 3], su_binary: true } } })
      .replace('"ns":1', '"ns":1764086400123456789')
      .replace('[2,3]', '[3.4028235E39,0.5]')
    const header = { ...toHeader(body), inexact_numbers: true as const }
    const [event] = decodeBatch(toMessage(encodeEvent(header, body)), 7).events
    expect(event?.body.signals.root).toEqual({
      ns: '1764086400123456789',
      list: ['3.4028235E39', 0.5],
      su_binary: true,
    })
    expect(Buffer.from(event!.bodyBytes!).toString()).toBe(body)
  })

  it('is poison as a whole only when it cannot be read at all', () => {
    for (const text of ['', 'x', '{"a":1}', '[1', '"text"']) {
      expect(() => decodeBatch(Buffer.from(text), 7)).toThrow(PoisonError)
    }
    expect(decodeBatch(Buffer.from('[]'), 7).events).toEqual([])
  })

  it('is read as it was written, with any bodies', () => {
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

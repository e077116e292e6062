// The decoded events kept between storing and deciding give the same decisions as the message.
import { describe, expect, it } from 'vitest'
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compileShadow, decideShadow } from '#shared/core/policies/shadow.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { eventHeaderSchema } from '#shared/core/telemetry/event-batch.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import {
  createDecodedMessages,
  type DecodedMessages,
} from '../../../services/scorer/store/decoded-messages.ts'
import { type EventFacts, makeMessage, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { hostingConnection } from '../../support/telemetry/connections.ts'

const facts: EventFacts[] = [
  { deviceId: 'one', signals: signalsOf.BLOCK, userId: 'user', accountId: 'account', nonce: 1 },
  {
    deviceId: 'two',
    signals: signalsOf.REVIEW,
    nonce: 2,
    connection: hostingConnection,
    more: { app: { version: '12.1' }, device: { model: 'Pixel 8', boot_at: 1.7e12 } },
  },
  { deviceId: 'three', signals: { network: { new_signal: [1, { deep: true }] } }, nonce: 3 },
]
const toConsumed = (data: Uint8Array, more: Partial<ConsumedMessage> = {}): ConsumedMessage => ({
  data,
  proof: 'of an edge',
  tracedEvents: '',
  sequence: 7,
  streamOffset: 7_000,
  publishedMs: 1_000,
  deliveries: 1,
  ...more,
})
const isProven = ({ proof }: ConsumedMessage) => proof === 'of an edge'
const known = noRiskFeatures

describe('a decoded message', () => {
  it('gives the decisions of the message, by the policy and by a shadow', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    const message = toConsumed(makeMessage(facts))
    const { events } = messages.decodeToStore(message)
    const { events: decoded, deadLetters } = messages.decodeToDecide(
      toConsumed(Buffer.from(message.data)),
    )
    expect(deadLetters).toEqual([])
    expect(decoded).toHaveLength(facts.length)
    const shadow = compileShadow(presets.strict)
    decoded.forEach((slim, index) => {
      const full = events[index]!
      expect(slim.bodyBytes).toBeUndefined()
      expect(slim.filledCategories).toBe(toFilledCategories(full.body.signals as Signals))
      expect(slim.traits).toEqual(toInstallTraits(full))
      expect(slim.body.signals).toEqual(full.body.signals)
      const risk = decideRisk(full, defaultPolicy, known)
      expect(decideRisk(slim, defaultPolicy, known)).toEqual(risk)
      expect(decideAlert(slim, risk)).toEqual(decideAlert(full, risk))
      expect(decideShadow(slim, shadow, known)).toEqual(decideShadow(full, shadow, known))
      expect(slim).toMatchObject(eventHeaderSchema.parse(full))
    })
    expect(decideAlert(decoded[0]!, decideRisk(decoded[0]!, defaultPolicy, known))).not.toBeNull()
  })

  it('is used once; afterwards the message is decoded again', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    const message = toConsumed(makeMessage(facts))
    messages.decodeToStore(message)
    expect(messages.decodeToDecide(message).events[0]!.bodyBytes).toBeUndefined()
    expect(messages.decodeToDecide(message).events[0]!.bodyBytes).toBeDefined()
  })

  it('belongs to one stream, because a recreated stream repeats its sequences', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    messages.decodeToStore(toConsumed(makeMessage(facts)))
    const other = toConsumed(makeMessage(facts.slice(1)), { streamOffset: 8_000 })
    const ids = messages.decodeToDecide(other).events.map((event) => event.body.device_id)
    expect(ids).toEqual(['two', 'three'])
  })

  describe('is bounded', () => {
    const data = makeMessage(facts)
    const store = (messages: DecodedMessages, streamOffsets: number[]) => {
      for (const streamOffset of streamOffsets) {
        messages.decodeToStore(toConsumed(data, { streamOffset }))
      }
    }
    /** Takes these messages in order. @returns those that were still kept */
    const takeRemembered = (messages: DecodedMessages, streamOffsets: number[]) =>
      streamOffsets.filter((streamOffset) => {
        const { events } = messages.decodeToDecide(toConsumed(data, { streamOffset }))
        expect(events).toHaveLength(facts.length)
        return events[0]!.bodyBytes === undefined
      })

    it('and keeps the messages that are decided next when storing is far ahead', () => {
      const messages = createDecodedMessages(data.length * 2, isProven)
      store(messages, [1, 2, 3, 4])
      expect(takeRemembered(messages, [1])).toEqual([1])
      store(messages, [5, 6])
      expect(takeRemembered(messages, [2, 3, 4, 5, 6])).toEqual([2, 5])
    })

    it('and drops messages that other scorers decided when a later one is used', () => {
      const messages = createDecodedMessages(data.length * 3, isProven)
      store(messages, [1, 2, 3])
      expect(takeRemembered(messages, [3])).toEqual([3])
      store(messages, [4, 5, 6])
      expect(takeRemembered(messages, [1, 2, 4, 5, 6])).toEqual([4, 5, 6])
    })

    it('and holds a redelivered message once', () => {
      const messages = createDecodedMessages(data.length * 2, isProven)
      store(messages, [1, 1, 1, 2])
      expect(takeRemembered(messages, [1, 2])).toEqual([1, 2])
    })
  })

  it('keeps elements that are not events, too', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    const text = makeMessage(facts).toString().replace(/]$/, ',{"event_id":"broken"}]')
    const message = toConsumed(Buffer.from(text))
    const { deadLetters } = messages.decodeToStore(message)
    expect(deadLetters).toHaveLength(1)
    expect(messages.decodeToDecide(message).deadLetters).toEqual(deadLetters)
    const junk = toConsumed(Buffer.from('junk'), { sequence: 8 })
    expect(messages.decodeToStore(junk).deadLetters[0]!.reason).toBe('unreadable_batch')
  })

  it('has dead letters of its own when a stream that was put back repeats its sequence', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    const broken = makeMessage(facts).toString().replace(/]$/, ',{"event_id":"broken"}]')
    const kinds = [
      toConsumed(Buffer.from(broken)),
      toConsumed(Buffer.from('junk')),
      toConsumed(makeMessage(facts), { proof: 'of another' }),
    ]
    for (const message of kinds) {
      const idsAt = (streamOffset: number) =>
        messages.decodeToStore({ ...message, streamOffset }).deadLetters.map(({ id }) => id)
      expect(idsAt(7_000)).toHaveLength(1)
      expect(idsAt(7_000)).toEqual(idsAt(7_000))
      expect(idsAt(7_000)).not.toEqual(idsAt(9_000))
    }
  })

  it('without the proof of an edge is not decoded: it is quarantined unchanged', () => {
    const messages = createDecodedMessages(1_000_000, isProven)
    const message = toConsumed(makeMessage(facts), { proof: 'of another' })
    const { events, deadLetters } = messages.decodeToStore(message)
    expect(events).toEqual([])
    expect(deadLetters).toMatchObject([{ reason: 'unproven_batch', data: message.data }])
    for (let n = 0; n < 2; n++) {
      expect(messages.decodeToDecide(message)).toMatchObject({ events: [], deadLetters })
    }
  })
})

/**
 * A memory of decoded messages, between storing and deciding: a process decides most of what it has
 * stored a moment later, and reading a message costs more than most of what is done with it. Only
 * what deciding needs is remembered. The signals, which are most of an event, are read again from
 * the message where a shadow policy asks for them; what is not remembered is decoded again.
 */

import { PoisonError } from '#shared/core/base/outcome.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import {
  type AcceptedEvent,
  decodeBatch,
  toStreamOffset,
} from '#shared/core/telemetry/event-batch.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'

export type Decoded = { events: AcceptedEvent[]; deadLetters: DeadLetter[] }

export type DecodedMessages = {
  /**
   * Decodes a message and remembers what deciding needs of it.
   * @returns also what is remembered: the same events without their signals
   */
  decode: (message: ConsumedMessage) => Decoded & { remembered: AcceptedEvent[] }
  /** What deciding needs of a message, which is then forgotten. */
  take: (message: ConsumedMessage) => Decoded
}

/** Where the signals of a message's events are read from when they are asked for. */
type Source = { message: ConsumedMessage | null; events: AcceptedEvent[] | null }

type Kept = { bytes: number; source: Source; decoded: Decoded }

/**
 * What is decided next is what was stored first. So where storing runs ahead of deciding by more
 * than is remembered, the newest are not remembered: forgetting the oldest, each would be forgotten
 * just before it is asked for. What others decide instead goes when something later is taken.
 * @param bytesMax of remembered messages; what is kept of them takes about half as much
 * @param isProven whether an edge wrote a message; one that is not proven is poison as a whole
 */
export function createDecodedMessages(
  bytesMax: number,
  isProven: (message: ConsumedMessage) => boolean,
): DecodedMessages {
  const kept = new Map<number, Kept>()
  let keptStreamMs = 0
  let bytes = 0
  const forget = (sequence: number): void => {
    bytes -= kept.get(sequence)?.bytes ?? 0
    kept.delete(sequence)
  }
  /** A stream that is made again counts from 1 again. */
  const beginStream = (streamCreatedMs: number): void => {
    if (streamCreatedMs === keptStreamMs) return
    keptStreamMs = streamCreatedMs
    kept.clear()
    bytes = 0
  }
  return {
    decode: (message) => {
      const decoded = decodeProven(message, isProven)
      const { sequence, streamCreatedMs, data } = message
      const remembered = toRemember(decoded)
      beginStream(streamCreatedMs)
      forget(sequence)
      if (bytes + data.length <= bytesMax) {
        kept.set(sequence, { bytes: data.length, ...remembered })
        bytes += data.length
      }
      return { ...decoded, remembered: remembered.decoded.events }
    },
    take: (message) => {
      const { sequence, streamCreatedMs } = message
      beginStream(streamCreatedMs)
      const known = kept.get(sequence)
      forget(sequence)
      for (const oldest of kept.keys()) {
        if (oldest > sequence) break
        forget(oldest)
      }
      if (known === undefined) return decodeProven(message, isProven)
      known.source.message = message
      return known.decoded
    },
  }
}

function toRemember({ events, deadLetters }: Decoded): { source: Source; decoded: Decoded } {
  const source: Source = { message: null, events: null }
  const slim = events.map((event, index) => toSlim(event, source, index))
  return { source, decoded: { events: slim, deadLetters } }
}

function toSlim(event: AcceptedEvent, source: Source, index: number): AcceptedEvent {
  const { event_id, tenant_id, received_at, rasp_score, rasp_action, reasons, body } = event
  const { policy_version, policy_hash, epoch, streamOffset } = event
  return {
    event_id,
    tenant_id,
    received_at,
    rasp_score,
    rasp_action,
    reasons,
    policy_version,
    policy_hash,
    epoch,
    streamOffset,
    filledCategories: toFilledCategories(body.signals as Signals),
    // Whatever else a client sent along is nothing to deciding.
    body: new SlimBody(body, source, index) as unknown as Telemetry,
  }
}

/** A body of which the signals are read when they are asked for. */
class SlimBody {
  readonly tenant_id: string
  readonly device_id: string
  readonly session_id: string
  readonly user_id: string | undefined
  readonly account_id: string | undefined
  readonly sdk_meta: Telemetry['sdk_meta']
  readonly scorer: Telemetry['scorer']
  readonly #source: Source
  readonly #index: number

  constructor(body: Telemetry, source: Source, index: number) {
    const { sdk_version, platform, batch_type } = body.sdk_meta
    const { rasp_score, rasp_action, rasp_flags } = body.scorer
    this.tenant_id = body.tenant_id
    this.device_id = body.device_id
    this.session_id = body.session_id
    this.user_id = body.user_id
    this.account_id = body.account_id
    this.sdk_meta = { sdk_version, platform, batch_type }
    this.scorer = { rasp_score, rasp_action, rasp_flags }
    this.#source = source
    this.#index = index
  }

  get signals(): Signals {
    const source = this.#source
    source.events ??= decode(source.message!).events
    return source.events[this.#index]!.body.signals as Signals
  }
}

function decodeProven(
  message: ConsumedMessage,
  isProven: (message: ConsumedMessage) => boolean,
): Decoded {
  if (isProven(message)) return decode(message)
  const { data, sequence } = message
  const detail = 'no edge of this service has written it'
  return {
    events: [],
    deadLetters: [{ reason: 'unproven_batch', detail, id: `${sequence}`, data }],
  }
}

function decode({ data, sequence, streamCreatedMs }: ConsumedMessage): Decoded {
  try {
    const { events, invalid } = decodeBatch(data, toStreamOffset(streamCreatedMs, sequence))
    const deadLetters = invalid.map(({ index, detail, data }): DeadLetter => {
      return { reason: 'invalid_event', detail, id: `${sequence}-${index}`, data }
    })
    return { events, deadLetters }
  } catch (error) {
    if (!(error instanceof PoisonError)) throw error
    const { reason, message: detail } = error
    return { events: [], deadLetters: [{ reason, detail, id: `${sequence}`, data }] }
  }
}

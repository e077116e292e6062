/**
 * Decodes messages once per process: a scorer decides on most messages soon after it stored them,
 * so the decoded events stay in memory in between, without what deciding does not need. Signals are
 * the largest part of an event; they are decoded again only when a shadow policy reads them.
 */

import { PoisonError } from '#shared/core/base/outcome.ts'
import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import type { AcceptedRegistration } from '#shared/core/installs/registration.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { type AcceptedEvent, decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { readInstall } from '#shared/core/telemetry/install.ts'
import {
  type ClientVerdict,
  readClientVerdict,
  type Telemetry,
} from '#shared/core/telemetry/submission.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'

type Decoded = { events: AcceptedEvent[]; deadLetters: DeadLetter[] }

/** Registrations are stored and not decided on: what they tell is in the decisions of events. */
type DecodedToStore = Decoded & { registrations: AcceptedRegistration[] }

export type DecodedMessages = {
  /**
   * Decodes a message for the store stage and keeps its events for the decide stage.
   * @returns also the kept events, which have no signals in memory
   */
  decodeToStore: (message: ConsumedMessage) => DecodedToStore & { kept: AcceptedEvent[] }
  /**
   * Returns the kept events of a message and removes them; decodes the message if there are none.
   */
  decodeToDecide: (message: ConsumedMessage) => Decoded
  /** Whether its events are kept, so that `decodeToDecide` does not read its bytes. */
  isKept: (message: ConsumedMessage) => boolean
}

/** The message that the signals of kept events are decoded from, when they are read. */
type Source = { message: ConsumedMessage | null; events: AcceptedEvent[] | null }

type Kept = { bytes: number; source: Source; decoded: Decoded }

/**
 * Messages are decided in the order in which they are stored. So at the limit the newest message is
 * not kept: evicting the oldest would remove each message just before it is decided. Messages that
 * another scorer decides are removed when a later one is decided.
 * @param bytesMax of kept messages; their events take about half as much memory
 * @param isProven whether an edge wrote the message; an unproven message becomes a dead letter
 */
export function createDecodedMessages(
  bytesMax: number,
  isProven: (message: ConsumedMessage) => boolean,
): DecodedMessages {
  /** By stream offset, ascending except for redelivered messages. */
  const kept = new Map<number, Kept>()
  let bytes = 0
  const remove = (streamOffset: number): void => {
    bytes -= kept.get(streamOffset)?.bytes ?? 0
    kept.delete(streamOffset)
  }
  return {
    decodeToStore: (message) => {
      const decoded = decodeProven(message, isProven)
      const { streamOffset, data } = message
      const slim = toSlimMessage(decoded)
      remove(streamOffset)
      if (bytes + data.length <= bytesMax) {
        kept.set(streamOffset, { bytes: data.length, ...slim })
        bytes += data.length
      }
      return { ...decoded, kept: slim.decoded.events }
    },
    decodeToDecide: (message) => {
      const { streamOffset } = message
      const known = kept.get(streamOffset)
      remove(streamOffset)
      for (const oldest of kept.keys()) {
        if (oldest > streamOffset) break
        remove(oldest)
      }
      if (known === undefined) return decodeProven(message, isProven)
      known.source.message = message
      return known.decoded
    },
    isKept: ({ streamOffset }) => kept.has(streamOffset),
  }
}

function toSlimMessage({ events, deadLetters }: Decoded): Pick<Kept, 'source' | 'decoded'> {
  const source: Source = { message: null, events: null }
  const slim = events.map((event, index) => toSlim(event, source, index))
  return { source, decoded: { events: slim, deadLetters } }
}

function toSlim(event: AcceptedEvent, source: Source, index: number): AcceptedEvent {
  const { event_id, tenant_id, received_at, rasp_score, rasp_action, reasons, body } = event
  const { policy_version, policy_hash, epoch, streamOffset } = event
  const { server_signals, install, connection } = event
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
    // A few names with small values, unlike the signals of the body.
    ...(server_signals === undefined ? {} : { server_signals }),
    ...(install === undefined ? {} : { install }),
    ...(connection === undefined ? {} : { connection }),
    filledCategories: toFilledCategories(body.signals as Signals),
    traits: toInstallTraits(event),
    // Deciding, and an alert, need no other member of the body.
    body: new SlimBody(body, source, index) as unknown as Telemetry,
  }
}

/** A body whose signals are decoded when they are first read. */
class SlimBody {
  readonly tenant_id: string
  readonly device_id: string
  readonly session_id: string
  readonly user_id: string | undefined
  readonly account_id: string | undefined
  readonly sdk_meta: Telemetry['sdk_meta']
  readonly scorer: ClientVerdict
  readonly app: { version: string }
  readonly device: { model: string }
  readonly #source: Source
  readonly #index: number

  constructor(body: Telemetry, source: Source, index: number) {
    const { sdk_version, platform, batch_type } = body.sdk_meta
    this.tenant_id = body.tenant_id
    this.device_id = body.device_id
    this.session_id = body.session_id
    this.user_id = body.user_id
    this.account_id = body.account_id
    this.sdk_meta = { sdk_version, platform, batch_type }
    this.scorer = readClientVerdict(body.scorer)
    const { appVersion, deviceModel } = readInstall(body)
    this.app = { version: appVersion }
    this.device = { model: deviceModel }
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
): DecodedToStore {
  if (isProven(message)) return decode(message)
  const { data, streamOffset } = message
  const detail = 'no edge of this service wrote it'
  return {
    events: [],
    registrations: [],
    deadLetters: [{ reason: 'unproven_batch', detail, id: `${streamOffset}`, data }],
  }
}

function decode({ data, streamOffset }: ConsumedMessage): DecodedToStore {
  try {
    const { events, registrations, invalid } = decodeBatch(data, streamOffset)
    const deadLetters = invalid.map(({ index, detail, data }): DeadLetter => {
      return { reason: 'invalid_event', detail, id: `${streamOffset}-${index}`, data }
    })
    return { events, registrations, deadLetters }
  } catch (error) {
    if (!(error instanceof PoisonError)) throw error
    const { reason, message: detail } = error
    const deadLetters = [{ reason, detail, id: `${streamOffset}`, data }]
    return { events: [], registrations: [], deadLetters }
  }
}

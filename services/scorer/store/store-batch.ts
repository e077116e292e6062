/**
 * The first stage of a batch of messages: decode, store, put poison aside, and record for
 * reconciliation what each message brought. Every step is idempotent, so that a batch may be
 * repeated from its beginning at any time; the caller acknowledges only after the last step, which
 * says to every decider that these are stored.
 *
 * A message is decoded as its rows are made and then let go: what a whole batch decodes to is most
 * of what a process would hold, and held until all of it is stored it would be moved by every
 * collection of garbage meanwhile.
 */
import { toStoredEntries } from '#shared/core/reconciliation/reconciliation.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import {
  type AcceptedEvent,
  encodeEventHead,
  toStreamOffset,
} from '#shared/core/telemetry/event-batch.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'
import type { ReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type { TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import type { ScorerObserver } from '../metrics.ts'
import type { DecodedMessages } from './decoded-messages.ts'

export type StoreBatchDeps = {
  messages: DecodedMessages
  telemetry: TelemetryStore
  reconciliation: Pick<ReconciliationWriter, 'insertEntries'>
  storeDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>
  observe: ScorerObserver
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Stores what messages of accepted events bring.
 * @throws when a store cannot be reached: nothing is lost, the batch is to be repeated
 */
export async function storeBatch(
  batch: readonly ConsumedMessage[],
  { messages, telemetry, reconciliation, storeDeadLetters, observe, wallMs }: StoreBatchDeps,
): Promise<void> {
  let read: readonly ReadMessage[] = []
  let noting: Promise<void> | null = null
  const note = (refused: ReadonlySet<string>) =>
    observe.timed(
      'reconciliation',
      reconciliation.insertEntries(toEntries(read, refused, wallMs())),
    )
  const events = readEvents(batch, messages, (all) => {
    read = all
    // Reconciliation counts what the stream brought, whatever comes of it: both are written at
    // once.
    noting ??= note(new Set())
    noting.catch(() => undefined)
  })
  const insert = observe.timed('insert', telemetry.insertTelemetry(events))
  const [inserted] = await Promise.allSettled([insert])
  // Also when that failed: the next try notes the same.
  const [noted] = await Promise.allSettled([noting])
  if (inserted.status === 'rejected') throw inserted.reason
  if (noted.status === 'rejected') throw noted.reason
  const outcome = inserted.value
  // From here on every event is in ClickHouse, in its history and in its activity.
  // An entry replaces the one before.
  if (outcome.refused.length > 0) await note(new Set(outcome.refused.map(toKey)))
  observe.inserted(read, wallMs(), outcome.withoutSignals.length)
  observe.leftOut(outcome.leftOut)
  const deadLetters = read.flatMap((one) => one.deadLetters)
  for (const event of outcome.refused) deadLetters.push(toRefusedDeadLetter(event))
  // Where somebody can look at it, before anything is acknowledged.
  await storeDeadLetters(deadLetters)
  observe.dropped(deadLetters)
}

/** What is kept of a message whose events are being stored. */
type ReadMessage = {
  message: ConsumedMessage
  /** Without their signals. */
  events: AcceptedEvent[]
  deadLetters: DeadLetter[]
  /** Signals of its events that the catalog does not know, where there are any. */
  unknownSignals: { sdkVersion: string; count: number }[]
}

/**
 * The events of a batch, decoded message by message, each time they are asked for anew.
 * @param onRead told of all messages once the last one's events have been taken
 */
function readEvents(
  batch: readonly ConsumedMessage[],
  messages: DecodedMessages,
  onRead: (read: readonly ReadMessage[]) => void,
): Iterable<AcceptedEvent> {
  return {
    *[Symbol.iterator]() {
      const read: ReadMessage[] = []
      for (const message of batch) {
        const { events, deadLetters, remembered } = messages.decode(message)
        const unknownSignals = events.map(toUnknownSignals).filter(({ count }) => count > 0)
        read.push({ message, events: remembered, deadLetters, unknownSignals })
        yield* events
      }
      onRead(read)
    },
  }
}

function toUnknownSignals({ body }: AcceptedEvent) {
  const { length: count } = findUnknownSignals(body.signals as Signals)
  return { sdkVersion: body.sdk_meta.sdk_version, count }
}

/** @param refused keys of events that can never be stored */
function toEntries(read: readonly ReadMessage[], refused: ReadonlySet<string>, atMs: number) {
  return read.flatMap(({ message, events }) => {
    const streamOffset = toStreamOffset(message.streamCreatedMs, message.sequence)
    const without = new Set(events.filter((event) => refused.size > 0 && refused.has(toKey(event))))
    return toStoredEntries({ streamOffset, events }, without, atMs)
  })
}

const toKey = ({ streamOffset, event_id }: AcceptedEvent): string => `${streamOffset} ${event_id}`

const closeBrace = Buffer.from('}')

/** The element of the message that the event came in. */
function toRefusedDeadLetter(event: AcceptedEvent): DeadLetter {
  const body = event.bodyBytes ?? Buffer.from(JSON.stringify(event.body))
  const data = Buffer.concat([Buffer.from(encodeEventHead(event, body.length)), body, closeBrace])
  const detail = `event ${event.event_id} was refused by ClickHouse`
  const { event_id: id, tenant_id: tenantId } = event
  return { reason: 'refused_by_store', detail, id, tenantId, data }
}

/**
 * The first stage of a batch of messages: decode, store, put poison aside. Every step is
 * idempotent, so that a batch may be repeated from its beginning at any time; the caller
 * acknowledges only after the last step, which says to every decider that these are stored.
 */
import type { AcceptedEvent } from '#shared/core/messages.ts'
import type { ConsumedMessage } from '#shared/io/consume.ts'
import type { DeadLetter } from '#shared/io/dead-letters.ts'
import type { TelemetryStore } from '#shared/io/telemetry-store.ts'
import type { DecodedMessages } from './decoded-messages.ts'
import type { ScorerObserver } from './observe.ts'

export type StoreBatchDependencies = {
  messages: DecodedMessages
  telemetry: TelemetryStore
  storeDeadLetters: (letters: readonly DeadLetter[]) => Promise<void>
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
  { messages, telemetry, storeDeadLetters, observe, wallMs }: StoreBatchDependencies,
): Promise<void> {
  const decoded = batch.map(messages.decode)
  const events = decoded.flatMap((one) => one.events)
  const letters = decoded.flatMap((one) => one.letters)
  // From here on every event is in ClickHouse, in its history and in its activity.
  const outcome = await observe.timed('insert', telemetry.insertTelemetry(events))
  observe.inserted(events, wallMs(), outcome.withoutSignals.length)
  for (const event of outcome.refused) letters.push(toRefusedLetter(event))
  // Where somebody can look at it, before anything is acknowledged.
  await storeDeadLetters(letters)
  observe.dropped(letters)
}

function toRefusedLetter(event: AcceptedEvent): DeadLetter {
  const { bodyBytes, ...rest } = event
  const data = Buffer.from(JSON.stringify(rest))
  const detail = `event ${event.event_id} was refused by ClickHouse`
  return { reason: 'refused_by_store', detail, id: event.event_id, data }
}

/**
 * The first stage of a batch of messages: decode, store, put poison aside, and say in the ledger
 * what each message brought. Every step is idempotent, so that a batch may be repeated from its
 * beginning at any time; the caller acknowledges only after the last step, which says to every
 * decider that these are stored.
 */
import { toStoredEntries } from '#shared/core/ledger.ts'
import { type AcceptedEvent, toPosition } from '#shared/core/messages.ts'
import type { ConsumedMessage } from '#shared/io/consume.ts'
import type { DeadLetter } from '#shared/io/dead-letters.ts'
import type { LedgerWriter } from '#shared/io/ledger-rows-store.ts'
import type { TelemetryStore } from '#shared/io/telemetry-store.ts'
import type { DecodedMessages } from './decoded-messages.ts'
import type { ScorerObserver } from './observe.ts'

export type StoreBatchDeps = {
  messages: DecodedMessages
  telemetry: TelemetryStore
  ledger: Pick<LedgerWriter, 'insertEntries'>
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
  { messages, telemetry, ledger, storeDeadLetters, observe, wallMs }: StoreBatchDeps,
): Promise<void> {
  const decoded = batch.map(messages.decode)
  const events = decoded.flatMap((one) => one.events)
  const letters = decoded.flatMap((one) => one.letters)
  const toEntries = (refused: ReadonlySet<AcceptedEvent>) =>
    batch.flatMap((message, index) => {
      const position = toPosition(message.streamCreatedMs, message.sequence)
      return toStoredEntries({ position, events: decoded[index]!.events }, refused, wallMs())
    })
  // The ledger counts what the stream brought, whatever comes of it: so both are written at once.
  const written = ledger.insertEntries(toEntries(new Set()))
  const [inserted, noted] = await Promise.allSettled([
    observe.timed('insert', telemetry.insertTelemetry(events)),
    observe.timed('ledger', written),
  ])
  if (inserted.status === 'rejected') throw inserted.reason
  if (noted.status === 'rejected') throw noted.reason
  // From here on every event is in ClickHouse, in its history and in its activity.
  const outcome = inserted.value
  // An entry replaces the one before.
  if (outcome.refused.length > 0) await ledger.insertEntries(toEntries(new Set(outcome.refused)))
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

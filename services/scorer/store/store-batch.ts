/**
 * The first stage of a batch: decode, insert events, registrations and the keys of installs into
 * ClickHouse, store dead letters, and record for reconciliation what each message contained.
 * Every step is idempotent, so a batch can be repeated at any time. The caller acknowledges after
 * the last step: then deciders may proceed.
 *
 * Messages are decoded one by one while their rows are encoded, so a whole decoded batch is never
 * in memory at once.
 */

import type { AcceptedRegistration } from '#shared/core/installs/registration.ts'
import { toStoredEntries } from '#shared/core/reconciliation/reconciliation.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { type AcceptedEvent, encodeEventHead } from '#shared/core/telemetry/event-batch.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'
import type { IdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import type { InstallWriter } from '#shared/io/installs/install-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'
import type { ReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type { TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import type { ScorerObserver } from '../metrics.ts'
import type { DecodedMessages } from './decoded-messages.ts'

export type StoreBatchDeps = {
  messages: DecodedMessages
  telemetry: TelemetryStore
  installs: InstallWriter
  identities: IdentityKeyWriter
  reconciliation: Pick<ReconciliationWriter, 'insertEntries'>
  storeDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>
  observe: ScorerObserver
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Stores the events and the registrations of messages.
 * @throws when a store cannot be reached; repeat the batch then
 */
export async function storeBatch(
  batch: readonly ConsumedMessage[],
  { messages, telemetry, installs, identities, storeDeadLetters, ...deps }: StoreBatchDeps,
): Promise<void> {
  const { observe, reconciliation, wallMs } = deps
  let read: readonly ReadMessage[] = []
  let recording: Promise<void> | null = null
  let registering: Promise<void> | null = null
  let identifying: Promise<void> | null = null
  const record = (refused: ReadonlySet<string>) =>
    observe.timed(
      'reconciliation',
      reconciliation.insertEntries(toEntries(read, refused, wallMs())),
    )
  const register = async (registrations: readonly AcceptedRegistration[]) => {
    if (registrations.length === 0) return
    await observe.timed('registrations', installs.insertRegistrations(registrations))
    observe.registered(registrations)
  }
  const identify = async (kept: readonly AcceptedEvent[]) => {
    if (kept.every(({ traits }) => traits === null)) return
    observe.identified(await observe.timed('identity', identities.insertIdentityKeys(kept)))
  }
  const events = readEvents(batch, messages, (all) => {
    read = all
    // Reconciliation counts what the stream contains, so both are written concurrently.
    recording ??= record(new Set())
    recording.catch(() => undefined)
    registering ??= register(all.flatMap((one) => one.registrations))
    registering.catch(() => undefined)
    identifying ??= identify(all.flatMap((one) => one.events))
    identifying.catch(() => undefined)
  })
  const insert = observe.timed('insert', telemetry.insertTelemetry(events))
  const [inserted] = await Promise.allSettled([insert])
  // Also when the insert failed: the next attempt records the same.
  const [recorded, registered, identified] = await Promise.allSettled([
    recording,
    registering,
    identifying,
  ])
  if (inserted.status === 'rejected') throw inserted.reason
  if (recorded.status === 'rejected') throw recorded.reason
  if (registered.status === 'rejected') throw registered.reason
  if (identified.status === 'rejected') throw identified.reason
  const outcome = inserted.value
  // A later entry of a message replaces the earlier one.
  if (outcome.refused.length > 0) await record(new Set(outcome.refused.map(toKey)))
  observe.inserted(read, wallMs(), outcome.withoutSignals.length)
  observe.leftOut(outcome.leftOut)
  const deadLetters = read.flatMap((one) => one.deadLetters)
  for (const event of outcome.refused) deadLetters.push(toRefusedDeadLetter(event))
  await storeDeadLetters(deadLetters)
  observe.dropped(deadLetters)
}

/** A decoded message whose events are being inserted. */
type ReadMessage = {
  message: ConsumedMessage
  /** Without signals in memory. */
  events: AcceptedEvent[]
  registrations: AcceptedRegistration[]
  deadLetters: DeadLetter[]
  /** Signals of its events that are not in the catalog. */
  unknownSignals: { sdkVersion: string; count: number }[]
}

/**
 * The events of a batch, decoded message by message; each iteration decodes again.
 * @param onRead called with all messages at the end of an iteration
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
        const { events, registrations, deadLetters, kept } = messages.decodeToStore(message)
        const unknownSignals = events.map(toUnknownSignals).filter(({ count }) => count > 0)
        read.push({ message, events: kept, registrations, deadLetters, unknownSignals })
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

/** @param refused keys of events that ClickHouse refused */
function toEntries(read: readonly ReadMessage[], refused: ReadonlySet<string>, atMs: number) {
  return read.flatMap(({ message, events }) => {
    const without = new Set(events.filter((event) => refused.size > 0 && refused.has(toKey(event))))
    return toStoredEntries({ ...message, events }, without, atMs)
  })
}

const toKey = ({ streamOffset, event_id }: AcceptedEvent): string => `${streamOffset} ${event_id}`

const closeBrace = Buffer.from('}')

/** The dead letter has the event as its element in the message. */
function toRefusedDeadLetter(event: AcceptedEvent): DeadLetter {
  const body = event.bodyBytes ?? Buffer.from(JSON.stringify(event.body))
  const data = Buffer.concat([Buffer.from(encodeEventHead(event, body.length)), body, closeBrace])
  const detail = `event ${event.event_id} was refused by ClickHouse`
  const { event_id: id, tenant_id: tenantId } = event
  return { reason: 'refused_by_store', detail, id, tenantId, data }
}

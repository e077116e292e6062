/**
 * Quarantines a message that keeps failing by a defect, so that the messages behind it proceed: it
 * does what is possible and stores the message as a dead letter for an operator.
 */
import {
  type ReconciliationEntry,
  toStoredEntries,
} from '#shared/core/reconciliation/reconciliation.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'
import { isDefect } from '#shared/io/process/defects.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { ReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type { ScorerObserver } from '../metrics.ts'
import type { DecodedMessages } from '../store/decoded-messages.ts'
import { type DecideBatchDeps, decideBatch } from './decide-batch.ts'

export type QuarantineDeps = {
  messages: DecodedMessages
  reconciliation: Pick<ReconciliationWriter, 'insertEntries'>
  storeDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>
  observe: Pick<ScorerObserver, 'dropped'>
  log: Pick<Log, 'error'>
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Quarantines a message that cannot be stored. Its events count as refused.
 * @throws when the dead letter cannot be stored
 */
export async function quarantineUnstored(
  message: ConsumedMessage,
  error: unknown,
  { messages, reconciliation, wallMs, ...deps }: QuarantineDeps,
): Promise<void> {
  const events = decodeIfPossible(messages, message)
  const refused = new Set(events)
  await reconciliation.insertEntries(toStoredEntries({ ...message, events }, refused, wallMs()))
  await storeDeadLetter({ ...message, error, what: 'store', events }, deps)
}

function decodeIfPossible(messages: DecodedMessages, message: ConsumedMessage): AcceptedEvent[] {
  try {
    return messages.decodeToStore(message).events
  } catch {
    return []
  }
}

/**
 * Quarantines a message that cannot be decided: it decides each event alone. If some still fail, it
 * stores the message as a dead letter, and reconciliation shows these events as undecided for good.
 * @throws when a store cannot be reached, or the dead letter cannot be stored
 */
export async function quarantineUndecided(
  message: ConsumedMessage,
  error: unknown,
  { decide, ...deps }: QuarantineDeps & { decide: DecideBatchDeps },
): Promise<void> {
  const entries: ReconciliationEntry[] = []
  const alone = {
    ...decide,
    reconciliation: {
      ...decide.reconciliation,
      insertEntries: async (added: readonly ReconciliationEntry[]) => {
        entries.push(...added)
      },
    },
  }
  const failed: AcceptedEvent[] = []
  for (const event of decodeIfPossible(deps.messages, message)) {
    const decodeToDecide = () => ({ events: [event], deadLetters: [] })
    try {
      await decideBatch([message], { ...alone, messages: { ...deps.messages, decodeToDecide } })
    } catch (failure) {
      if (!isDefect(failure)) throw failure
      failed.push(event)
    }
  }
  await decide.reconciliation.insertEntries(mergeEntries(entries))
  if (failed.length === 0) return
  await storeDeadLetter({ ...message, error, what: 'decide', events: failed }, deps)
}

/** A later entry of a message replaces an earlier one: merge those of one tenant and hour. */
function mergeEntries(entries: readonly ReconciliationEntry[]): ReconciliationEntry[] {
  const merged = new Map<string, ReconciliationEntry>()
  for (const entry of entries) {
    const key = `${entry.tenantId} ${entry.hourMs}`
    const { events, named } = merged.get(key) ?? { events: 0, named: [] }
    merged.set(key, {
      ...entry,
      events: events + entry.events,
      named: [...named, ...entry.named],
    })
  }
  return [...merged.values()]
}

/** @param failed with the events that could not be processed */
async function storeDeadLetter(
  failed: ConsumedMessage & {
    error: unknown
    what: 'store' | 'decide'
    events: readonly AcceptedEvent[]
  },
  { storeDeadLetters, observe, log }: Pick<QuarantineDeps, 'storeDeadLetters' | 'observe' | 'log'>,
): Promise<void> {
  const { data, sequence, streamOffset, error, what, events } = failed
  const detail = `${what}: ${error instanceof Error ? error.name : 'unknown'}`
  await storeDeadLetters([{ reason: 'defect', detail, id: `${streamOffset}-${what}`, data }])
  observe.dropped([{ reason: 'defect' }])
  const ids = events.map(({ event_id: id }) => id)
  log.error({ seq: sequence, what, event_ids: ids }, 'events are in a dead letter')
}

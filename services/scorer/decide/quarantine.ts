/**
 * The last resort for a message that fails by a defect again and again: nothing waits for it any
 * longer, what can be done of it is done, and the rest is put aside where somebody can look at it.
 */
import {
  type ReconciliationEntry,
  toStoredEntries,
} from '#shared/core/reconciliation/reconciliation.ts'
import { type AcceptedEvent, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'
import { isDefect } from '#shared/io/process/defects.ts'
import type { ReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type { ScorerObserver } from '../metrics.ts'
import type { DecodedMessages } from '../store/decoded-messages.ts'
import { type DecideBatchDeps, decideBatch } from './decide-batch.ts'

export type QuarantineDeps = {
  messages: DecodedMessages
  reconciliation: Pick<ReconciliationWriter, 'insertEntries'>
  storeDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>
  observe: Pick<ScorerObserver, 'dropped'>
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Gives up storing a message: decisions wait for everything before them to be stored.
 * @throws when it cannot be put aside
 */
export async function quarantineUnstored(
  message: ConsumedMessage,
  error: unknown,
  { messages, reconciliation, wallMs, ...deps }: QuarantineDeps,
): Promise<void> {
  const events = decodeIfPossible(messages, message)
  // They will have no rows.
  const refused = new Set(events)
  const streamOffset = toStreamOffset(message.streamCreatedMs, message.sequence)
  await reconciliation.insertEntries(toStoredEntries({ streamOffset, events }, refused, wallMs()))
  await storeDeadLetter({ ...message, error, what: 'store' }, deps)
}

function decodeIfPossible(messages: DecodedMessages, message: ConsumedMessage): AcceptedEvent[] {
  try {
    return messages.decode(message).events
  } catch {
    return []
  }
}

/**
 * Gives up deciding a message as a whole and decides each of its events by itself. Those that still
 * cannot be decided are missing in reconciliation for good, and the message is put aside.
 * @throws when a store cannot be reached, or when it cannot be put aside
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
      insertEntries: async (own: readonly ReconciliationEntry[]) => {
        entries.push(...own)
      },
    },
  }
  let failed = false
  for (const event of decodeIfPossible(deps.messages, message)) {
    const take = () => ({ events: [event], deadLetters: [] })
    try {
      await decideBatch([message], { ...alone, messages: { ...deps.messages, take } })
    } catch (one) {
      if (!isDefect(one)) throw one
      failed = true
    }
  }
  await decide.reconciliation.insertEntries(mergeEntries(entries))
  if (failed) await storeDeadLetter({ ...message, error, what: 'decide' }, deps)
}

/** An entry of a message replaces the one before, so there is to be one of each tenant and hour. */
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

async function storeDeadLetter(
  { data, sequence, error, what }: ConsumedMessage & { error: unknown; what: 'store' | 'decide' },
  { storeDeadLetters, observe }: Pick<QuarantineDeps, 'storeDeadLetters' | 'observe'>,
): Promise<void> {
  const detail = `${what}: ${error instanceof Error ? error.name : 'unknown'}`
  await storeDeadLetters([{ reason: 'defect', detail, id: `${sequence}-${what}`, data }])
  observe.dropped([{ reason: 'defect' }])
}

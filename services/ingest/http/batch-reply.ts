/**
 * The answer to a client's batch: it collects what became of each event, and is complete when the
 * last one is settled.
 */
import { clientBatchFaultsMax } from '#shared/core/base/limits/ingest.ts'
import type { UnstoredBatch } from '#shared/core/http/problem.ts'
import { escapeNonAscii } from '../accepted-answer.ts'
import { type Refusal, refusals } from '../refusals.ts'

export type BatchReply = {
  /** @param answer as of an event that is sent alone: JSON in ASCII */
  setAccepted: (index: number, answer: string) => void
  setInvalid: (index: number, refusal: Refusal) => void
  /** An event that is not stored, or not certainly. */
  setUnavailable: (index: number, eventId: string) => void
}

export type BatchCounts = { accepted: number; invalid: number; unavailable: number }

/**
 * @param size the events of the batch; each is set once
 * @param done called when all are set, with the JSON of each
 */
export function createBatchReply(
  size: number,
  done: (counts: BatchCounts, entries: readonly string[]) => void,
): BatchReply {
  const entries: string[] = new Array(size).fill('')
  const counts: BatchCounts = { accepted: 0, invalid: 0, unavailable: 0 }
  let open = size
  const set = (index: number, outcome: keyof BatchCounts, entry: string) => {
    entries[index] = entry
    counts[outcome]++
    open--
    if (open === 0) done(counts, entries)
  }
  return {
    setAccepted: (index, answer) => set(index, 'accepted', answer),
    setInvalid: (index, refusal) => set(index, 'invalid', toInvalidEntry(refusal)),
    setUnavailable: (index, eventId) => set(index, 'unavailable', toUnavailableEntry(eventId)),
  }
}

/** The body of a 200: JSON in ASCII. */
export const toBatchAnswer = (
  { accepted, invalid }: BatchCounts,
  entries: readonly string[],
): string => `{"accepted":${accepted},"invalid":${invalid},"events":[${entries.join(',')}]}`

/** What a 503 adds to its problem. */
export const toUnstoredBatch = (
  counts: BatchCounts,
  entries: readonly string[],
): UnstoredBatch => ({ ...counts, events: entries.map((entry) => JSON.parse(entry) as unknown) })

function toInvalidEntry({ problem }: Refusal): string {
  const { code, message: detail, errors } = problem
  const faults = errors?.slice(0, clientBatchFaultsMax)
  return escapeNonAscii(JSON.stringify({ status: 'invalid', code, detail, errors: faults }))
}

function toUnavailableEntry(eventId: string): string {
  const { code, message: detail } = refusals.notStored.problem
  return JSON.stringify({ status: 'unavailable', code, detail, event_id: eventId })
}

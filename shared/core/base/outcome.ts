/**
 * The outcome of an event in a stage of the pipeline: done, or dropped for a counted reason. An
 * infrastructure failure is thrown, and the message is retried.
 */

/** Why a message or an event can never be processed, as a metric label. */
export const dropReasons = [
  // A message without the proof of an edge: it is not decoded.
  'unproven_batch',
  'unreadable_batch',
  'invalid_event',
  'refused_by_store',
  // A message that failed repeatedly because of a defect in the service.
  'defect',
] as const
export type DropReason = (typeof dropReasons)[number]

/** Thrown by pure code for input that can never become valid. A stage turns it into a drop. */
export class PoisonError extends Error {
  readonly reason: DropReason
  constructor(reason: DropReason, detail: string) {
    super(detail)
    this.name = 'PoisonError'
    this.reason = reason
  }
}

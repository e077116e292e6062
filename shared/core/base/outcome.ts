/**
 * How a stage of the pipeline ends an event: done, or dropped for a counted reason. Infrastructure
 * failures are neither: they are thrown and the message is tried again.
 */

/** Why a message or an event can never be processed; the value is a metric label. */
export type DropReason =
  /** A message that no edge of ours has proven: it is not decoded. */
  | 'unproven_batch'
  | 'unreadable_batch'
  | 'invalid_event'
  | 'refused_by_store'
  /** A message that hit a defect of ours again and again. */
  | 'defect'

/** Thrown by pure code for input that can never become valid; a stage turns it into a drop. */
export class PoisonError extends Error {
  readonly reason: DropReason
  constructor(reason: DropReason, detail: string) {
    super(detail)
    this.name = 'PoisonError'
    this.reason = reason
  }
}

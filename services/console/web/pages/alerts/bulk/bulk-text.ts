/** What a bulk change does and progress, in words. */
import { dispositionText } from '../../alert/disposition.tsx'
import type { BulkJob } from './bulk-jobs.ts'

const number = (value: number) => value.toLocaleString('en')
const areNow = (count: number) => `${number(count)} ${count === 1 ? 'alert is' : 'alerts are'}`

/** What it sets: `to Confirmed`. */
function bulkWhat({ sets, disposition, assignee, undo_of: undoOf }: BulkJob): string {
  if (undoOf !== null) return sets === 'disposition' ? 'undo of dispositions' : 'undo of assignees'
  if (disposition !== null) return `to ${dispositionText(disposition)}`
  return assignee === null ? 'unassigned' : `assigned to ${assignee}`
}

/** How far it is, or what came of it. */
export function bulkProgress(job: BulkJob): string {
  const { state, total, done, changed, kept } = job
  if (state === 'running') return `${number(done)} of ${number(total)} alerts, ${bulkWhat(job)}`
  if (job.undo_of !== null) {
    const how = state === 'done' ? 'Undone' : `Undo stopped at ${number(done)} of ${number(total)}`
    const stay = kept > 0 ? `; ${number(kept)} ${kept === 1 ? 'stays' : 'stay'}, changed since` : ''
    return `${how}: ${areNow(changed)} as before${stay}`
  }
  if (state === 'cancelled') {
    return `Cancelled: ${number(changed)} of ${number(total)} alerts were changed`
  }
  const to = job.disposition === null ? bulkWhat(job) : dispositionText(job.disposition)
  return `${areNow(changed)} now ${to}`
}

/** How far a change of many alerts is, with a way to cancel it, and to undo it once it has ended. */
import { lazy, Suspense } from 'react'
import { ApiProblem } from '../../../api/client.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { toastFailure } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { type BulkJob, undoableOf, useCancelBulk, useUndoBulk } from './bulk-jobs.ts'
import { bulkProgress } from './bulk-text.ts'

const UndoProposal = lazy(() =>
  import('./undo-proposal.tsx').then((file) => ({ default: file.UndoProposal })),
)

export function BulkProgress({
  job,
  onUndo,
  onClose,
}: {
  job: BulkJob
  /** Called with the job that undoes this one. */
  onUndo: (jobId: string) => void
  onClose: () => void
}) {
  const { state, total, done } = job
  return (
    <div className="grid gap-1.5 border-line border-b bg-panel px-4 py-2">
      <div className="flex flex-wrap items-center gap-2">
        <span className="min-w-40 flex-1 break-words" role="status">
          {bulkProgress(job)}
          {job.undone_by !== null && '; undone since'}
        </span>
        <BulkActions job={job} onUndo={onUndo} />
        {state !== 'running' && <IconButton icon="close" label="Dismiss" onClick={onClose} />}
      </div>
      {state === 'running' && (
        <progress
          aria-label="Alerts changed"
          className="h-1.5 w-full accent-accent"
          max={Math.max(total, 1)}
          value={done}
        />
      )}
    </div>
  )
}

/** Cancel while a job is running; Undo after it. */
export function BulkActions({ job, onUndo }: { job: BulkJob; onUndo?: (jobId: string) => void }) {
  const cancel = useCancelBulk()
  const undo = useUndoBulk()
  const undoable = undoableOf(job)
  const onError = (error: Error) => {
    if (!needsApproval(error)) toastFailure(`Bulk change: ${error.message}`)
  }
  if (!useMay('analyst')) return null
  return (
    <>
      {job.state === 'running' && (
        <Button
          busy={cancel.isPending}
          onClick={() => cancel.mutate(job.job_id, { onError })}
          small
        >
          Cancel
        </Button>
      )}
      {undoable !== null && (
        <Button
          busy={undo.isPending}
          onClick={() =>
            undo.mutate(undoable, { onError, onSuccess: (begun) => onUndo?.(begun.job_id) })
          }
          small
        >
          {job.undo_of === null ? 'Undo' : 'Go on'}
        </Button>
      )}
      {undoable !== null && needsApproval(undo.error) && (
        <Suspense>
          <UndoProposal
            error={undo.error}
            jobId={undoable}
            onClose={undo.reset}
            tenant={job.tenant_id}
          />
        </Suspense>
      )}
    </>
  )
}

const needsApproval = (error: unknown): boolean =>
  error instanceof ApiProblem && error.code === 'approval_required'

/** How far a change of all matching alerts is, with a way to cancel it. */
import { Button, IconButton } from '../../../components/button.tsx'
import { Refused } from '../../../components/states.tsx'
import { useMay } from '../../../shell/operator.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { type BulkJob, useCancelBulk } from './bulk-jobs.ts'

export function BulkProgress({ job, onClose }: { job: BulkJob; onClose: () => void }) {
  const cancel = useCancelBulk()
  const mayCancel = useMay('analyst')
  const { state, total, done, changed, disposition } = job
  const number = (value: number) => value.toLocaleString('en')
  const text = {
    running: `${number(done)} of ${number(total)} alerts, to ${dispositionText(disposition)}`,
    done: `${number(changed)} alerts are now ${dispositionText(disposition)}`,
    cancelled: `Cancelled: ${number(changed)} of ${number(total)} alerts were changed`,
  }[state]
  return (
    <div className="grid gap-1.5 border-line border-b bg-panel px-4 py-2">
      <div className="flex items-center gap-2">
        <span className="min-w-0 flex-1" role="status">
          {text}
        </span>
        {state === 'running' && mayCancel && (
          <Button busy={cancel.isPending} onClick={() => cancel.mutate(job.job_id)} small>
            Cancel
          </Button>
        )}
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
      <Refused error={cancel.error} />
    </div>
  )
}

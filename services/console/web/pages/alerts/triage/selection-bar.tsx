/** What is done with the alerts that are selected. */

import { useState } from 'react'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { Button } from '../../../components/button.tsx'
import { useMay } from '../../../shell/operator.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { BulkDialog } from '../bulk/lazy-bulk-dialog.tsx'

export function SelectionBar({
  tenant,
  checked,
  onSetDisposition,
  onStarted,
  onClear,
}: {
  tenant: string
  checked: ReadonlySet<string>
  onSetDisposition: (to: Disposition) => void
  /** Called with the job that changes them. */
  onStarted: (jobId: string) => void
  onClear: () => void
}) {
  const [assigning, setAssigning] = useState(false)
  const maySetDisposition = useMay('analyst')
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-1.5 border-line border-t bg-panel p-2 pl-4">
      <span className="mr-1 font-medium" role="status">
        {checked.size} selected
      </span>
      {maySetDisposition && (
        <>
          {dispositions.map((one) => (
            <Button key={one} onClick={() => onSetDisposition(one)} small>
              {dispositionText(one)}
            </Button>
          ))}
          <Button onClick={() => setAssigning(true)} small>
            Assign
          </Button>
        </>
      )}
      <Button look="quiet" onClick={onClear} small>
        Clear selection
      </Button>
      {assigning && (
        <BulkDialog
          onClose={() => setAssigning(false)}
          onStarted={(jobId) => {
            setAssigning(false)
            onStarted(jobId)
          }}
          sets="assignee"
          target={{ alert_ids: [...checked] }}
          tenant={tenant}
        />
      )}
    </div>
  )
}

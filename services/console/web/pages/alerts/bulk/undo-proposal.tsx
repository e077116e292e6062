/** Proposes the undo of a bulk change, where the tenant wants four eyes. */
import { Dialog } from '../../../components/dialog.tsx'
import { Propose } from '../../proposals/propose.tsx'

export function UndoProposal({
  tenant,
  jobId,
  error,
  onClose,
}: {
  tenant: string
  jobId: string
  error: unknown
  onClose: () => void
}) {
  return (
    <Dialog onClose={onClose} open title="Undo this bulk change">
      <Propose
        body={{ kind: 'bulk_undo', job_id: jobId }}
        error={error}
        onCancel={onClose}
        tenant={tenant}
      >
        {null}
      </Propose>
    </Dialog>
  )
}

/** Gives a case to an operator. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Refused } from '../../../components/states.tsx'
import { useSignedIn } from '../../../shell/operator.ts'
import { AssigneeSelect } from '../../alert/assignee-select.tsx'

export function AssignDialog({
  tenant,
  busy,
  error,
  onClose,
  onAssign,
}: {
  tenant: string
  busy: boolean
  error: unknown
  onClose: () => void
  /** @param assignee an email */
  onAssign: (assignee: string) => void
}) {
  const { operator } = useSignedIn()
  const [assignee, setAssignee] = useState(operator.email)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onAssign(assignee)
  }
  return (
    <Dialog onClose={onClose} open title="Assign this case">
      <form className="grid gap-4" onSubmit={submit}>
        <AssigneeSelect
          onChange={(next) => setAssignee(next ?? operator.email)}
          tenant={tenant}
          value={assignee}
        />
        <Refused error={error} />
        <DialogActions>
          <Button disabled={busy} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={busy} look="primary" type="submit">
            Assign
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

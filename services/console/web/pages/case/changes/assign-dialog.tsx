/** Gives a case to an operator. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Input } from '../../../components/field.tsx'
import { Refused } from '../../../components/states.tsx'

export function AssignDialog({
  busy,
  error,
  onClose,
  onAssign,
}: {
  busy: boolean
  error: unknown
  onClose: () => void
  /** @param assignee an email */
  onAssign: (assignee: string) => void
}) {
  const [email, setEmail] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onAssign(email.trim())
  }
  return (
    <Dialog onClose={onClose} open title="Assign this case">
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          label="Email of an operator"
          onChange={({ target }) => setEmail(target.value)}
          required
          type="email"
          value={email}
        />
        <Refused error={error} />
        <DialogActions>
          <Button disabled={busy} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={busy} disabled={email.trim() === ''} look="primary" type="submit">
            Assign
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

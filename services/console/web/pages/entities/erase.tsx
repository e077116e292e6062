/** Erases a device or a user from every store, after its id was typed, and shows how far it is. */
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { useMay } from '../../shell/operator.ts'
import { erasureSearch, requestErasure, type Subject } from '../erasure/erasures.ts'

/** The button; nothing for those who may not erase. */
export function Erase({ tenant, subject }: { tenant: string; subject: Subject }) {
  const [open, setOpen] = useState(false)
  if (!useMay('admin')) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Erase this {subject.kind}</Button>
      {open && <EraseDialog onClose={() => setOpen(false)} subject={subject} tenant={tenant} />}
    </>
  )
}

function EraseDialog({
  tenant,
  subject: { kind, id },
  onClose,
}: {
  tenant: string
  subject: Subject
  onClose: () => void
}) {
  const [typed, setTyped] = useState('')
  // Invisible characters cannot be typed: their escapes can.
  const matches = typed === id || typed === toVisible(id)
  const navigate = useNavigate()
  const erase = useMutation({
    mutationFn: () => requestErasure(tenant, { kind, id }),
    // Its progress and its receipt.
    onSuccess: (erasure) =>
      navigate({ to: '/manage/erasure' as '/', search: erasureSearch(erasure) as never }),
  })
  return (
    <Dialog
      description={`Everything that was accepted of this ${kind} before now is removed from every store: events, sessions, alerts and deliveries. This cannot be undone.`}
      locked={erase.isPending}
      onClose={onClose}
      open
      title={`Erase this ${kind}`}
    >
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (matches) erase.mutate()
        }}
      >
        <Input
          autoComplete="off"
          autoFocus
          label={`Type ${toVisible(id)} to confirm`}
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        <Refused error={erase.error} />
        <DialogActions>
          <Button disabled={erase.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={erase.isPending} disabled={!matches} look="danger" type="submit">
            Erase
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

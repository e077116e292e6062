/**
 * Erases a device or a user after its id was typed, and leads to the page that shows how far the
 * erasure is.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { useFourEyes } from '../proposals/proposals.ts'
import { Propose } from '../proposals/propose.tsx'
import { erasureQuery, erasuresQuery, requestErasure, type Subject } from './erasures.ts'

export function EraseDialog({
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
  const client = useQueryClient()
  const needsApproval = useFourEyes(tenant)?.enabled === true
  const navigate = useNavigate()
  const erase = useMutation({
    mutationFn: () => requestErasure(tenant, { kind, id }),
    onSuccess: (erasure) => {
      client.setQueryData(erasureQuery(tenant, erasure.erasure_id).queryKey, erasure)
      void client.invalidateQueries(erasuresQuery(tenant))
      onClose()
      // Its progress and its receipt; the id is gone from the address too.
      const search = { tenant, erasure: erasure.erasure_id }
      void navigate({ to: '/manage/erasure', search, replace: true })
    },
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
          if (matches && !needsApproval) erase.mutate()
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
        <Propose
          body={{
            kind: 'erasure',
            subject: kind === 'user' ? { user_id: id } : { device_id: id },
          }}
          disabled={!matches}
          error={erase.error}
          isNeeded={needsApproval}
          onCancel={onClose}
          pending={erase.isPending}
          tenant={tenant}
        >
          <Button busy={erase.isPending} disabled={!matches} look="danger" type="submit">
            Erase
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}

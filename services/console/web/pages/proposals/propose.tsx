/**
 * The actions of a dialog whose change may need an approval: those of the dialog, or Propose in
 * their place, where the tenant wants four eyes or the server has just said so.
 */
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { DialogActions } from '../../components/dialog.tsx'
import { Textarea } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { type Proposed, usePropose } from './proposals.ts'

export function Propose({
  tenant,
  body,
  reason: given,
  isNeeded = false,
  error,
  pending = false,
  disabled = false,
  onCancel,
  children,
}: {
  tenant: string
  body: Proposed
  /** The reason of the dialog; without one it is asked for here. */
  reason?: string
  isNeeded?: boolean
  /** Of the direct call. */
  error: unknown
  pending?: boolean
  disabled?: boolean
  onCancel: () => void
  /** The button of the direct call. */
  children: ReactNode
}) {
  const [typed, setTyped] = useState('')
  const propose = usePropose(tenant)
  const navigate = useNavigate()
  const wasRefused = error instanceof ApiProblem && error.code === 'approval_required'
  const asks = isNeeded || wasRefused
  const reason = (given ?? typed).trim()
  const cancel = (
    <Button disabled={pending || propose.isPending} onClick={onCancel}>
      Cancel
    </Button>
  )
  if (!asks) {
    return (
      <>
        <Refused error={error} />
        <DialogActions>
          {cancel}
          {children}
        </DialogActions>
      </>
    )
  }
  const submit = () =>
    propose.mutate({ ...body, reason } as Parameters<typeof propose.mutate>[0], {
      onSuccess: ({ proposal_id: proposal }) => {
        toast('Proposed. Another administrator can approve it now.')
        const search = { proposal }
        void navigate({ to: '/t/$tenant/proposals', params: { tenant }, search })
      },
    })
  return (
    <>
      <p className="rounded-md bg-warn-soft px-3 py-2 text-warn" role="status">
        This tenant wants four eyes: another administrator approves the change, and then it is done.
      </p>
      {given === undefined && (
        <Textarea
          hint="Whoever approves it reads it."
          label="Reason"
          maxLength={500}
          onChange={({ target }) => setTyped(target.value)}
          required
          rows={2}
          value={typed}
        />
      )}
      <Refused error={propose.error} />
      <DialogActions>
        {cancel}
        <Button
          busy={propose.isPending}
          disabled={disabled || reason === ''}
          look="primary"
          onClick={submit}
        >
          Propose
        </Button>
      </DialogActions>
    </>
  )
}

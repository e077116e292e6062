/** Invites a person: makes a link that works once, which the administrator sends them. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import type { Role } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { CopyLine } from '../../components/secret.tsx'
import { Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { RoleSelect } from './role-select.tsx'
import { type Scope, ScopeField } from './scope.tsx'

export function InviteOperator({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [role, setRole] = useState<Role>('analyst')
  const [scope, setScope] = useState<Scope>('all')
  const invite = useMutation({
    mutationFn: (email: string) =>
      ok(
        api.POST('/admin/v1/operators/invitations', {
          params: {},
          body: { email, role, tenants: scope },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ['operators'] }),
  })
  if (invite.data !== undefined) {
    return (
      <Dialog
        description="Send this link to the person over a channel that you trust. It works once."
        locked
        onClose={onClose}
        open
        title="The invitation is ready"
      >
        <CopyLine label="Link" value={invite.data.url} />
        <p className="text-muted">
          Valid until <Time at={invite.data.expires_at} exact />. It is shown only now.
        </p>
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    )
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    invite.mutate(String(new FormData(event.currentTarget).get('email') ?? '').trim())
  }
  const problem = invite.error instanceof ApiProblem ? invite.error : null
  const ofEmail = problem?.of('email')
  return (
    <Dialog locked={invite.isPending} onClose={onClose} open title="Invite an operator">
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          error={ofEmail}
          label="Email"
          name="email"
          required
          type="email"
        />
        <RoleSelect onChange={setRole} role={role} />
        <ScopeField onChange={setScope} scope={scope} />
        {ofEmail === undefined && <Refused error={invite.error} />}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            busy={invite.isPending}
            disabled={scope !== 'all' && scope.length === 0}
            look="primary"
            type="submit"
          >
            Make the link
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

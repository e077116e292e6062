/** Changes the role and the tenants of an operator, or disables and enables the account. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { sessionQuery } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import type { ListedOperator } from './operators.ts'
import { RoleSelect } from './role-select.tsx'
import { type Scope, ScopeField } from './scope.tsx'

type Change = { role?: ListedOperator['role']; tenants?: Scope; disabled?: boolean }

export function ChangeOperator({
  operator,
  onClose,
}: {
  operator: ListedOperator
  onClose: () => void
}) {
  const client = useQueryClient()
  const [role, setRole] = useState(operator.role)
  const [scope, setScope] = useState<Scope>(operator.tenants)
  const change = useMutation({
    mutationFn: (body: Change) =>
      ok(
        api.PATCH('/admin/v1/operators/{operator_id}', {
          params: { path: { operator_id: operator.operator_id } },
          body,
        }),
      ),
    onSuccess: async (changed) => {
      await client.invalidateQueries({ queryKey: ['operators'] })
      void client.invalidateQueries({ queryKey: sessionQuery.queryKey })
      toast(`${changed.name} is ${changed.disabled ? 'disabled' : `${changed.role} now`}.`)
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate({ role, tenants: scope })
  }
  return (
    <Dialog
      description={operator.email}
      locked={change.isPending}
      onClose={onClose}
      open
      title={operator.name}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <RoleSelect onChange={setRole} role={role} />
        <ScopeField onChange={setScope} scope={scope} />
        <Refused error={change.error} />
        <DialogActions>
          <Button
            className="mr-auto"
            disabled={change.isPending}
            look={operator.disabled ? 'plain' : 'danger'}
            onClick={() => change.mutate({ disabled: !operator.disabled })}
          >
            {operator.disabled ? 'Enable' : 'Disable'}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            busy={change.isPending}
            disabled={scope !== 'all' && scope.length === 0}
            look="primary"
            type="submit"
          >
            Save
          </Button>
        </DialogActions>
        {!operator.disabled && (
          <p className="text-muted text-sm">Disabling ends all sessions of the account at once.</p>
        )}
      </form>
    </Dialog>
  )
}

/** Admin → SQL accounts: who may query a tenant's analytics views; credentials are shown once. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'
import { useTenant } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { CopyLine } from '../../components/secret.tsx'
import { useLeaveGuard } from '../../components/state/leave-guard.ts'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded, Refused } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { TenantSelect } from '../../components/tenant-select.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast } from '../../components/toast.tsx'
import { NeedsServer } from '../explore/needs-server.tsx'
import { useViews } from '../explore/sidebar.tsx'

type Analysts = AnswerOf<'/admin/v1/tenants/{tenant_id}/analysts', 'get'>
type Analyst = Analysts['data'][number]
type Created = AnswerOf<'/admin/v1/tenants/{tenant_id}/analysts', 'post'>

const analystsKey = (tenantId: string) => ['analysts', tenantId]

export function Page() {
  const last = useTenant()
  const [chosen, choose] = useUrlState('tenant')
  const tenantId = chosen || (last ?? '')
  const [creating, setCreating] = useState(false)
  const [removing, setRemoving] = useState<string | null>(null)
  const [resetting, setResetting] = useState<string | null>(null)
  const needsServer = useViews().data?.needs_server === true
  const analysts = useQuery({
    queryKey: analystsKey(tenantId),
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/analysts', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
    enabled: tenantId !== '',
  })
  const columns: Column<Analyst>[] = [
    { id: 'name', head: 'Name', cell: ({ name }) => name },
    {
      id: 'user',
      head: 'User',
      cell: ({ user }) => <span className="font-mono text-sm">{user}</span>,
    },
    { id: 'by', head: 'Created by', cell: ({ created_by }) => created_by },
    {
      id: 'created',
      head: 'Created',
      cell: ({ created_at }) => <Time at={created_at} />,
      width: '8rem',
    },
    {
      id: 'reset',
      head: <span className="sr-only">New password</span>,
      cell: ({ name }) => (
        <Button
          aria-label={`New password of ${name}`}
          disabled={needsServer}
          onClick={() => setResetting(name)}
          small
        >
          New password
        </Button>
      ),
      width: '9rem',
    },
    {
      id: 'remove',
      head: <span className="sr-only">Remove</span>,
      cell: ({ name }) => (
        <Button aria-label={`Remove ${name}`} onClick={() => setRemoving(name)} small>
          Remove
        </Button>
      ),
      width: '6.5rem',
    },
  ]
  return (
    <Frame
      about="An analyst has a ClickHouse user that reads the analytics views of one tenant and changes nothing, for tools outside this console."
      action={
        <Button
          disabled={tenantId === '' || needsServer}
          icon="plus"
          look="primary"
          onClick={() => setCreating(true)}
        >
          Create an analyst
        </Button>
      }
      title="SQL accounts"
    >
      <div className="max-w-xs">
        <TenantSelect onChange={choose} value={tenantId} />
      </div>
      <Panel>
        {tenantId === '' ? (
          <Empty title="No tenant yet" />
        ) : (
          <Loaded query={analysts}>
            {({ data }) =>
              data.length === 0 && needsServer ? (
                <NeedsServer />
              ) : data.length === 0 ? (
                <Empty title={`${tenantId} has no analyst`}>
                  <p>Create one to query its views from a BI tool or a notebook.</p>
                </Empty>
              ) : (
                <Table
                  columns={columns}
                  label={`SQL accounts of ${tenantId}`}
                  rowKey={({ name }) => name}
                  rows={data}
                />
              )
            }
          </Loaded>
        )}
      </Panel>
      {creating && <CreateAnalyst onClose={() => setCreating(false)} tenantId={tenantId} />}
      {resetting !== null && (
        <ResetPassword name={resetting} onClose={() => setResetting(null)} tenantId={tenantId} />
      )}
      {removing !== null && (
        <RemoveAnalyst name={removing} onClose={() => setRemoving(null)} tenantId={tenantId} />
      )}
    </Frame>
  )
}

function CreateAnalyst({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const client = useQueryClient()
  const [name, setName] = useState('analyst')
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/analysts', {
          params: { path: { tenant_id: tenantId } },
          body: { name: name.trim() },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: analystsKey(tenantId) }),
  })
  if (create.data !== undefined) return <Credentials created={create.data} onClose={onClose} />
  const problem = create.error instanceof ApiProblem ? create.error : null
  const exists = problem?.code === 'analyst_exists' ? problem.message : undefined
  const beside = exists ?? problem?.of('name')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <Dialog
      locked={create.isPending}
      onClose={onClose}
      open
      title={`Create an analyst of ${tenantId}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          error={beside}
          hint="1 to 32 lower-case letters, digits and hyphens."
          label="Name"
          mono
          onChange={({ target }) => setName(target.value)}
          required
          spellCheck={false}
          value={name}
        />
        {beside === undefined && <Refused error={create.error} />}
        <DialogActions>
          <Button disabled={create.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={create.isPending} look="primary" type="submit">
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

function Credentials({ created, onClose }: { created: Created; onClose: () => void }) {
  useLeaveGuard(true, 'The password is shown only now. Leave without it?')
  return (
    <Dialog
      description="The password is shown only now. Keep it in a password manager."
      locked
      onClose={onClose}
      open
      title={`The analyst ${created.name}`}
    >
      <div className="grid gap-3">
        <CopyLine label="Address" value={created.url} />
        <CopyLine label="Database" value={created.database} />
        <CopyLine label="User" value={created.user} />
        <CopyLine label="Password" value={created.password} />
        {created.warning !== undefined && (
          <p className="rounded-md bg-warn-soft px-3 py-2 text-warn">{created.warning}</p>
        )}
      </div>
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          I have saved it
        </Button>
      </DialogActions>
    </Dialog>
  )
}

function ResetPassword({
  tenantId,
  name,
  onClose,
}: {
  tenantId: string
  name: string
  onClose: () => void
}) {
  const reset = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/analysts/{name}/password', {
          params: { path: { tenant_id: tenantId, name } },
        }),
      ),
  })
  if (reset.data !== undefined) return <Credentials created={reset.data} onClose={onClose} />
  return (
    <Dialog
      description="From then on no query starts with the old password. Tools that use it need the new one."
      locked={reset.isPending}
      onClose={onClose}
      open
      title={`Give the analyst ${name} a new password`}
    >
      <Refused error={reset.error} />
      <DialogActions>
        <Button disabled={reset.isPending} onClick={onClose}>
          Cancel
        </Button>
        <Button busy={reset.isPending} look="primary" onClick={() => reset.mutate()}>
          Give a new password
        </Button>
      </DialogActions>
    </Dialog>
  )
}

function RemoveAnalyst({
  tenantId,
  name,
  onClose,
}: {
  tenantId: string
  name: string
  onClose: () => void
}) {
  const client = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      ok(
        api.DELETE('/admin/v1/tenants/{tenant_id}/analysts/{name}', {
          params: { path: { tenant_id: tenantId, name } },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: analystsKey(tenantId) })
      toast(`The analyst ${name} is removed.`)
      onClose()
    },
  })
  return (
    <Dialog
      description="From then on no query starts with its password. What it read stays where it was taken."
      locked={remove.isPending}
      onClose={onClose}
      open
      title={`Remove the analyst ${name}`}
    >
      <Refused error={remove.error} />
      <DialogActions>
        <Button disabled={remove.isPending} onClick={onClose}>
          Cancel
        </Button>
        <Button busy={remove.isPending} look="danger" onClick={() => remove.mutate()}>
          Remove
        </Button>
      </DialogActions>
    </Dialog>
  )
}

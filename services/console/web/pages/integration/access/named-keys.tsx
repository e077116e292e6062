/** The named API keys of a tenant, for its own programs; a key is shown once, when it is made. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type ApiKeyScope, apiKeyScopes } from '#shared/core/tenants/api-key-scopes.ts'
import { type AnswerOf, ApiProblem, api, ok } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Checkbox, Input } from '../../../components/field.tsx'
import { Panel } from '../../../components/page.tsx'
import { CopyLine } from '../../../components/secret.tsx'
import { Empty, Loaded, Refused, SkeletonRows } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { Time } from '../../../components/time/time.tsx'
import { toast } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { Propose } from '../../proposals/propose.tsx'

type Key = AnswerOf<'/admin/v1/tenants/{tenant_id}/keys', 'get'>['data'][number]

const keysKey = (tenantId: string) => ['keys', tenantId]

const scopeTexts: Record<ApiKeyScope, string> = {
  read: 'Read alerts, devices, users and events',
  'alerts:write': 'Judge alerts',
  'lists:write': 'Change the allow and deny lists',
  'labels:write': 'Add labels',
}

export function NamedKeysPanel({ tenantId }: { tenantId: string }) {
  const mayChange = useMay('admin')
  const [adding, setAdding] = useState(false)
  const [removing, remove] = useState<Key | null>(null)
  const keys = useQuery({
    queryKey: keysKey(tenantId),
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/keys', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
  })
  return (
    <Panel
      action={
        mayChange && (
          <Button icon="plus" onClick={() => setAdding(true)} small>
            Create a key
          </Button>
        )
      }
      title="Named keys"
    >
      <Loaded query={keys} skeleton={<SkeletonRows rows={3} />}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No named key yet">
              {mayChange
                ? 'A program that judges, lists or labels needs one with that scope.'
                : 'An administrator can create one.'}
            </Empty>
          ) : (
            <Table
              columns={toColumns(mayChange ? remove : undefined)}
              heightClass="max-h-72"
              label="Named keys"
              minWidth="48rem"
              rowKey={({ name }) => name}
              rows={data}
            />
          )
        }
      </Loaded>
      {adding && <AddKey onClose={() => setAdding(false)} tenantId={tenantId} />}
      {removing !== null && (
        <RemoveKey name={removing.name} onClose={() => remove(null)} tenantId={tenantId} />
      )}
    </Panel>
  )
}

const toColumns = (onRemove: ((key: Key) => void) | undefined): Column<Key>[] => [
  { id: 'name', head: 'Name', cell: ({ name }) => name, width: '10rem' },
  { id: 'scopes', head: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
  {
    id: 'key',
    head: 'Key',
    cell: ({ prefix, last4 }) => <span className="font-mono text-sm">{`${prefix}…${last4}`}</span>,
    width: '11rem',
  },
  { id: 'made', head: 'Created', cell: (one) => <Time at={one.created_at} />, width: '8rem' },
  { id: 'used', head: 'Last used', cell: (one) => <Time at={one.last_used_at} />, width: '8rem' },
  ...(onRemove === undefined
    ? []
    : [
        {
          id: 'remove',
          head: <span className="sr-only">Remove</span>,
          numeric: true,
          cell: (key: Key) => (
            <Button aria-label={`Remove ${key.name}`} onClick={() => onRemove(key)} small>
              Remove
            </Button>
          ),
          width: '6.5rem',
        },
      ]),
]

function AddKey({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<ApiKeyScope[]>(['read'])
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/keys', {
          params: { path: { tenant_id: tenantId } },
          body: { name: name.trim(), scopes },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: keysKey(tenantId) }),
  })
  const problem = create.error instanceof ApiProblem ? create.error : null
  const beside = problem?.code === 'key_exists' ? problem.message : problem?.of('name')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  if (create.data !== undefined) {
    return (
      <Dialog
        description="It is shown this once. Save it where your program reads its secrets."
        locked
        onClose={onClose}
        open
        title={`The key ${create.data.name} of ${tenantId}`}
      >
        <CopyLine label="API key" value={create.data.api_key} />
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            I have saved it
          </Button>
        </DialogActions>
      </Dialog>
    )
  }
  return (
    <Dialog locked={create.isPending} onClose={onClose} open title={`Create a key of ${tenantId}`}>
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoFocus
          error={beside}
          hint="Lower-case letters, digits and hyphens."
          label="Name"
          onChange={({ target }) => setName(target.value)}
          required
          spellCheck={false}
          value={name}
        />
        <fieldset className="grid gap-2">
          <legend className="pb-1 font-medium">It may</legend>
          {apiKeyScopes.map((scope) => (
            <Checkbox
              checked={scope === 'read' || scopes.includes(scope)}
              disabled={scope === 'read'}
              key={scope}
              label={scopeTexts[scope]}
              onChange={({ target }) =>
                setScopes(
                  target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope),
                )
              }
            />
          ))}
        </fieldset>
        <Propose
          body={{ kind: 'api_key', key: { name: name.trim(), scopes } }}
          error={beside === undefined ? create.error : null}
          onCancel={onClose}
          pending={create.isPending}
          tenant={tenantId}
        >
          <Button busy={create.isPending} look="primary" type="submit">
            Create
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}

function RemoveKey({
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
        api.DELETE('/admin/v1/tenants/{tenant_id}/keys/{name}', {
          params: { path: { tenant_id: tenantId, name } },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: keysKey(tenantId) })
      toast(`The key ${name} of ${tenantId} is removed.`)
      onClose()
    },
  })
  return (
    <Dialog
      description="No new call with it succeeds, and none changes anything."
      locked={remove.isPending}
      onClose={onClose}
      open
      title={`Remove the key ${name}`}
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

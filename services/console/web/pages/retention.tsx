/** Admin → Retention: how long each kind of data of a tenant stays. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiProblem, api, ok } from '../api/client.ts'
import { type Tenant, tenantsQuery } from '../api/tenants.ts'
import { Button } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Input, Select } from '../components/field.tsx'
import { Page as Frame, Panel } from '../components/page.tsx'
import { useUrlState } from '../components/state/url-state.ts'
import { Empty, Loaded } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { toast } from '../components/toast.tsx'
import { useMay } from '../shell/operator.ts'
import { Propose } from './proposals/propose.tsx'

type Kind = keyof Tenant['retention']
type Setting = number | 'default' | 'forever'

const kinds: [kind: Kind, label: string][] = [
  ['events', 'Events and sessions'],
  ['alerts', 'Alerts'],
  ['deliveries', 'Deliveries'],
]

function describe({ days, default: isDefault }: Tenant['retention'][Kind]): string {
  const text = days === null ? 'without limit' : `${days.toLocaleString('en')} days`
  return isDefault ? `${text} (default)` : text
}

export function Page() {
  const tenants = useQuery(tenantsQuery)
  const [chosen, choose] = useUrlState('tenant')
  const mayChange = useMay('admin')
  const columns: Column<Tenant>[] = [
    {
      id: 'tenant',
      head: 'Tenant',
      cell: ({ tenant_id }) =>
        mayChange ? (
          <button className="font-medium text-accent-text" type="button">
            {tenant_id}
          </button>
        ) : (
          tenant_id
        ),
    },
    ...kinds.map(([kind, label]) => ({
      id: kind,
      head: label,
      cell: ({ retention }: Tenant) => describe(retention[kind]),
    })),
  ]
  const tenant = tenants.data?.find(({ tenant_id }) => tenant_id === chosen)
  return (
    <Frame
      about="Older data is removed within minutes and cannot be restored. Choose a tenant to change its periods."
      title="Retention"
    >
      <Panel>
        <Loaded query={tenants}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No tenant yet" />
            ) : (
              <Table
                columns={columns}
                label="Retention by tenant"
                {...(mayChange ? { onSelect: ({ tenant_id }: Tenant) => choose(tenant_id) } : {})}
                rowKey={({ tenant_id }) => tenant_id}
                rows={rows}
              />
            )
          }
        </Loaded>
      </Panel>
      {mayChange && tenant !== undefined && (
        <ChangeRetention key={chosen} onClose={() => choose('')} tenant={tenant} />
      )}
    </Frame>
  )
}

const toSetting = ({ days, default: isDefault }: Tenant['retention'][Kind]): Setting => {
  if (isDefault) return 'default'
  return days ?? 'forever'
}

/** Whether a change removes data that stays today. The product's default is not known here. */
const isShorter = (before: Setting, after: Setting): boolean => {
  if (after === 'forever' || after === before) return false
  return typeof before !== 'number' || typeof after !== 'number' || after < before
}

function ChangeRetention({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { tenant_id: tenantId, retention } = tenant
  const client = useQueryClient()
  const [settings, setSettings] = useState<Record<Kind, Setting>>({
    events: toSetting(retention.events),
    alerts: toSetting(retention.alerts),
    deliveries: toSetting(retention.deliveries),
  })
  const [typed, setTyped] = useState('')
  const changed = kinds.filter(([kind]) => settings[kind] !== toSetting(retention[kind]))
  const removes = changed.some(([kind]) => isShorter(toSetting(retention[kind]), settings[kind]))
  const changes = Object.fromEntries(changed.map(([kind]) => [kind, settings[kind]]))
  const isIncomplete = changed.length === 0 || (removes && typed !== tenantId)
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/retention', {
          params: { path: { tenant_id: tenantId } },
          body: changes,
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: tenantsQuery.queryKey })
      toast(`The retention of ${tenantId} is changed.`)
      onClose()
    },
  })
  const problem = save.error instanceof ApiProblem ? save.error : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog
      description="Data that is older than its period is removed within minutes, in every store."
      locked={save.isPending}
      onClose={onClose}
      open
      title={`Retention of ${tenantId}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        {kinds.map(([kind, label]) => (
          <Period
            error={problem?.of(kind)}
            key={kind}
            label={label}
            onChange={(value) => setSettings({ ...settings, [kind]: value })}
            value={settings[kind]}
          />
        ))}
        {removes && (
          <Input
            autoComplete="off"
            hint="This can remove data, and it cannot be restored."
            label={`Type ${tenantId} to confirm`}
            mono
            onChange={({ target }) => setTyped(target.value)}
            spellCheck={false}
            value={typed}
          />
        )}
        <Propose
          body={{ kind: 'retention', periods: changes }}
          disabled={isIncomplete}
          error={problem !== null && problem.errors.length > 0 ? null : save.error}
          onCancel={onClose}
          pending={save.isPending}
          tenant={tenantId}
        >
          <Button
            busy={save.isPending}
            disabled={isIncomplete}
            look={removes ? 'danger' : 'primary'}
            type="submit"
          >
            Save
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}

function Period({
  label,
  value,
  error,
  onChange,
}: {
  label: string
  value: Setting
  error: string | undefined
  onChange: (value: Setting) => void
}) {
  const isDays = typeof value === 'number'
  return (
    <div className="grid grid-cols-2 items-start gap-3">
      <Select
        error={error}
        label={label}
        onChange={({ target }) =>
          onChange(target.value === 'days' ? 90 : (target.value as 'default' | 'forever'))
        }
        value={isDays ? 'days' : value}
      >
        <option value="default">Default</option>
        <option value="days">Days</option>
        <option value="forever">Without limit</option>
      </Select>
      {isDays && (
        <Input
          label={`Days of ${label.toLowerCase()}`}
          min={1}
          onChange={({ target }) => onChange(target.valueAsNumber || 1)}
          required
          type="number"
          value={value}
        />
      )}
    </div>
  )
}

/** Whether the edges accept a tenant, and at which rates; an administrator changes both. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiProblem, api, ok } from '../../../api/client.ts'
import { type Tenant, tenantQuery, tenantsQuery } from '../../../api/tenants.ts'
import { Badge } from '../../../components/badge.tsx'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Input } from '../../../components/field.tsx'
import { Facts, Panel } from '../../../components/page.tsx'
import { Refused } from '../../../components/states.tsx'
import { toast } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { useFourEyes } from '../../proposals/proposals.ts'
import { Propose } from '../../proposals/propose.tsx'

type Rate = { per_second: number; burst: number } | null

/** The rates of a tenant, each with what it bounds. */
const rates = {
  ingest_rate: { name: 'Requests', unit: 'requests' },
  ingest_bytes: { name: 'Bytes', unit: 'bytes' },
  rest_rate: { name: 'REST API', unit: 'calls' },
} as const
type RateName = keyof typeof rates
const rateNames = Object.keys(rates) as RateName[]

const toRateText = (rate: Rate, unit: string): string =>
  rate === null
    ? 'as usual'
    : `${rate.per_second.toLocaleString('en')} ${unit} a second, ${rate.burst.toLocaleString('en')} at once`

export function StatePanel({ tenant }: { tenant: Tenant }) {
  const mayChange = useMay('admin')
  const [asking, ask] = useState<'suspend' | 'rates' | null>(null)
  const { setStatus } = useChangeTenant(tenant.tenant_id)
  const isActive = tenant.status === 'active'
  const actions = mayChange && (
    <div className="flex flex-wrap gap-2">
      <Button onClick={() => ask('rates')} small>
        Set the rates
      </Button>
      {isActive ? (
        <Button onClick={() => ask('suspend')} small>
          Suspend
        </Button>
      ) : (
        <Button busy={setStatus.isPending} onClick={() => setStatus.mutate('resume')} small>
          Resume
        </Button>
      )}
    </div>
  )
  return (
    <Panel action={actions} title="Access">
      <Facts
        facts={[
          [
            'State',
            <Badge key="state" tone={isActive ? 'good' : 'bad'}>
              {tenant.status}
            </Badge>,
          ],
          ...rateNames.map((name): [string, string] => [
            rates[name].name,
            toRateText(tenant[name], rates[name].unit),
          ]),
        ]}
      />
      {!mayChange && (
        <p className="px-4 pb-3 text-muted text-sm">An administrator can change this.</p>
      )}
      <Refused error={setStatus.error} />
      {asking === 'suspend' && <Suspend onClose={() => ask(null)} tenantId={tenant.tenant_id} />}
      {asking === 'rates' && <RatesDialog onClose={() => ask(null)} tenant={tenant} />}
    </Panel>
  )
}

function useRefreshTenant(tenantId: string): () => Promise<unknown> {
  const client = useQueryClient()
  return () =>
    Promise.all(
      [tenantQuery(tenantId).queryKey, tenantsQuery.queryKey].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    )
}

function useChangeTenant(tenantId: string) {
  const refresh = useRefreshTenant(tenantId)
  const params = { path: { tenant_id: tenantId } }
  const setStatus = useMutation({
    mutationFn: (change: 'suspend' | 'resume') =>
      ok(
        change === 'suspend'
          ? api.POST('/admin/v1/tenants/{tenant_id}/suspend', { params })
          : api.POST('/admin/v1/tenants/{tenant_id}/resume', { params }),
      ),
    onSuccess: async (_, change) => {
      await refresh()
      toast(
        change === 'suspend'
          ? `${tenantId} is suspended: every edge refuses it.`
          : `${tenantId} is active: every edge accepts it.`,
      )
    },
  })
  return { setStatus, refresh }
}

function Suspend({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const { setStatus } = useChangeTenant(tenantId)
  const fourEyes = useFourEyes(tenantId)
  return (
    <Dialog
      description="Every edge refuses what its apps send, as if the tenant were not there, until it is resumed. What is stored stays."
      locked={setStatus.isPending}
      onClose={onClose}
      open
      title={`Suspend ${tenantId}`}
    >
      <Propose
        body={{ kind: 'suspension' }}
        error={setStatus.error}
        isNeeded={fourEyes?.enabled === true}
        onCancel={onClose}
        pending={setStatus.isPending}
        tenant={tenantId}
      >
        <Button
          busy={setStatus.isPending}
          look="danger"
          onClick={() => setStatus.mutate('suspend', { onSuccess: onClose })}
        >
          Suspend
        </Button>
      </Propose>
    </Dialog>
  )
}

type Draft = Record<RateName, { per_second: string; burst: string }>

const toDraft = (tenant: Tenant): Draft =>
  Object.fromEntries(
    rateNames.map((name) => {
      const { per_second: perSecond = '', burst = '' } = tenant[name] ?? {}
      return [name, { per_second: String(perSecond), burst: String(burst) }]
    }),
  ) as Draft

/** Two empty fields are the usual rate. */
const toRate = ({ per_second: perSecond, burst }: Draft[RateName]): Rate =>
  perSecond.trim() === '' && burst.trim() === ''
    ? null
    : { per_second: Number(perSecond), burst: Number(burst) }

function RatesDialog({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { tenant_id: tenantId } = tenant
  const { refresh } = useChangeTenant(tenantId)
  const [draft, setDraft] = useState(() => toDraft(tenant))
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/rates', {
          params: { path: { tenant_id: tenantId } },
          body: Object.fromEntries(rateNames.map((name) => [name, toRate(draft[name])])),
        }),
      ),
    onSuccess: async () => {
      await refresh()
      toast(`The rates of ${tenantId} are set.`)
      onClose()
    },
  })
  const problem = save.error instanceof ApiProblem ? save.error : null
  const isBeside = (problem?.errors.length ?? 0) > 0
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog
      description="Leave both fields of a line empty for the usual rate."
      locked={save.isPending}
      onClose={onClose}
      open
      title={`The rates of ${tenantId}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        {rateNames.map((name) => (
          <fieldset className="grid grid-cols-2 items-start gap-3" key={name}>
            <legend className="pb-1 text-muted text-sm">{rates[name].name}</legend>
            {(['per_second', 'burst'] as const).map((field) => (
              <Input
                error={problem?.of(`${name}.${field}`)}
                inputMode="decimal"
                key={field}
                label={field === 'burst' ? 'At once' : 'A second'}
                onChange={({ target }) =>
                  setDraft({ ...draft, [name]: { ...draft[name], [field]: target.value } })
                }
                value={draft[name][field]}
              />
            ))}
          </fieldset>
        ))}
        {!isBeside && <Refused error={save.error} />}
        <DialogActions>
          <Button disabled={save.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={save.isPending} look="primary" type="submit">
            Save
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

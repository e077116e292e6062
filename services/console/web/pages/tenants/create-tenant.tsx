/** Creates a tenant and shows its keys, the only time that they are shown. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { FormEvent } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { tenantsQuery } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input, Select } from '../../components/field.tsx'
import { CopyLine } from '../../components/secret.tsx'
import { useLeaveGuard } from '../../components/state/leave-guard.ts'
import { Refused } from '../../components/states.tsx'

type NewTenant = {
  tenant_id: string
  name?: string
  environment: 'live' | 'sandbox'
  webhook_url?: string
}

export function CreateTenant({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const create = useMutation({
    mutationFn: (body: NewTenant) => ok(api.POST('/admin/v1/tenants', { params: {}, body })),
    onSuccess: () => client.invalidateQueries({ queryKey: tenantsQuery.queryKey }),
  })
  if (create.data !== undefined) return <NewKeys keys={create.data} onClose={onClose} />

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (name: string) => String(form.get(name) ?? '').trim()
    create.mutate({
      tenant_id: text('tenant_id'),
      environment: text('environment') === 'live' ? 'live' : 'sandbox',
      ...(text('name') === '' ? {} : { name: text('name') }),
      ...(text('webhook_url') === '' ? {} : { webhook_url: text('webhook_url') }),
    })
  }
  const problem = create.error instanceof ApiProblem ? create.error : null
  const exists = problem?.code === 'tenant_exists' ? problem.message : undefined
  const badUrl = problem?.code === 'webhook_url_refused' ? problem.message : undefined
  const isBeside = exists || badUrl || (problem !== null && problem.errors.length > 0)
  return (
    <Dialog locked={create.isPending} onClose={onClose} open title="Create a tenant">
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          error={exists ?? problem?.of('tenant_id')}
          hint="Lower-case letters, digits and dashes. It is in every submission and cannot be changed."
          label="Slug"
          mono
          name="tenant_id"
          required
        />
        <Input
          autoComplete="off"
          error={problem?.of('name')}
          hint="For people; shown beside the slug."
          label="Name"
          name="name"
        />
        <Select
          error={problem?.of('environment')}
          hint="Sandbox keys are for development; their webhooks may use http and private addresses where that is allowed."
          label="Kind"
          name="environment"
        >
          <option value="live">Live</option>
          <option value="sandbox">Sandbox</option>
        </Select>
        <Input
          autoComplete="off"
          error={badUrl ?? problem?.of('webhook_url')}
          hint="Where alerts are delivered. It can be set later."
          label="Webhook URL"
          name="webhook_url"
          type="url"
        />
        {!isBeside && <Refused error={create.error} />}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button busy={create.isPending} look="primary" type="submit">
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

function NewKeys({
  keys,
  onClose,
}: {
  keys: { tenant_id: string; public_api_key: string; hmac_secret: string; webhook_secret: string }
  onClose: () => void
}) {
  const navigate = useNavigate()
  useLeaveGuard(true, 'The keys are shown only once. Leave without keeping them?')
  return (
    <Dialog
      description="The two secrets are shown only now. Keep them where your app and your webhook receiver read their secrets."
      locked
      onClose={onClose}
      open
      title={`The keys of ${keys.tenant_id}`}
    >
      <CopyLine label="Public API key" value={keys.public_api_key} />
      <CopyLine label="HMAC secret" value={keys.hmac_secret} />
      <CopyLine label="Webhook secret" value={keys.webhook_secret} />
      <DialogActions>
        <Button
          look="primary"
          onClick={() => {
            onClose()
            void navigate({
              to: '/manage/integrations/$tenant',
              params: { tenant: keys.tenant_id },
              ignoreBlocker: true,
            })
          }}
        >
          I have saved them
        </Button>
      </DialogActions>
    </Dialog>
  )
}

/** Where alerts go: the URL, whether the webhook is on, and how the receiver does. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import type { Tenant } from '../../api/tenants.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { useRefreshWebhook, useWebhookActions } from './webhook-actions.ts'

const stateTones: Record<Tenant['webhook_state'], Tone> = {
  on: 'good',
  paused: 'warn',
  off: 'neutral',
}

const offReasons: Record<string, string> = {
  operator: 'switched off by an operator',
  gone: 'the receiver answered 410 Gone',
  failing: 'it failed for five days',
}

export function EndpointPanel({ tenant }: { tenant: Tenant }) {
  const { webhook_url: url, webhook_state: state, webhook_off_reason: offReason } = tenant
  const [editing, setEditing] = useState(false)
  const [removing, setRemoving] = useState(false)
  const { pause, resume } = useWebhookActions(tenant.tenant_id)
  const mayChange = useMay('engineer')
  const actions = mayChange && (
    <div className="flex flex-wrap gap-2">
      {state === 'on' && (
        <Button busy={pause.isPending} onClick={() => pause.mutate()} small>
          Pause
        </Button>
      )}
      {state !== 'on' && url !== null && (
        <Button busy={resume.isPending} onClick={() => resume.mutate()} small>
          Resume
        </Button>
      )}
      {state !== 'off' && (
        <Button onClick={() => setRemoving(true)} small>
          Switch off
        </Button>
      )}
      {!editing && (
        <Button onClick={() => setEditing(true)} small>
          {url === null ? 'Set the URL' : 'Change the URL'}
        </Button>
      )}
    </div>
  )
  const facts: [string, ReactNode][] = [
    ['URL', <UrlText key="url" url={url} />],
    [
      'State',
      <span key="state">
        <Badge tone={stateTones[state]}>{state}</Badge>
        {offReason !== null && state === 'off' && (
          <span className="text-muted"> {offReasons[offReason] ?? offReason}</span>
        )}
        {tenant.webhook_changed_at !== null && (
          <span className="text-muted">
            {' '}
            since <Time at={tenant.webhook_changed_at} />
          </span>
        )}
      </span>,
    ],
    ['Health', <Health key="health" tenant={tenant} />],
    [
      'Secret',
      <span key="secret">
        {tenant.webhook_secret === null ? (
          'none'
        ) : (
          <span className="font-mono text-sm">…{tenant.webhook_secret.last4}</span>
        )}{' '}
        <Link params={{ tenant: tenant.tenant_id }} to="/manage/integrations/$tenant">
          Rotate it in Integrations
        </Link>
      </span>,
    ],
  ]
  return (
    <Panel action={actions} title="Endpoint">
      {editing && <UrlForm onClose={() => setEditing(false)} tenant={tenant} />}
      <Facts facts={editing ? facts.slice(1) : facts} />
      {removing && <SwitchOff onClose={() => setRemoving(false)} tenantId={tenant.tenant_id} />}
    </Panel>
  )
}

function UrlText({ url }: { url: string | null }) {
  if (url === null) return <span className="text-muted">none: alerts are not delivered</span>
  return <span className="font-mono text-sm break-all">{url}</span>
}

function Health({ tenant: { webhook_health: health, webhook_state: state } }: { tenant: Tenant }) {
  if (health === null) {
    return state === 'on' ? (
      <Badge tone="good">no failed attempt since the last success</Badge>
    ) : (
      <span className="text-muted">nothing is sent</span>
    )
  }
  const { failed_attempts: failed, failing_since: since, last_failure: last } = health
  return (
    <div className="grid gap-1">
      <span>
        <Badge tone="bad">failing</Badge> since <Time at={since} />, {failed.toLocaleString('en')}{' '}
        {failed === 1 ? 'failed attempt' : 'failed attempts'} in a row
      </span>
      {last !== null && <span className="text-muted break-words">Last: {last}</span>}
      {health.held_until !== null && (
        <span className="text-muted">
          The circuit is open: deliveries wait, the next probe is due{' '}
          <Time at={health.held_until} />.
        </span>
      )}
    </div>
  )
}

function UrlForm({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { tenant_id: tenantId } = tenant
  const refresh = useRefreshWebhook(tenantId)
  const [url, setUrl] = useState(tenant.webhook_url ?? '')
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/webhook', {
          params: { path: { tenant_id: tenantId } },
          body: { url: url.trim() },
        }),
      ),
    onSuccess: async () => {
      await refresh()
      toast(`The URL is saved and the webhook of ${tenantId} is on.`)
      onClose()
    },
  })
  const problem = save.error instanceof ApiProblem ? save.error : null
  const beside = problem?.code === 'webhook_url_refused' ? problem.message : problem?.of('url')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form className="grid gap-3 border-line border-b p-4" onSubmit={submit}>
      <Input
        autoFocus
        error={beside}
        hint={
          tenant.environment === 'live'
            ? 'https, on port 443 or above 1023, at a public address. Saving switches the webhook on.'
            : 'https; http and private addresses where the service allows it. Saving switches the webhook on.'
        }
        label="Webhook URL"
        mono
        onChange={({ target }) => setUrl(target.value)}
        placeholder="https://"
        required
        spellCheck={false}
        value={url}
      />
      {beside === undefined && <Refused error={save.error} />}
      <div className="flex gap-2">
        <Button busy={save.isPending} look="primary" type="submit">
          Save
        </Button>
        <Button disabled={save.isPending} onClick={onClose}>
          Cancel
        </Button>
      </div>
    </form>
  )
}

function SwitchOff({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const refresh = useRefreshWebhook(tenantId)
  const remove = useMutation({
    mutationFn: () =>
      ok(
        api.DELETE('/admin/v1/tenants/{tenant_id}/webhook', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
    onSuccess: async () => {
      await refresh()
      onClose()
    },
  })
  return (
    <Dialog
      description="The URL is forgotten, and deliveries that wait end as skipped. They can be replayed once a URL is set. To let them wait instead, pause the webhook."
      locked={remove.isPending}
      onClose={onClose}
      open
      title="Switch the webhook off"
    >
      <Refused error={remove.error} />
      <DialogActions>
        <Button disabled={remove.isPending} onClick={onClose}>
          Cancel
        </Button>
        <Button busy={remove.isPending} look="danger" onClick={() => remove.mutate()}>
          Switch off
        </Button>
      </DialogActions>
    </Dialog>
  )
}

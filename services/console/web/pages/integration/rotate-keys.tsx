/**
 * Rotates the keys of a tenant: which ones, the slug typed as confirmation, what each edge
 * confirmed, and the new ones, which are shown once.
 */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { tenantQuery, tenantsQuery } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Button, Spinner } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Checkbox, Input } from '../../components/field.tsx'
import { useLeaveGuard } from '../../components/leave-guard.ts'
import { CopyLine } from '../../components/secret.tsx'
import { Refused } from '../../components/states.tsx'

type Rotated = AnswerOf<'/admin/v1/tenants/{tenant_id}/rotate', 'post'>
type Wanted = { hmac: boolean; webhook: boolean; api_key: boolean }

const choices: [key: keyof Wanted, label: string, hint: string][] = [
  ['hmac', 'HMAC secret', 'Signs telemetry. Apps and servers need the new one at once.'],
  ['webhook', 'Webhook secret', 'Signs what is delivered to your receiver.'],
  ['api_key', 'Public API key', 'Reads alerts and devices over the REST API.'],
]

export function RotateKeys({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const client = useQueryClient()
  const [wanted, setWanted] = useState<Wanted>({ hmac: true, webhook: true, api_key: false })
  const [typed, setTyped] = useState('')
  const rotate = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/rotate', {
          params: { path: { tenant_id: tenantId } },
          body: wanted,
        }),
      ),
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: tenantQuery(tenantId).queryKey }),
        client.invalidateQueries({ queryKey: tenantsQuery.queryKey }),
        client.invalidateQueries({ queryKey: ['stale-secret', tenantId] }),
      ]),
  })
  if (rotate.data !== undefined) return <NewKeys onClose={onClose} rotated={rotate.data} />

  const submit = (event: FormEvent) => {
    event.preventDefault()
    rotate.mutate()
  }
  const some = choices.some(([key]) => wanted[key])
  return (
    <Dialog
      description="The old ones stop being valid at once: what is signed with them is refused from then on. For some tens of milliseconds, two seconds at most, requests with either are answered 401."
      locked={rotate.isPending}
      onClose={onClose}
      open
      title="Rotate keys"
    >
      <form className="grid gap-4" onSubmit={submit}>
        <fieldset className="grid gap-3" disabled={rotate.isPending}>
          <legend className="sr-only">Which keys</legend>
          {choices.map(([key, label, hint]) => (
            <Checkbox
              checked={wanted[key]}
              hint={hint}
              key={key}
              label={label}
              onChange={({ target }) => setWanted({ ...wanted, [key]: target.checked })}
            />
          ))}
        </fieldset>
        <Input
          autoComplete="off"
          autoFocus
          disabled={rotate.isPending}
          label={`Type ${tenantId} to confirm`}
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        {rotate.isPending && <Progress />}
        <Refused error={rotate.error} />
        <DialogActions>
          <Button disabled={rotate.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button
            busy={rotate.isPending}
            disabled={typed !== tenantId || !some}
            look="danger"
            type="submit"
          >
            Rotate keys
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

/** The edges that must confirm; each is done within two seconds, or its lease has run out. */
function Progress() {
  const edges = useQuery({
    queryKey: ['edges'],
    queryFn: () => ok(api.GET('/admin/v1/edges', { params: {} })),
    refetchInterval: 300,
  })
  return (
    <div className="grid gap-1 rounded-md bg-panel p-3" role="status">
      <p>Waiting until every edge refuses the old secret.</p>
      {edges.data?.data.map(({ edge_id, applied_revision }) => (
        <p className="flex items-center gap-2 text-muted text-sm" key={edge_id}>
          <Spinner />
          <span className="truncate font-mono">{edge_id}</span>
          <span className="ml-auto whitespace-nowrap">revision {applied_revision}</span>
        </p>
      ))}
    </div>
  )
}

function NewKeys({ rotated, onClose }: { rotated: Rotated; onClose: () => void }) {
  useLeaveGuard(true, 'The new keys are shown only once. Leave without keeping them?')
  const { confirmed_edges: confirmed, lease_expired_edges: expired } = rotated
  const seconds = (rotated.duration_ms / 1_000).toFixed(2)
  return (
    <Dialog
      description={`In force everywhere; it took ${seconds} s. They are shown only now.`}
      locked
      onClose={onClose}
      open
      title={`The new keys of ${rotated.tenant_id}`}
    >
      {rotated.public_api_key && <CopyLine label="Public API key" value={rotated.public_api_key} />}
      {rotated.hmac_secret && <CopyLine label="HMAC secret" value={rotated.hmac_secret} />}
      {rotated.webhook_secret && <CopyLine label="Webhook secret" value={rotated.webhook_secret} />}
      {confirmed.length + expired.length > 0 && (
        <ul aria-label="Edges" className="grid gap-1 rounded-md bg-panel p-3 text-sm">
          {confirmed.map((edge) => (
            <Edge edge={edge} key={edge} tone="good" what="confirmed" />
          ))}
          {expired.map((edge) => (
            <Edge edge={edge} key={edge} tone="warn" what="silent; its lease ran out" />
          ))}
        </ul>
      )}
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          I have kept them
        </Button>
      </DialogActions>
    </Dialog>
  )
}

function Edge({ edge, what, tone }: { edge: string; what: string; tone: 'good' | 'warn' }) {
  return (
    <li className="flex items-center gap-2">
      <span className="min-w-0 truncate font-mono text-muted">{edge}</span>
      <span className="ml-auto">
        <Badge tone={tone}>{what}</Badge>
      </span>
    </li>
  )
}

/**
 * What installs of a tenant sign with: the roots of their tokens, and whether telemetry that the
 * HMAC secret itself signs is accepted. Each change returns once every edge follows it.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { api, ok } from '../../../api/client.ts'
import { type Tenant, tenantQuery } from '../../../api/tenants.ts'
import { Badge } from '../../../components/badge.tsx'
import { Button } from '../../../components/button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { Facts, Panel } from '../../../components/page.tsx'
import { Time } from '../../../components/time/time.tsx'
import { counted } from '../../../components/words.ts'
import { useMay } from '../../../shell/operator.ts'
import { type Proposed, useFourEyes } from '../../proposals/proposals.ts'
import { Propose } from '../../proposals/propose.tsx'
import { useCoverage } from './coverage.ts'

type Change = 'rotate' | 'drop' | 'off' | 'on'

const questions: Record<Change, { title: string; label: string; description: string }> = {
  rotate: {
    title: 'Rotate the install root',
    label: 'Rotate',
    description:
      'New tokens are made with a new root. Installs with a token of the present one go on and renew within 30 days. Tokens of a root before it are refused at once.',
  },
  drop: {
    title: 'Drop the root before',
    label: 'Drop',
    description:
      'Tokens of the root before are refused at once: installs that have not renewed must register again.',
  },
  off: {
    title: 'Switch the shared secret off',
    label: 'Switch off',
    description:
      'Telemetry that the HMAC secret itself signs is refused at once, from apps and from servers, batches included. Installs go on, and new ones register with the secret.',
  },
  on: {
    title: 'Switch the shared secret on',
    label: 'Switch on',
    description: 'Telemetry that the HMAC secret itself signs is accepted again.',
  },
}

function useChange(tenantId: string) {
  const client = useQueryClient()
  const params = { params: { path: { tenant_id: tenantId } } }
  const path = '/admin/v1/tenants/{tenant_id}' as const
  return useMutation({
    mutationFn: async (change: Change): Promise<void> => {
      if (change === 'rotate')
        await ok(api.POST(`${path}/install-root/rotate`, { ...params, body: {} }))
      else if (change === 'drop') await ok(api.DELETE(`${path}/install-root/previous`, params))
      else {
        const body = { off: change === 'off' }
        await ok(api.PUT(`${path}/shared-secret`, { ...params, body }))
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: tenantQuery(tenantId).queryKey }),
  })
}

export function InstallsPanel({ tenant }: { tenant: Tenant }) {
  const { tenant_id: tenantId, install_roots: roots, shared_secret_off: isOff } = tenant
  const [asked, setAsked] = useState<Change | null>(null)
  const change = useChange(tenantId)
  const fourEyes = useFourEyes(tenantId)
  const mayChange = useMay('admin')
  const close = () => {
    setAsked(null)
    change.reset()
  }
  return (
    <Panel title="Installs">
      <Facts
        facts={[
          [
            'Shared secret',
            <Badge key="secret" tone={isOff ? 'good' : 'neutral'}>
              {isOff ? 'off for telemetry' : 'on'}
            </Badge>,
          ],
          ...roots.map(({ epoch, state, created_at: at }): [string, ReactNode] => [
            `Root ${epoch}`,
            <span key={epoch}>
              {state === 'current' ? 'makes tokens' : 'still valid'}, since <Time at={at} />
            </span>,
          ]),
        ]}
      />
      {mayChange && (
        <div className="flex flex-wrap gap-2 p-4">
          <Button onClick={() => setAsked('rotate')}>Rotate the root</Button>
          {roots.length > 1 && (
            <Button onClick={() => setAsked('drop')}>Drop the root before</Button>
          )}
          <Button onClick={() => setAsked(isOff ? 'on' : 'off')}>
            {isOff ? 'Switch the shared secret on' : 'Switch the shared secret off'}
          </Button>
        </div>
      )}
      {asked !== null && (
        <Dialog
          description={questions[asked].description}
          locked={change.isPending}
          onClose={close}
          open
          title={questions[asked].title}
        >
          {asked === 'off' && <Refusable tenantId={tenantId} />}
          <Propose
            body={toProposed(asked)}
            error={change.error}
            isNeeded={fourEyes?.enabled === true}
            onCancel={close}
            pending={change.isPending}
            tenant={tenantId}
          >
            <Button
              busy={change.isPending}
              look={asked === 'on' || asked === 'rotate' ? 'primary' : 'danger'}
              onClick={() => change.mutate(asked, { onSuccess: close })}
            >
              {questions[asked].label}
            </Button>
          </Propose>
        </Dialog>
      )}
    </Panel>
  )
}

const toProposed = (change: Change): Proposed =>
  change === 'off' || change === 'on'
    ? { kind: 'shared_secret', off: change === 'off' }
    : { kind: 'install_root', action: change === 'rotate' ? 'rotate' : 'drop_previous' }

/** What of the last days would have been refused. */
function Refusable({ tenantId }: { tenantId: string }) {
  const totals = useCoverage(tenantId).data?.totals
  if (totals === undefined || totals.events === 0) return null
  const refusable = totals.events - totals.install_key
  return (
    <p className={refusable === 0 ? 'text-good' : 'text-warn'}>
      Of the last 7 days {counted(refusable, 'event')} of {totals.events.toLocaleString('en')} would
      have been refused.
    </p>
  )
}

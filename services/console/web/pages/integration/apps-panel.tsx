/** The apps of a tenant: evidence of a phone counts when it is of one of them. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Panel } from '../../components/page.tsx'
import { Loaded, Refused, SkeletonRows } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { AddApp } from './add-app.tsx'
import { type App, appsKey, removeApp, useApps } from './apps.ts'

const columns: Column<App>[] = [
  {
    id: 'platform',
    head: 'Platform',
    cell: ({ platform }) => (platform === 'ios' ? 'iOS' : 'Android'),
    width: '6rem',
  },
  { id: 'id', head: 'App', cell: ({ id }) => <span className="font-mono text-sm">{id}</span> },
  {
    id: 'signed',
    head: 'Signed by',
    cell: ({ team, signers }) => (
      <span className="font-mono text-sm" title={signers.join('\n')}>
        {team === null ? signers.map((signer) => `${signer.slice(0, 8)}…`).join(' ') : team}
      </span>
    ),
  },
  {
    id: 'keys',
    head: 'Play keys',
    cell: ({ platform, play_keys: keys }) => {
      if (platform === 'ios') return '–'
      return keys ? 'set' : 'none'
    },
    width: '6rem',
  },
  {
    id: 'development',
    head: 'Development',
    cell: ({ platform, development }) => {
      if (platform === 'android') return '–'
      return development ? 'counts' : 'rejected'
    },
    width: '7rem',
  },
]

export function AppsPanel({ tenantId }: { tenantId: string }) {
  const mayChange = useMay('admin')
  const apps = useApps(tenantId)
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<App | null>(null)
  const removal: Column<App> = {
    id: 'remove',
    head: <span className="sr-only">Remove</span>,
    cell: (app) => (
      <Button
        aria-label={`Remove the ${app.platform} app ${app.id}`}
        onClick={() => setRemoving(app)}
        small
      >
        Remove
      </Button>
    ),
    width: '6.5rem',
  }
  return (
    <Panel
      action={
        mayChange && (
          <Button onClick={() => setAdding(true)} small>
            Add an app
          </Button>
        )
      }
      title="Apps"
    >
      <Loaded query={apps} skeleton={<SkeletonRows rows={2} />}>
        {({ data }) =>
          data.length === 0 ? (
            <p className="p-4 text-muted">
              There are no apps yet. Evidence of a phone counts when it is of one of them; all other
              evidence is rejected with app_unknown.
            </p>
          ) : (
            <Table
              columns={mayChange ? [...columns, removal] : columns}
              heightClass="max-h-96"
              label="Apps"
              minWidth="44rem"
              rowKey={({ platform, id }) => `${platform} ${id}`}
              rows={data}
            />
          )
        }
      </Loaded>
      {adding && <AddApp onClose={() => setAdding(false)} tenantId={tenantId} />}
      {removing !== null && (
        <RemoveApp app={removing} onClose={() => setRemoving(null)} tenantId={tenantId} />
      )}
    </Panel>
  )
}

function RemoveApp({
  tenantId,
  app,
  onClose,
}: {
  tenantId: string
  app: App
  onClose: () => void
}) {
  const client = useQueryClient()
  const remove = useMutation({
    mutationFn: () => removeApp(tenantId, app),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: appsKey(tenantId) })
      toast(`No edge verifies evidence of ${app.id}.`)
      onClose()
    },
  })
  return (
    <Dialog
      description={
        app.play_keys
          ? 'Its Play keys are forgotten. Registrations that were verified stay so until their tokens end.'
          : 'Registrations that were verified stay so until their tokens end.'
      }
      locked={remove.isPending}
      onClose={onClose}
      open
      title={`Remove ${app.id}?`}
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

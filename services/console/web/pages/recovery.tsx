/**
 * Admin → Recovery: what a Postgres that was put back to an earlier state has forgotten. An
 * administrator looks at it and confirms exactly this; nothing of it is taken over before.
 */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, api, ok } from '../api/client.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions } from '../components/dialog.tsx'
import { Page as Frame, Panel } from '../components/page.tsx'
import { Empty, Loaded, Refused } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { toast } from '../components/toast.tsx'

type Recovery = AnswerOf<'/admin/v1/recovery', 'get'>

const recoveryQuery = queryOptions({
  queryKey: ['recovery'],
  queryFn: () => ok(api.GET('/admin/v1/recovery', { params: {} })),
})

type State = Recovery['tenants'][number]['directory']

/** One thing to recover: what Postgres has, and what it becomes. */
type Item = { id: string; tenant: string; what: string; now: string; after: string }

const describe = ({ epoch, status, policy_version: policy, hmac_last4: last4 }: State) =>
  `epoch ${epoch}, ${status}, policy ${policy}, secret ${last4 === null ? 'none' : `…${last4}`}`

function listItems({ tenants, api_keys, webhooks, erasures }: Recovery): Item[] {
  return [
    ...tenants.map(({ tenant_id: tenant, directory, postgres }) => ({
      id: `tenant ${tenant}`,
      tenant,
      what: 'tenant',
      now: postgres === null ? 'not known' : describe(postgres),
      after: describe(directory),
    })),
    ...api_keys.map(({ tenant_id: tenant, sha256, last4 }) => ({
      id: sha256,
      tenant,
      what: `API key …${last4}`,
      now: 'active',
      after: 'retired',
    })),
    ...webhooks.map(({ tenant_id: tenant }) => ({
      id: `webhook ${tenant}`,
      tenant,
      what: 'webhook with a replaced secret',
      now: 'on',
      after: 'paused',
    })),
    ...erasures.map(({ tenant_id: tenant, subject, sha256, started_at: at }) => ({
      id: `${tenant} ${subject} ${sha256}`,
      tenant,
      what: `${subject} ${sha256.slice(0, 12)}`,
      now: `its erasure of ${at} is forgotten`,
      after: 'erased again where it is there again',
    })),
  ]
}

const columns: Column<Item>[] = [
  { id: 'tenant', head: 'Tenant', cell: ({ tenant }) => tenant },
  { id: 'what', head: 'What', cell: ({ what }) => what },
  { id: 'now', head: 'In Postgres', cell: ({ now }) => now },
  { id: 'after', head: 'After the recovery', cell: ({ after }) => after },
]

export function Page() {
  const recovery = useQuery(recoveryQuery)
  const [confirming, setConfirming] = useState(false)
  const items = recovery.data === undefined ? [] : listItems(recovery.data)
  return (
    <Frame
      about="After Postgres was put back to an earlier state, the edges and the list of removals know more than it does. Nothing is taken over, and changes of these tenants are refused, before you confirm it."
      action={
        items.length > 0 && (
          <Button look="primary" onClick={() => setConfirming(true)}>
            Recover all
          </Button>
        )
      }
      title="Recovery"
    >
      <Panel>
        <Loaded query={recovery}>
          {() =>
            items.length === 0 ? (
              <Empty title="Nothing is to be recovered" />
            ) : (
              <Table
                columns={columns}
                label="What Postgres has forgotten"
                rowKey={({ id }) => id}
                rows={items}
              />
            )
          }
        </Loaded>
      </Panel>
      {confirming && recovery.data !== undefined && (
        <Confirm
          count={items.length}
          digest={recovery.data.digest}
          onClose={() => setConfirming(false)}
        />
      )}
    </Frame>
  )
}

function Confirm({
  count,
  digest,
  onClose,
}: {
  count: number
  digest: string
  onClose: () => void
}) {
  const client = useQueryClient()
  const apply = useMutation({
    mutationFn: () => ok(api.POST('/admin/v1/recovery', { body: { digest } })),
    onSuccess: () => {
      toast('Recovered. When a tenant was among it, everyone signs in again.')
      onClose()
    },
    // What was refused because it has changed is shown again.
    onSettled: () => client.invalidateQueries({ queryKey: recoveryQuery.queryKey }),
  })
  return (
    <Dialog
      description={`Postgres takes over ${count} ${count === 1 ? 'thing' : 'things'}, exactly as shown. This cannot be undone. When a tenant is among them, the sessions of all operators end.`}
      locked={apply.isPending}
      onClose={onClose}
      open
      title="Recover all"
    >
      <Refused error={apply.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button disabled={apply.isPending} look="primary" onClick={() => apply.mutate()}>
          Recover
        </Button>
      </DialogActions>
    </Dialog>
  )
}

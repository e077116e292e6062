/** Admin → Erasure: removes a device or a user of a tenant from every store, with a receipt. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { useTenant } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input, Select } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { TenantSelect } from '../../components/tenant-select.tsx'
import { useUrlSearch } from '../../components/url-state.ts'
import { ErasureList } from './erasure-list.tsx'
import { ErasurePanel, NoErasure } from './erasure-panel.tsx'
import {
  erasureQuery,
  erasureSearch,
  erasuresQuery,
  isOpen,
  requestErasure,
  type Subject,
} from './erasures.ts'

export function Page() {
  const last = useTenant()
  const [search, setSearch] = useUrlSearch()
  const tenantId = search.tenant ?? last ?? ''
  // What runs is shown when the page is opened again.
  const running = useQuery(erasuresQuery(tenantId)).data?.find(isOpen)
  const chosen = search.erasure ?? running?.erasure_id ?? ''
  const choose = (erasure: string) => setSearch({ tenant: tenantId, erasure })
  return (
    <Frame
      about="Everything accepted before the request is removed from ClickHouse, Postgres, the streams and the dead letters. It cannot be undone. An erasure goes on in the server until nothing is left, also after a crash."
      title="Erasure"
    >
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
        <RequestPanel tenantId={tenantId} />
        {chosen === '' ? (
          <NoErasure />
        ) : (
          <ErasurePanel erasureId={chosen} key={chosen} tenant={tenantId} />
        )}
      </div>
      {tenantId !== '' && <ErasureList chosen={chosen} onChoose={choose} tenant={tenantId} />}
    </Frame>
  )
}

function RequestPanel({ tenantId }: { tenantId: string }) {
  const [search, setSearch] = useUrlSearch()
  const kind: Subject['kind'] = search.kind === 'user' ? 'user' : 'device'
  const id = search.id ?? ''
  const [confirming, setConfirming] = useState(false)
  const client = useQueryClient()
  const erase = useMutation({
    mutationFn: () => requestErasure(tenantId, { kind, id }),
    onSuccess: (erasure) => {
      client.setQueryData(erasureQuery(tenantId, erasure.erasure_id).queryKey, erasure)
      void client.invalidateQueries(erasuresQuery(tenantId))
      // The id is gone from the address too.
      setSearch({ id: '', ...erasureSearch(erasure) })
    },
  })
  const problem = erase.error instanceof ApiProblem ? erase.error : null
  const beside = problem?.of(`${kind}_id`)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setConfirming(true)
  }
  return (
    <Panel title="Whom to erase">
      <form className="grid gap-4 p-4" onSubmit={submit}>
        <TenantSelect onChange={(tenant) => setSearch({ tenant, erasure: '' })} value={tenantId} />
        <Select
          disabled={erase.isPending}
          label="Kind"
          onChange={({ target }) => setSearch({ kind: target.value })}
          value={kind}
        >
          <option value="device">Device</option>
          <option value="user">User or account, on all devices</option>
        </Select>
        <Input
          autoComplete="off"
          disabled={erase.isPending}
          error={beside}
          label={kind === 'device' ? 'Device id' : 'User or account id'}
          maxLength={256}
          mono
          onChange={({ target }) => setSearch({ id: target.value })}
          required
          spellCheck={false}
          value={id}
        />
        {beside === undefined && <Refused error={erase.error} />}
        <div>
          <Button
            busy={erase.isPending}
            disabled={tenantId === '' || id === ''}
            look="danger"
            type="submit"
          >
            Erase
          </Button>
        </div>
      </form>
      {confirming && (
        <Confirm
          id={id}
          kind={kind}
          onClose={() => setConfirming(false)}
          onConfirm={() => {
            setConfirming(false)
            erase.mutate()
          }}
          tenantId={tenantId}
        />
      )}
    </Panel>
  )
}

function Confirm({
  tenantId,
  kind,
  id,
  onClose,
  onConfirm,
}: {
  tenantId: string
  kind: Subject['kind']
  id: string
  onClose: () => void
  onConfirm: () => void
}) {
  const [typed, setTyped] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onConfirm()
  }
  return (
    <Dialog
      description={`The ${kind} and its events, sessions, alerts and deliveries are removed from ${tenantId}. This cannot be undone.`}
      onClose={onClose}
      open
      title={`Erase this ${kind}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <code className="rounded-md border border-line bg-panel px-2.5 py-1.5 font-mono text-sm break-all">
          {id}
        </code>
        <Input
          autoComplete="off"
          autoFocus
          label="Type the id to confirm"
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button disabled={typed !== id} look="danger" type="submit">
            Erase
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

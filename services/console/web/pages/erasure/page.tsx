/** Admin → Erasure: removes a device or a user of a tenant from every store, with a receipt. */
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useTenant } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { Input, Select } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { TenantSelect } from '../../components/tenant-select.tsx'
import { EraseDialog } from './erase-dialog.tsx'
import { ErasureList } from './erasure-list.tsx'
import { ErasurePanel, NoErasure } from './erasure-panel.tsx'
import { erasuresQuery, isOpen, type Subject } from './erasures.ts'

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
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setConfirming(true)
  }
  return (
    <Panel title="Whom to erase">
      <form className="grid gap-4 p-4" onSubmit={submit}>
        <TenantSelect onChange={(tenant) => setSearch({ tenant, erasure: '' })} value={tenantId} />
        <Select
          label="Kind"
          onChange={({ target }) => setSearch({ kind: target.value })}
          value={kind}
        >
          <option value="device">Device</option>
          <option value="user">User or account, on all devices</option>
        </Select>
        <Input
          autoComplete="off"
          label={kind === 'device' ? 'Device id' : 'User or account id'}
          maxLength={256}
          mono
          onChange={({ target }) => setSearch({ id: target.value })}
          required
          spellCheck={false}
          value={id}
        />
        <div>
          <Button disabled={tenantId === '' || id === ''} look="danger" type="submit">
            Erase
          </Button>
        </div>
      </form>
      {confirming && (
        <EraseDialog
          onClose={() => setConfirming(false)}
          subject={{ kind, id }}
          tenant={tenantId}
        />
      )}
    </Panel>
  )
}

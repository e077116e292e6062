/** Which address of a tenant's clients counts, and whether events keep it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { type Tenant, tenantQuery, tenantsQuery } from '../../api/tenants.ts'
import { Select } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'

type Address = Tenant['client_address']

const sources: Record<Address, string> = {
  connection: 'The address of the connection',
  body: 'client_ip of the signed body',
}
const storing: Record<'off' | 'on', string> = {
  off: 'The network and a keyed hash',
  on: 'The full address as well',
}

export function ClientAddressPanel({ tenant }: { tenant: Tenant }) {
  const { tenant_id: tenantId, client_address: address } = tenant
  const stored = tenant.store_client_address ? 'on' : 'off'
  const mayChange = useMay('admin')
  const path = { tenant_id: tenantId }
  const refresh = useRefresh(tenantId)
  const source = useMutation({
    mutationFn: (wanted: Address) =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/client-address', {
          params: { path },
          body: { client_address: wanted },
        }),
      ),
    onSuccess: async (_, wanted) => {
      await refresh()
      toast(`Of clients of ${tenantId} this counts now: ${sources[wanted]}.`)
    },
  })
  const store = useMutation({
    mutationFn: (wanted: boolean) =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/store-client-address', {
          params: { path },
          body: { store_client_address: wanted },
        }),
      ),
    onSuccess: async (_, wanted) => {
      await refresh()
      toast(`Events of ${tenantId} now keep: ${storing[wanted ? 'on' : 'off'].toLowerCase()}.`)
    },
  })
  return (
    <Panel title="Addresses of clients">
      <div className="grid gap-3 p-4">
        <p className="text-muted">
          A backend that passes telemetry on sends the address of the phone as client_ip in the body
          that it signs.
        </p>
        {mayChange ? (
          <>
            <Select
              disabled={source.isPending}
              label="Address that counts"
              onChange={({ target }) => source.mutate(target.value as Address)}
              value={address}
            >
              {Object.entries(sources).map(toOption)}
            </Select>
            <Select
              disabled={store.isPending}
              label="Events keep"
              onChange={({ target }) => store.mutate(target.value === 'on')}
              value={stored}
            >
              {Object.entries(storing).map(toOption)}
            </Select>
          </>
        ) : (
          <p>
            {sources[address]} counts. Events keep: {storing[stored].toLowerCase()}.
          </p>
        )}
        <Refused error={source.error ?? store.error} />
      </div>
    </Panel>
  )
}

const toOption = ([value, text]: [string, string]) => (
  <option key={value} value={value}>
    {text}
  </option>
)

function useRefresh(tenantId: string): () => Promise<void> {
  const client = useQueryClient()
  return async () => {
    await Promise.all(
      [tenantQuery(tenantId).queryKey, tenantsQuery.queryKey].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    )
  }
}

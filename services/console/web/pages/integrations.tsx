/** Admin → Integrations: the keys of each tenant at a glance; a row leads to the tenant. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type Tenant, tenantsQuery } from '../api/tenants.ts'
import { Badge, type Tone } from '../components/badge.tsx'
import { Page as Frame, Panel } from '../components/page.tsx'
import { Loaded } from '../components/states.tsx'
import type { Column } from '../components/table.tsx'
import { Time } from '../components/time/time.tsx'
import { TenantTable } from './tenants/tenant-table.tsx'

export const webhookTones: Record<Tenant['webhook_state'], Tone> = {
  on: 'good',
  paused: 'warn',
  off: 'neutral',
}

const columns: Column<Tenant>[] = [
  {
    id: 'key',
    head: 'Public API key',
    cell: ({ public_api_key: key }) =>
      key === null ? (
        'none'
      ) : (
        <span className="font-mono text-sm">{`${key.prefix}…${key.last4}`}</span>
      ),
  },
  {
    id: 'used',
    head: 'Key last used',
    cell: ({ public_api_key: key }) => <Time at={key?.last_used_at ?? null} />,
    width: '9rem',
  },
  {
    id: 'hmac',
    head: 'HMAC secret since',
    cell: ({ hmac_secret: secret }) => <Time at={secret?.created_at ?? null} />,
    width: '10rem',
  },
  {
    id: 'webhook',
    head: 'Webhook',
    cell: ({ webhook_state: state }) => <Badge tone={webhookTones[state]}>{state}</Badge>,
    width: '7rem',
  },
]

export function Page() {
  const tenants = useQuery(tenantsQuery)
  return (
    <Frame title="Integrations">
      <Panel>
        <Loaded query={tenants}>
          {(rows) => (
            <TenantTable columns={columns} label="Integrations" rows={rows}>
              <p>A tenant has the keys that its apps and servers sign with.</p>
              <Link to="/manage/tenants">Create a tenant</Link>
            </TenantTable>
          )}
        </Loaded>
      </Panel>
    </Frame>
  )
}

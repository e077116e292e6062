/** Admin → Tenants: the list, and creating one. */
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type Tenant, tenantsQuery } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { CreateTenant } from './create-tenant.tsx'

const columns: Column<Tenant>[] = [
  {
    id: 'slug',
    head: 'Slug',
    cell: ({ tenant_id }) => (
      <Link
        className="font-medium"
        params={{ tenant: tenant_id } as never}
        to={'/manage/integrations/$tenant' as '/'}
      >
        {tenant_id}
      </Link>
    ),
  },
  { id: 'name', head: 'Name', cell: ({ name }) => name },
  { id: 'kind', head: 'Kind', cell: ({ environment }) => environment, width: '6rem' },
  {
    id: 'state',
    head: 'State',
    cell: ({ status }) => <Badge tone={status === 'active' ? 'good' : 'bad'}>{status}</Badge>,
    width: '7rem',
  },
  {
    id: 'policy',
    head: 'Policy version',
    cell: ({ policy_version }) => policy_version,
    numeric: true,
    width: '8rem',
  },
  {
    id: 'made',
    head: 'Created',
    cell: ({ created_at }) => <Time at={created_at} />,
    width: '9rem',
  },
]

export function Page() {
  const tenants = useQuery(tenantsQuery)
  const [creating, setCreating] = useState(false)
  const navigate = useNavigate()
  const { operator } = useSignedIn()
  const mayCreate = operator.role === 'admin' && operator.tenants === 'all'
  const create = mayCreate && (
    <Button icon="plus" look="primary" onClick={() => setCreating(true)}>
      Create a tenant
    </Button>
  )
  return (
    <Frame action={create} title="Tenants">
      <Panel>
        <Loaded query={tenants}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No tenant yet">
                <p>
                  A tenant is an app or a customer whose devices send telemetry. It has its own
                  keys, policy and alerts.
                </p>
                {mayCreate
                  ? create
                  : 'An administrator of all tenants can create one, or give you access.'}
              </Empty>
            ) : (
              <Table
                columns={columns}
                label="Tenants"
                onSelect={({ tenant_id }) =>
                  void navigate({ to: `/manage/integrations/${tenant_id}` as '/' })
                }
                rowKey={({ tenant_id }) => tenant_id}
                rows={rows}
              />
            )
          }
        </Loaded>
      </Panel>
      {creating && <CreateTenant onClose={() => setCreating(false)} />}
    </Frame>
  )
}

/** Admin → Tenants: the list, and creating one. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Tenant, tenantsQuery } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Input } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import type { Column } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { CreateTenant } from './create-tenant.tsx'
import { TenantTable } from './tenant-table.tsx'

const columns: Column<Tenant>[] = [
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

const isFound = ({ tenant_id: slug, name }: Tenant, text: string): boolean =>
  `${slug} ${name}`.toLowerCase().includes(text.trim().toLowerCase())

const isNoneFound = (all: Tenant[], text: string): boolean =>
  all.length > 0 && !all.some((one) => isFound(one, text))

export function Page() {
  const tenants = useQuery(tenantsQuery)
  const [creating, setCreating] = useState(false)
  const [text, setText] = useUrlState('q')
  const { operator } = useSignedIn()
  const mayCreate = operator.role === 'admin' && operator.tenants === 'all'
  const create = mayCreate && (
    <Button icon="plus" look="primary" onClick={() => setCreating(true)}>
      Create a tenant
    </Button>
  )
  return (
    <Frame action={create} title="Tenants">
      <search aria-label="Tenants" className="max-w-sm">
        <Input
          label="Find a tenant"
          onChange={({ target }) => setText(target.value)}
          placeholder="Slug or name"
          spellCheck={false}
          type="search"
          value={text}
        />
      </search>
      <Panel>
        <Loaded query={tenants}>
          {(all) =>
            isNoneFound(all, text) ? (
              <Empty title="No tenant has this in its slug or name" />
            ) : (
              <TenantTable
                columns={columns}
                label="Tenants"
                rows={all.filter((one) => isFound(one, text))}
              >
                <p>
                  A tenant is an app or a customer whose devices send telemetry. It has its own
                  keys, policy and alerts.
                </p>
                {mayCreate
                  ? create
                  : 'An administrator of all tenants can create one, or give you access.'}
              </TenantTable>
            )
          }
        </Loaded>
      </Panel>
      {creating && <CreateTenant onClose={() => setCreating(false)} />}
    </Frame>
  )
}

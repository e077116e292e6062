/** Admin → Tenants: the list. */
import { useQuery } from '@tanstack/react-query'
import { type Tenant, tenantsQuery } from '../api/tenants.ts'
import { Badge } from '../components/badge.tsx'
import { Page as Frame, Panel } from '../components/page.tsx'
import { Empty, Loaded } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Time } from '../components/time/time.tsx'

const columns: Column<Tenant>[] = [
  { id: 'slug', head: 'Slug', cell: ({ tenant_id }) => tenant_id },
  { id: 'name', head: 'Name', cell: ({ name }) => name },
  { id: 'kind', head: 'Kind', cell: ({ environment }) => environment, width: '6rem' },
  {
    id: 'state',
    head: 'State',
    cell: ({ status }) => <Badge tone={status === 'active' ? 'good' : 'bad'}>{status}</Badge>,
    width: '7rem',
  },
  {
    id: 'made',
    head: 'Created',
    cell: ({ created_at }) => <Time at={created_at} />,
    width: '8rem',
  },
]

export function Page() {
  const tenants = useQuery(tenantsQuery)
  return (
    <Frame title="Tenants">
      <Panel>
        <Loaded query={tenants}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No tenant yet" />
            ) : (
              <Table
                columns={columns}
                label="Tenants"
                rowKey={({ tenant_id }) => tenant_id}
                rows={rows}
              />
            )
          }
        </Loaded>
      </Panel>
    </Frame>
  )
}

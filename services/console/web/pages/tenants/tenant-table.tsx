/** Tenants in a table; a row leads to the keys of its tenant. */
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Tenant } from '../../api/tenants.ts'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'

const tenantColumn: Column<Tenant> = {
  id: 'tenant',
  head: 'Tenant',
  cell: ({ tenant_id }) => (
    <Link className="font-medium" params={{ tenant: tenant_id }} to="/manage/integrations/$tenant">
      {tenant_id}
    </Link>
  ),
}

/** @param columns beside the tenant's; `children` is the next step while there is no tenant */
export function TenantTable({
  label,
  columns,
  rows,
  children,
}: {
  label: string
  columns: Column<Tenant>[]
  rows: Tenant[]
  children: ReactNode
}) {
  const navigate = useNavigate()
  if (rows.length === 0) return <Empty title="No tenant yet">{children}</Empty>
  return (
    <Table
      columns={[tenantColumn, ...columns]}
      label={label}
      onSelect={({ tenant_id }) =>
        void navigate({ to: '/manage/integrations/$tenant', params: { tenant: tenant_id } })
      }
      rowKey={({ tenant_id }) => tenant_id}
      rows={rows}
    />
  )
}

/** Chooses a tenant on pages of Admin, whose address does not have one. */
import { useQuery } from '@tanstack/react-query'
import { tenantsQuery } from '../api/tenants.ts'
import { Select } from './field.tsx'

export function TenantSelect({
  value,
  onChange,
}: {
  value: string
  onChange: (tenantId: string) => void
}) {
  const { data = [] } = useQuery(tenantsQuery)
  const isListed = data.some(({ tenant_id }) => tenant_id === value)
  return (
    <Select label="Tenant" onChange={({ target }) => onChange(target.value)} value={value}>
      {!isListed && <option value={value}>{value}</option>}
      {data.map(({ tenant_id }) => (
        <option key={tenant_id}>{tenant_id}</option>
      ))}
    </Select>
  )
}

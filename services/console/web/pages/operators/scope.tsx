/** Which tenants an operator may see: all, or some by slug. */
import { useQuery } from '@tanstack/react-query'
import { tenantsQuery } from '../../api/tenants.ts'
import { Checkbox } from '../../components/field.tsx'

export type Scope = 'all' | string[]

export const nameScope = (scope: Scope): string => (scope === 'all' ? 'all' : scope.join(', '))

/** A choice of all tenants or some of them; an empty choice is refused by the form. */
export function ScopeField({
  scope,
  onChange,
}: {
  scope: Scope
  onChange: (scope: Scope) => void
}) {
  const { data: tenants = [] } = useQuery(tenantsQuery)
  return (
    <fieldset className="grid gap-2">
      <legend className="mb-1 font-medium">Tenants</legend>
      <Checkbox
        checked={scope === 'all'}
        label="All, also those that come later"
        onChange={({ target }) => onChange(target.checked ? 'all' : [])}
      />
      {scope !== 'all' && (
        <div className="grid max-h-40 gap-2 overflow-y-auto rounded-md border border-line p-3">
          {tenants.map(({ tenant_id }) => (
            <Checkbox
              checked={scope.includes(tenant_id)}
              key={tenant_id}
              label={tenant_id}
              onChange={({ target }) =>
                onChange(
                  target.checked
                    ? [...scope, tenant_id]
                    : scope.filter((other) => other !== tenant_id),
                )
              }
            />
          ))}
          {tenants.length === 0 && <span className="text-muted">There is no tenant yet.</span>}
        </div>
      )}
    </fieldset>
  )
}

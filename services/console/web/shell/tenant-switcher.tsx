/** Shows whose data the pages are about and opens the list of tenants. */
import { useQuery } from '@tanstack/react-query'
import { tenantsQuery, useTenant } from '../api/tenants.ts'
import { Badge } from '../components/badge.tsx'
import { Icon } from '../components/icons.tsx'

export function TenantSwitcher({ onOpen }: { onOpen: () => void }) {
  const tenant = useTenant()
  const { data, isPending } = useQuery(tenantsQuery)
  const found = data?.find(({ tenant_id }) => tenant_id === tenant)
  return (
    <button
      className="flex h-11 w-full items-center gap-2.5 rounded-md px-2 text-left hover:bg-hover"
      onClick={onOpen}
      type="button"
    >
      <span
        aria-hidden="true"
        className="grid size-6 place-items-center rounded bg-accent font-semibold text-on-accent text-xs uppercase"
      >
        {tenant?.slice(0, 1) ?? '–'}
      </span>
      <span className="grid min-w-0 flex-1 leading-4">
        <span className="truncate font-semibold">
          <span className="sr-only">Switch tenant, now </span>
          {tenant ?? (isPending ? '…' : 'No tenant yet')}
        </span>
        {found && <span className="truncate text-muted text-xs">{found.name}</span>}
      </span>
      {found?.environment === 'sandbox' && <Badge>sandbox</Badge>}
      <Icon name="down" size={14} />
    </button>
  )
}

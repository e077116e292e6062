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
      className="flex min-h-11 w-full items-center gap-2.5 rounded-md px-2 text-left hover:bg-hover"
      onClick={onOpen}
      type="button"
    >
      <span
        aria-hidden="true"
        className="grid size-6 place-items-center rounded bg-accent font-semibold text-on-accent text-xs uppercase"
      >
        {tenant?.slice(0, 1) ?? '–'}
      </span>
      <span className="grid min-w-0 flex-1 grid-cols-[minmax(0,1fr)] leading-4">
        <span className="font-semibold break-all">
          <span className="sr-only">Switch tenant, now </span>
          {tenant ?? (isPending ? '…' : 'No tenant yet')}
        </span>
        {found && (
          <span className="flex items-center gap-1.5 pt-0.5">
            <EnvironmentBadge environment={found.environment} />
            <span className="truncate text-muted text-xs" title={found.name}>
              {found.name}
            </span>
          </span>
        )}
      </span>
      <Icon name="down" size={14} />
    </button>
  )
}

/** Whose data a narrow page is about: the slug is never cut. */
export function HeaderTenant() {
  const tenant = useTenant()
  const { data } = useQuery(tenantsQuery)
  const found = data?.find(({ tenant_id }) => tenant_id === tenant)
  return (
    <span className="flex min-w-0 flex-1 items-center gap-2">
      <span className="min-w-0 font-semibold text-sm leading-4 break-all">
        {tenant ?? 'Device intelligence'}
      </span>
      {found && <EnvironmentBadge environment={found.environment} />}
    </span>
  )
}

function EnvironmentBadge({ environment }: { environment: string }) {
  return <Badge tone={environment === 'live' ? 'accent' : 'neutral'}>{environment}</Badge>
}

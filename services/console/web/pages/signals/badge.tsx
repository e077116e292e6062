/** How many prevalence spikes are open, beside Signals in the navigation. */
import { useQuery } from '@tanstack/react-query'
import { useTenant } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { openSpikesQuery } from './open-spikes.ts'

export function SpikeCount() {
  const tenant = useTenant() ?? ''
  const { data } = useQuery({ ...openSpikesQuery(tenant), enabled: tenant !== '' })
  const count = data?.data.length ?? 0
  if (count === 0) return null
  return (
    <span className="ml-auto">
      <Badge tone="warn">
        {count}
        <span className="sr-only"> {count === 1 ? 'spike is' : 'spikes are'} open</span>
      </Badge>
    </span>
  )
}

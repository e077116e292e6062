/** How many proposals wait for the person who is signed in. */
import { useQuery } from '@tanstack/react-query'
import { useTenant } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { useMay } from '../../shell/operator.ts'
import { proposalsQuery } from './proposals.ts'

export function ProposalCount() {
  const tenant = useTenant() ?? ''
  const may = useMay('admin')
  const { data } = useQuery({
    ...proposalsQuery(tenant, 'open'),
    enabled: may && tenant !== '',
  })
  const count = data?.data.filter(({ may_approve: mine }) => mine).length ?? 0
  if (count === 0) return null
  return (
    <span className="ml-auto">
      <Badge tone="accent">
        {count}
        <span className="sr-only"> to approve</span>
      </Badge>
    </span>
  )
}

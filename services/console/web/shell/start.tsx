/** The address without a page: leads an analyst to the cases, others to the first page. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { tenantsQuery } from '../api/tenants.ts'
import { SkeletonRows } from '../components/states.tsx'
import { usePlaces } from './navigation.tsx'
import { useSignedIn } from './operator.ts'

export function Start() {
  const { isPending } = useQuery(tenantsQuery)
  const places = usePlaces()
  const { role } = useSignedIn().operator
  // Analysts settle cases; others look first.
  const [place = places[0]] = places.filter(({ name }) => role === 'analyst' && name === 'Cases')
  const first = place?.address ?? '/account'
  const navigate = useNavigate()
  useEffect(() => {
    // Once for each target: a navigation that is under way must not begin again.
    if (!isPending) void navigate({ href: first, replace: true })
  }, [isPending, first, navigate])
  return <SkeletonRows />
}

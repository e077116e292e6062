/** The address without a page: leads to the first page of the navigation. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { tenantsQuery } from '../api/tenants.ts'
import { SkeletonRows } from '../components/states.tsx'
import { usePlaces } from './navigation.tsx'

export function Start() {
  const { isPending } = useQuery(tenantsQuery)
  const first = usePlaces()[0]?.address ?? '/account'
  const navigate = useNavigate()
  useEffect(() => {
    // Once for each target: a navigation that is under way must not begin again.
    if (!isPending) void navigate({ href: first, replace: true })
  }, [isPending, first, navigate])
  return <SkeletonRows />
}

/** The address without a page: the first page of the navigation. */
import { useQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { tenantsQuery } from '../api/tenants.ts'
import { SkeletonRows } from '../components/states.tsx'
import { usePlaces } from './navigation.tsx'

export function Start() {
  const { isPending } = useQuery(tenantsQuery)
  const [first] = usePlaces()
  if (isPending) return <SkeletonRows />
  return <Navigate replace to={(first?.to ?? '/account') as '/'} />
}

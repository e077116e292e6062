/** What a page is to the shell, and the list of all pages, which the router provides. */
import type { RegisteredRouter } from '@tanstack/react-router'
import { type ComponentType, createContext, useContext } from 'react'
import { mayAs, type Role } from '../api/session.ts'
import type { IconName } from '../components/icons.tsx'
import { useSignedIn } from './operator.ts'

export type PageEntry = {
  /** `$tenant` and other parameters are read with `useParams`. */
  path: string
  load: () => Promise<{ Page: ComponentType }>
  /** Its entry in the navigation on the left, or in the tabs of Admin. */
  nav?: { name: string; icon: IconName; badge?: ComponentType } | { name: string; of: 'admin' }
  /** The least role that may open it, viewer by default. The server decides; this hides it. */
  role?: Role
  /** Only for operators of all tenants. */
  allTenants?: boolean
}

export const PagesContext = createContext<readonly PageEntry[]>([])

/** The address of a page as the router knows it, with `$tenant` and other parameters. */
export type PagePath = keyof RegisteredRouter['routesByPath']

/** The pages that the operator's role may open. */
export function usePages(): (PageEntry & { path: PagePath })[] {
  const { role, tenants } = useSignedIn().operator
  return useContext(PagesContext)
    .map((page) => ({ ...page, path: page.path as PagePath }))
    .filter((page) => mayAs(role, page.role ?? 'viewer'))
    .filter(({ allTenants }) => allTenants !== true || tenants === 'all')
}

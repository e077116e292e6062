/** The navigation: an entry for each page that has one and that the operator's role may open. */
import { Link, useLocation } from '@tanstack/react-router'
import { type ComponentType, Suspense } from 'react'
import { useTenant } from '../api/tenants.ts'
import { classes } from '../components/classes.ts'
import { Icon, type IconName } from '../components/icons.tsx'
import { scrollAcross } from '../components/state/scroll-across.ts'
import { keepPeriod } from '../components/time/periods.ts'
import { type PagePath, usePages } from './page-list.ts'

export type Place = {
  name: string
  icon: IconName
  /** Beside its name: how much there is to do. */
  badge?: ComponentType
  path: PagePath
  /** The path for the tenant that is open. */
  address: string
  isHere: (address: string) => boolean
}

/** The entries of the navigation; Admin stands for all of its tabs. */
export function usePlaces(): Place[] {
  const tenant = useTenant()
  const allowed = usePages()
  const own = allowed.flatMap(({ path, nav }): Place[] => {
    if (nav === undefined || 'of' in nav) return []
    if (path.includes('$tenant') && tenant === null) return []
    const address = path.replace('$tenant', tenant ?? '')
    const isHere = (at: string) => at === address || at.startsWith(`${address}/`)
    return [{ ...nav, path, address, isHere }]
  })
  const admin = allowed.find(({ nav }) => nav !== undefined && 'of' in nav)
  if (admin === undefined) return own
  const isHere = (at: string) => at.startsWith('/manage/')
  const { path } = admin
  return [...own, { name: 'Admin', icon: 'admin', path, address: path, isHere }]
}

export function Navigation() {
  const { pathname } = useLocation()
  const tenant = useTenant() ?? ''
  return (
    <nav aria-label="Main" className="grid gap-px overflow-y-auto px-3 py-1">
      {usePlaces().map(({ name, icon, badge: Badge, path, isHere }) => (
        <Link
          aria-current={isHere(pathname) ? 'page' : undefined}
          className={classes(
            'flex h-8 items-center gap-2.5 rounded-md px-2 no-underline! hover:bg-hover',
            isHere(pathname) ? 'bg-hover font-medium text-text' : 'text-muted',
          )}
          key={name}
          params={{ tenant }}
          search={keepPeriod}
          to={path}
        >
          <Icon name={icon} />
          {name}
          {Badge && (
            <Suspense>
              <Badge />
            </Suspense>
          )}
        </Link>
      ))}
    </nav>
  )
}

/** The tabs of Admin, above each of its pages; nothing above others. */
export function AdminTabs() {
  const { pathname } = useLocation()
  const tabs = usePages().flatMap(({ path, nav }) => {
    return nav !== undefined && 'of' in nav ? [{ path, name: nav.name }] : []
  })
  if (!pathname.startsWith('/manage/')) return null
  return (
    <nav
      aria-label="Admin"
      className="-mb-px flex gap-4 overflow-x-auto border-line border-b px-4 pt-2 sm:px-6"
    >
      {tabs.map(({ path, name }) => {
        const isHere = pathname === path || pathname.startsWith(`${path}/`)
        return (
          <Link
            aria-current={isHere ? 'page' : undefined}
            className={classes(
              'flex h-10 items-center border-b-2 font-medium whitespace-nowrap no-underline!',
              'focus-visible:-outline-offset-2',
              isHere ? 'border-accent text-text' : 'border-transparent text-muted hover:text-text',
            )}
            key={path}
            ref={isHere ? scrollAcross : undefined}
            to={path}
          >
            {name}
          </Link>
        )
      })}
    </nav>
  )
}

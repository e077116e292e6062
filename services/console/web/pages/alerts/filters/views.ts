/** Saved views: filters under a name, kept in this browser for each tenant. */
import type { Search } from '../../../components/state/url-state.ts'

export type View = { name: string; filters: Search }

const viewsMax = 50
const keyOf = (tenant: string) => `di.alert-views.${tenant}`

/** Views that every tenant has. */
export const builtIn: View[] = [
  { name: 'Open', filters: { disposition: 'OPEN' } },
  { name: 'Open and critical', filters: { disposition: 'OPEN', severity: 'CRITICAL' } },
  { name: 'All', filters: {} },
]

/** None where storage is switched off or holds something else. */
export function readViews(tenant: string): View[] {
  try {
    const views: unknown = JSON.parse(localStorage.getItem(keyOf(tenant)) ?? '[]')
    return Array.isArray(views) ? views.filter(isView) : []
  } catch {
    return []
  }
}

const isView = (value: unknown): value is View =>
  typeof value === 'object' && value !== null && 'name' in value && 'filters' in value

/**
 * Keeps the views of a tenant.
 * @returns whether the browser has kept them
 */
export function keepViews(tenant: string, views: View[]): boolean {
  try {
    localStorage.setItem(keyOf(tenant), JSON.stringify(views.slice(0, viewsMax)))
    return true
  } catch {
    return false
  }
}

/** Whether two sets of filters are the same. */
export function isSameView(a: Search, b: Search): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => (a[name] ?? '') === (b[name] ?? ''))
}

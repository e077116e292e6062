/**
 * Views that this browser kept before the server did: each is moved to the server once, as a view
 * of the operator who opens the page, and then leaves the browser.
 */
import type { QueryClient } from '@tanstack/react-query'
import type { Search } from '../../../components/state/url-state.ts'
import { saveView, viewsQuery } from '../../../components/views/views.ts'
import { pickFilters } from './filter-values.ts'

type Kept = { name: string; filters: Search }

const keyOf = (tenant: string) => `di.alert-views.${tenant}`

/** None where storage is switched off or holds something else. */
function readKept(tenant: string): Kept[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(tenant)) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isKept) : []
  } catch {
    return []
  }
}

const isKept = (value: unknown): value is Kept =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'filters' in value &&
  typeof value.filters === 'object' &&
  value.filters !== null

/**
 * Moves them. One whose name the operator has on the server already is older and is dropped; those
 * that the server does not take stay for the next time.
 * @returns how many were moved
 */
export async function moveKeptViews(client: QueryClient, tenant: string): Promise<number> {
  const kept = readKept(tenant)
  if (kept.length === 0) return 0
  try {
    const { data } = await client.fetchQuery(viewsQuery(tenant, 'alerts'))
    const names = new Set(data.filter(({ own }) => own).map(({ name }) => name))
    const left: Kept[] = []
    for (const view of kept.filter(({ name }) => !names.has(name))) {
      const { name, filters } = view
      const body = { kind: 'alerts', name, query: pickFilters(filters), shared: false } as const
      await saveView(tenant, body).catch(() => left.push(view))
    }
    if (left.length === 0) localStorage.removeItem(keyOf(tenant))
    else localStorage.setItem(keyOf(tenant), JSON.stringify(left))
    return kept.length - left.length
  } catch {
    // The server cannot be read: they stay for the next time.
    return 0
  }
}

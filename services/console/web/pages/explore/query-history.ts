/** The queries that were run in this browser, newest first, for each tenant. */
import { useSyncExternalStore } from 'react'

export type PastQuery = {
  sql: string
  parameters: Record<string, string>
  atMs: number
  /** Rows of its answer, or null when it failed. */
  rows: number | null
}

const queriesMax = 50
const none: PastQuery[] = []
const listeners = new Set<() => void>()
const cache = new Map<string, PastQuery[]>()

const toKey = (tenant: string) => `di.sql.${tenant}`

export function useQueryHistory(tenant: string): PastQuery[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => readHistory(tenant),
  )
}

/** Puts a query first; the same text stands in the list once. */
export function rememberQuery(tenant: string, query: PastQuery): void {
  const others = readHistory(tenant).filter(({ sql }) => sql !== query.sql)
  save(tenant, [query, ...others].slice(0, queriesMax))
}

export const clearHistory = (tenant: string): void => save(tenant, none)

function readHistory(tenant: string): PastQuery[] {
  const cached = cache.get(tenant)
  if (cached !== undefined) return cached
  let read = none
  try {
    const value = JSON.parse(localStorage.getItem(toKey(tenant)) ?? '[]') as unknown
    if (Array.isArray(value)) read = value as PastQuery[]
  } catch {
    read = none
  }
  cache.set(tenant, read)
  return read
}

/** Storage can be full or switched off: the history then lasts as long as the window. */
function save(tenant: string, queries: PastQuery[]): void {
  cache.set(tenant, queries)
  for (const listener of listeners) listener()
  try {
    localStorage.setItem(toKey(tenant), JSON.stringify(queries))
  } catch {
    return
  }
}

/** State that lives in the URL: filters, sorts, tabs and selected rows are links. */
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

export type Search = Record<string, string>

/** All search parameters, and a way to change some of them; an empty text removes one. */
export function useUrlSearch(): [Search, (change: Search) => void] {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const change = useCallback(
    (next: Search) => {
      const merge = (before: object): Search =>
        Object.fromEntries(
          Object.entries<string>({ ...before, ...next }).filter(([, value]) => value !== ''),
        )
      // The address of the page stays: a filter is not a step that Back should undo.
      void navigate({ to: '.', search: merge, replace: true })
    },
    [navigate],
  )
  return [search, change]
}

/** One search parameter; its usual value is left out of the URL. */
export function useUrlState(name: string, usual = ''): [string, (value: string) => void] {
  const [search, change] = useUrlSearch()
  const set = useCallback(
    (value: string) => change({ [name]: value === usual ? '' : value }),
    [change, name, usual],
  )
  return [search[name] ?? usual, set]
}

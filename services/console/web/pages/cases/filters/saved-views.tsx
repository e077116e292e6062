/** The saved views of the queue of cases. */
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { SavedViews as Views } from '../../../components/views/saved-views.tsx'
import { pickFilters, replaceFilters } from './filter-values.ts'

/** Views that every tenant has. */
const builtIn = [
  { name: 'Open', query: {} },
  { name: 'Mine', query: { assignee: 'me' } },
  { name: 'Blocked, highest risk', query: { action: 'BLOCK', sort: 'risk' } },
  { name: 'All', query: { state: 'all' } },
]

export function SavedViews({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  return (
    <Views
      builtIn={builtIn}
      kind="cases"
      onOpen={(query) => change(replaceFilters(query))}
      query={pickFilters(search)}
      tenant={tenant}
    />
  )
}

/** The saved views of the list of events: filters, time, columns, and which counts are open. */
import { type Search, useUrlSearch } from '../../components/state/url-state.ts'
import { SavedViews } from '../../components/views/saved-views.tsx'
import { pickFilters, replaceFilters } from './event-query.ts'

/** Views that every tenant has. */
const builtIn = [
  { name: 'All of the last day', query: {} },
  { name: 'Blocked', query: { action: 'BLOCK' } },
  { name: 'Raised, 7 days', query: { action: 'REVIEW,BLOCK', span: '7d' } },
]

const pageNames = ['span', 'from', 'to', 'columns', 'by']

const pickView = (search: Search): Search => ({
  ...pickFilters(search),
  ...Object.fromEntries(pageNames.flatMap((name) => (search[name] ? [[name, search[name]]] : []))),
})

export function EventViews({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const open = (query: Search) =>
    change({
      ...Object.fromEntries(pageNames.map((name) => [name, ''])),
      ...replaceFilters(pickView(query)),
    })
  return (
    <SavedViews
      builtIn={builtIn}
      kind="events"
      onOpen={open}
      query={pickView(search)}
      tenant={tenant}
    />
  )
}

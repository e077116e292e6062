/** The saved views of the list of alerts. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { SavedViews as Views } from '../../../components/views/saved-views.tsx'
import { viewsQuery } from '../../../components/views/views.ts'
import { useMay } from '../../../shell/operator.ts'
import { pickFilters, replaceFilters } from './filter-values.ts'
import { moveKeptViews } from './kept-views.ts'

/** Views that every tenant has. */
const builtIn = [
  { name: 'Open', query: { disposition: 'OPEN' } },
  { name: 'Open and critical', query: { disposition: 'OPEN', severity: 'CRITICAL' } },
  { name: 'All', query: {} },
]

export function SavedViews({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const client = useQueryClient()
  const maySave = useMay('analyst')
  useEffect(() => {
    if (!maySave) return
    const { queryKey } = viewsQuery(tenant, 'alerts')
    void moveKeptViews(client, tenant).then((moved) => {
      if (moved > 0) void client.invalidateQueries({ queryKey })
    })
  }, [client, tenant, maySave])
  return (
    <Views
      builtIn={builtIn}
      kind="alerts"
      onOpen={(query) => change(replaceFilters(query))}
      query={pickFilters(search)}
      tenant={tenant}
    />
  )
}

/** Events: what phones sent and what was decided, by filter, without SQL. */
import { useParams } from '@tanstack/react-router'
import { lazy, Suspense, useEffect } from 'react'
import { Button } from '../../components/button.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { TimeRange } from '../../components/time/time-range.tsx'
import { ChoiceFilter } from '../alerts/filters/choice-filter.tsx'
import { FilterChips, TypedFilterForm } from '../alerts/filters/typed-filter.tsx'
import { ColumnsMenu } from './columns-menu.tsx'
import { EventCounts } from './event-counts.tsx'
import { EventList } from './event-list.tsx'
import { chosenFilters, listTypedFilters, pickFilters, replaceFilters } from './event-query.ts'
import { ExportMenu } from './export-menu.tsx'
import { FlagFilter } from './flag-filter.tsx'

// After the list is on the screen.
const EventViews = lazy(() =>
  import('./event-views.tsx').then(({ EventViews: shown }) => ({ default: shown })),
)

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const [search, change] = useUrlSearch()
  const filters = pickFilters(search)
  const typedFilters = listTypedFilters(search)
  // A value must not wait in the address for the next signal.
  const isLeft = search.signal === undefined && search.signal_value !== undefined
  useEffect(() => {
    if (isLeft) change({ signal_value: '' })
  }, [isLeft, change])
  return (
    <Frame
      about="Every event once, with what was decided, newest first. An alert is about events; most events raise none."
      action={
        <Suspense fallback={<Button>Views</Button>}>
          <EventViews tenant={tenant} />
        </Suspense>
      }
      controls={
        <>
          <TimeRange />
          <ColumnsMenu />
          <ExportMenu filters={filters} tenant={tenant} />
        </>
      }
      title="Events"
    >
      <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
        {chosenFilters.map(({ name, text, words }) =>
          name === 'flag' ? (
            <FlagFilter key={name} />
          ) : (
            <ChoiceFilter
              key={name}
              label={text}
              name={name}
              values={words.map((word) => [word, word] as const)}
            />
          ),
        )}
        <FilterChips filters={typedFilters} />
        <TypedFilterForm filters={typedFilters} />
        {Object.keys(filters).length > 0 && (
          <Button look="quiet" onClick={() => change(replaceFilters({}))}>
            Clear
          </Button>
        )}
      </search>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-[minmax(0,1fr)_20rem]">
        <EventList filters={filters} tenant={tenant} />
        <EventCounts filters={filters} tenant={tenant} />
      </div>
    </Frame>
  )
}

/** The list of events of a filter, newest first. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { Table } from '../../components/table.tsx'
import { useTimeRange } from '../../components/time/time-range.tsx'
import { readColumns, toTableColumns, toTableWidth } from './columns.tsx'

const pageRows = 100

export function EventList({
  tenant,
  filters,
}: {
  tenant: string
  filters: Record<string, string>
}) {
  const { from, to } = useTimeRange()
  const [list] = useUrlState('columns')
  const columns = readColumns(list === '' ? undefined : list)
  const isFiltered = Object.keys(filters).length > 0
  const events = useInfiniteQuery({
    queryKey: ['events', tenant, filters, from, to],
    queryFn: ({ pageParam }) =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/events', {
          params: {
            path: { tenant_id: tenant },
            query: {
              ...filters,
              limit: pageRows,
              from,
              ...(to === null ? {} : { to }),
              ...(pageParam === '' ? {} : { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  const rows = { ...events, data: events.data?.pages.flatMap(({ data }) => data) }
  const loadMore = () => {
    if (events.hasNextPage && !events.isFetchingNextPage) void events.fetchNextPage()
  }
  return (
    <Panel>
      <Loaded query={rows}>
        {(data) =>
          data.length === 0 && !events.hasNextPage ? (
            <Empty title={isFiltered ? 'No event matches' : 'No events in this time'}>
              <p>Choose a longer time{isFiltered ? ', or clear a filter' : ''}.</p>
            </Empty>
          ) : (
            <Table
              columns={toTableColumns(tenant, columns)}
              label="Events"
              minWidth={`${toTableWidth(columns)}rem`}
              onEnd={loadMore}
              rowKey={({ event_id }) => event_id}
              rows={data}
            />
          )
        }
      </Loaded>
      {events.hasNextPage && (
        // A search that takes long ends with a short page, which no scrolling would continue.
        <p className="border-line border-t p-2 text-center">
          <Button busy={events.isFetchingNextPage} onClick={loadMore} small>
            Older events
          </Button>
        </p>
      )}
    </Panel>
  )
}

/** Events: what phones sent and what was decided, by filter, without SQL. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { ActionBadge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { cutMiddle, IdText } from '../../components/id.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { useMay } from '../../shell/operator.ts'
import { ChoiceFilter } from '../alerts/filters/choice-filter.tsx'
import { FilterChips, TypedFilterForm } from '../alerts/filters/typed-filter.tsx'
import { chosenFilters, pickFilters, toEventsSql, typedFilters } from './event-query.ts'

type Event = AnswerOf<'/admin/v1/tenants/{tenant_id}/events', 'get'>['data'][number]

const pageRows = 100

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const [search, change] = useUrlSearch()
  const filters = pickFilters(search)
  const isFiltered = Object.keys(filters).length > 0
  const clear = () => change(Object.fromEntries(Object.keys(filters).map((name) => [name, ''])))
  return (
    <Frame
      about="Every event once, with what was decided, newest first. An alert is about events; most events raise none."
      controls={
        <>
          <TimeRange />
          <OpenAsSql filters={filters} tenant={tenant} />
        </>
      }
      title="Events"
    >
      <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
        {chosenFilters.map(({ name, text, words }) => (
          <ChoiceFilter
            key={name}
            label={text}
            name={name}
            values={words.map((word) => [word, word] as const)}
          />
        ))}
        <FilterChips filters={typedFilters} />
        <TypedFilterForm filters={typedFilters} />
        {isFiltered && (
          <Button look="quiet" onClick={clear}>
            Clear
          </Button>
        )}
      </search>
      <EventList filters={filters} isFiltered={isFiltered} tenant={tenant} />
    </Frame>
  )
}

/** The list as a query in Explore, to count by it or to add conditions. */
function OpenAsSql({ tenant, filters }: { tenant: string; filters: Record<string, string> }) {
  const range = useTimeRange()
  const navigate = useNavigate()
  const may = useMay('analyst')
  if (!may) return null
  const open = () => {
    const { sql, parameters } = toEventsSql(filters, range)
    const named = Object.entries(parameters).map(([name, value]) => [`p.${name}`, value])
    const search = { sql, ...Object.fromEntries(named) }
    void navigate({ to: '/t/$tenant/explore', params: { tenant }, search })
  }
  return (
    <Button icon="explore" onClick={open}>
      Open as SQL
    </Button>
  )
}

function EventList({
  tenant,
  filters,
  isFiltered,
}: {
  tenant: string
  filters: Record<string, string>
  isFiltered: boolean
}) {
  const { from, to } = useTimeRange()
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
              columns={toColumns(tenant)}
              label="Events"
              minWidth="60rem"
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

const toColumns = (tenant: string): Column<Event>[] => [
  {
    id: 'received',
    head: 'Received',
    cell: ({ received_at }) => <Time at={received_at} />,
    width: '7rem',
  },
  {
    id: 'event',
    head: 'Event',
    cell: ({ event_id: eventId }) => (
      <Link
        className="font-mono text-sm"
        params={{ tenant, eventId }}
        title={eventId}
        to="/t/$tenant/events/$eventId"
      >
        {cutMiddle(eventId, 12)}
      </Link>
    ),
    width: '8rem',
  },
  {
    id: 'action',
    head: 'Action',
    cell: ({ action }) => <ActionBadge action={action} />,
    width: '6.5rem',
  },
  { id: 'score', head: 'Risk', numeric: true, cell: (one) => one.risk_score, width: '3.5rem' },
  {
    id: 'device',
    head: 'Device',
    cell: ({ device_id: deviceId }) => (
      <Link
        className="block truncate"
        params={{ tenant, deviceId }}
        to="/t/$tenant/devices/$deviceId"
      >
        <IdText value={deviceId} />
      </Link>
    ),
    width: '20%',
  },
  {
    id: 'user',
    head: 'User',
    cell: ({ user_id, account_id }) => {
      const userId = user_id ?? account_id
      return userId === undefined ? (
        <span className="text-muted">none</span>
      ) : (
        <Link className="block truncate" params={{ tenant, userId }} to="/t/$tenant/users/$userId">
          <IdText value={userId} />
        </Link>
      )
    },
    width: '15%',
  },
  {
    id: 'client',
    head: 'Client',
    cell: ({ sdk_meta: { platform, sdk_version }, app_version }) => (
      <IdText value={`${platform} ${app_version ?? `SDK ${sdk_version}`}`} />
    ),
    width: '9rem',
  },
  {
    id: 'country',
    head: 'From',
    cell: ({ connection }) => connection?.country ?? <span className="text-muted">–</span>,
    width: '3.5rem',
  },
  {
    id: 'flags',
    head: 'Reasons',
    cell: ({ flags }) =>
      flags.length === 0 ? <span className="text-muted">none</span> : flags.join(', '),
  },
]

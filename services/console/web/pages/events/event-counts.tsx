/**
 * Counts of the list's events, and of their devices, by any column. Each is a link to the list with
 * this value as a filter, which has exactly so many. Only the columns that are open are counted.
 */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import {
  type EventColumn,
  eventColumns,
  toListFilter,
} from '#shared/core/analytics/event-counts.ts'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { classes } from '../../components/classes.ts'
import { Icon } from '../../components/icons.tsx'
import { IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { type Search, useUrlSearch } from '../../components/state/url-state.ts'
import { Loaded, SkeletonRows } from '../../components/states.tsx'
import { useTimeRange } from '../../components/time/time-range.tsx'
import { replaceFilters } from './event-query.ts'

type Counts = AnswerOf<'/admin/v1/tenants/{tenant_id}/events/counts', 'get'>
type Value = Counts['values'][number]

const columnTexts: Record<EventColumn, string> = {
  action: 'Action',
  flag: 'Flag',
  signal: 'Signal',
  signal_value: 'Values of the signal',
  app_version: 'App version',
  sdk_version: 'SDK version',
  platform: 'Platform',
  country: 'Country',
  asn: 'Network operator (ASN)',
  network_kind: 'Network kind',
  score: 'Risk score',
}

const usualOpen = 'action'
/** What the parameter says when no column is open. */
const noneOpen = 'none'

export function EventCounts({ tenant, filters }: { tenant: string; filters: Search }) {
  const [search, change] = useUrlSearch()
  const open = (search.by ?? usualOpen).split(',')
  const toggle = (by: EventColumn) => {
    const next = eventColumns.filter((one) => open.includes(one) !== (one === by)).join(',')
    change({ by: next === usualOpen ? '' : next === '' ? noneOpen : next })
  }
  // Values are those of the signal that is filtered by.
  const columns = eventColumns.filter((by) => by !== 'signal_value' || filters.signal !== undefined)
  return (
    <Panel title="Counts">
      <div className="grid grid-cols-[minmax(0,1fr)]">
        {columns.map((by) => (
          <Section
            by={by}
            filters={filters}
            isOpen={open.includes(by)}
            key={by}
            onToggle={() => toggle(by)}
            tenant={tenant}
          />
        ))}
      </div>
    </Panel>
  )
}

function Section({
  by,
  isOpen,
  onToggle,
  ...rest
}: {
  by: EventColumn
  isOpen: boolean
  onToggle: () => void
  tenant: string
  filters: Search
}) {
  const id = `counts-${by}`
  return (
    <section className="border-line border-b last:border-b-0">
      <h3>
        <button
          aria-controls={isOpen ? id : undefined}
          aria-expanded={isOpen}
          className="flex h-9 w-full items-center gap-2 px-4 font-medium outline-offset-[-2px] hover:bg-hover"
          onClick={onToggle}
          type="button"
        >
          <span className={classes('text-muted', !isOpen && '-rotate-90')}>
            <Icon name="down" size={12} />
          </span>
          {columnTexts[by]}
        </button>
      </h3>
      {isOpen && (
        <div id={id}>
          <ColumnCounts by={by} {...rest} />
        </div>
      )}
    </section>
  )
}

function ColumnCounts({
  by,
  tenant,
  filters,
}: {
  by: EventColumn
  tenant: string
  filters: Search
}) {
  const { from, to } = useTimeRange()
  const counts = useQuery({
    queryKey: ['event counts', tenant, by, filters, from, to],
    queryFn: ({ signal }) =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/events/counts', {
          params: {
            path: { tenant_id: tenant },
            query: { ...filters, by, from, ...(to === null ? {} : { to }) },
          },
          signal,
        }),
      ),
  })
  return (
    <Loaded query={counts} skeleton={<SkeletonRows rows={3} />}>
      {(found) => <Shown counts={found} filters={filters} tenant={tenant} />}
    </Loaded>
  )
}

const number = (value: number) => value.toLocaleString('en')
const gridClasses = 'grid grid-cols-[minmax(0,1fr)_4rem_4.5rem] items-center gap-x-2 px-4'
const countOf = (count: number, noun: string) => `${number(count)} ${noun}${count === 1 ? '' : 's'}`

function Shown({ counts, filters, tenant }: { counts: Counts; filters: Search; tenant: string }) {
  const { by, all, none, values, values_total: total } = counts
  if (all.events === 0) return <p className="px-4 pb-3 text-muted">No events in this time.</p>
  const rest = total - values.length
  return (
    <div className="pb-2">
      <div aria-hidden="true" className={`${gridClasses} text-muted text-sm`}>
        <span />
        <span className="text-right">Devices</span>
        <span className="text-right">Events</span>
      </div>
      <ul className="max-h-80 overflow-y-auto">
        {values.map((one) => (
          <li key={one.value}>
            <ValueLink by={by} filters={filters} tenant={tenant} value={one} />
          </li>
        ))}
        {none.events > 0 && (
          <li className={`${gridClasses} h-8 text-muted`}>
            <span>None</span>
            <Numbers {...none} />
          </li>
        )}
      </ul>
      <p className="px-4 pt-1 text-muted text-sm">
        {`${countOf(all.devices, 'device')} with ${countOf(all.events, 'event')}`}
        {counts.own_filter_left_out && ', without the filter by this column'}
        {rest > 0 && `. ${countOf(rest, 'more value')} with fewer events`}.
      </p>
    </div>
  )
}

function ValueLink({
  by,
  value: { value, label, devices, events },
  filters,
  tenant,
}: {
  by: EventColumn
  value: Value
  filters: Search
  tenant: string
}) {
  const [search] = useUrlSearch()
  const next = { ...search, ...replaceFilters(toListFilter(by, value, filters)) }
  const isPresent = filters[by] === value
  return (
    <Link
      aria-current={isPresent || undefined}
      className={classes(
        gridClasses,
        'h-8 text-text no-underline! outline-offset-[-2px] hover:bg-hover',
        isPresent && 'bg-accent-soft',
      )}
      params={{ tenant }}
      search={Object.fromEntries(Object.entries(next).filter(([, text]) => text !== ''))}
      to="/t/$tenant/events"
    >
      <span className="truncate text-accent-text">
        <ValueName by={by} label={label} value={value} />
      </span>
      <Numbers devices={devices} events={events} />
    </Link>
  )
}

function Numbers({ devices, events }: { devices: number; events: number }) {
  return (
    <>
      <span className="text-right">
        {number(devices)}
        <span className="sr-only">{devices === 1 ? ' device' : ' devices'}</span>
      </span>
      <span className="text-right">
        {number(events)}
        <span className="sr-only">{events === 1 ? ' event' : ' events'}</span>
      </span>
    </>
  )
}

function ValueName({ by, value, label }: { by: EventColumn; value: string; label: string }) {
  const flag = by === 'flag' ? findFlag(value)?.name : undefined
  if (flag !== undefined) return <span title={value}>{flag}</span>
  if (by === 'asn') return <IdText value={`AS${value} ${label}`.trim()} />
  if (by === 'score') return value.replace('-', '–')
  return <IdText value={value} />
}

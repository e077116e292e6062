/**
 * What may be wrong: open spikes on top, open cases by age and queue, and the signals that changed
 * most. Each number links to the list that has it.
 */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Panel } from '../../components/page.tsx'
import { SmallTable } from '../../components/rows/small-table.tsx'
import type { Column } from '../../components/rows/table-frame.tsx'
import { Empty } from '../../components/states.tsx'
import { openSpikesQuery } from '../signals/open-spikes.ts'
import type { Overview } from './overview.ts'

type Cases = Overview['cases']
type Queue = Cases['queues'][number]
type Mover = NonNullable<NonNullable<Overview['telemetry']>['movers']>[number]

const number = (value: number) => value.toLocaleString('en')

/** A signal that rose abruptly within one SDK version is likely a bad release. */
export function SpikeBanner({ tenant }: { tenant: string }) {
  const { data } = useQuery(openSpikesQuery(tenant))
  const open = data?.data ?? []
  const [first] = open
  if (first === undefined) return null
  const more = open.length === 1 ? '' : ` and ${open.length - 1} more`
  return (
    <p className="rounded-lg bg-warn-soft px-4 py-3 text-warn" role="status">
      <Link
        className="font-medium text-warn!"
        params={{ tenant }}
        search={{ tab: 'spikes' }}
        to="/t/$tenant/signals"
      >
        {open.length === 1 ? '1 prevalence spike is open' : `${open.length} spikes are open`}
      </Link>
      : <code>{first.signal}</code> in {first.platform} {first.sdk_version}
      {more}. Likely a bad release, not fraud; {number(first.alerts)} alerts are affected.
    </p>
  )
}

export function Attention({ tenant, overview }: { tenant: string; overview: Overview }) {
  const movers = overview.telemetry?.movers ?? null
  return (
    <div className="grid gap-4 xl:grid-cols-2">
      <Panel title="Open cases by age">
        <SmallTable
          columns={toCaseColumns(tenant, overview.cases)}
          label="Open cases by age"
          minWidth="28rem"
          rowKey={({ name }) => name}
          rows={overview.cases.queues}
        />
      </Panel>
      <Panel
        action={
          <Link
            params={{ tenant }}
            search={{ from: overview.from, to: overview.to }}
            to="/t/$tenant/fleet"
          >
            All signals
          </Link>
        }
        title="Signals that changed most"
      >
        {movers === null || movers.length === 0 ? (
          <Empty title={toNoMovers(overview)} />
        ) : (
          <SmallTable
            columns={toMoverColumns(tenant, overview)}
            label="Signals that changed most"
            minWidth="26rem"
            rowKey={({ signal }) => signal}
            rows={movers}
          />
        )}
      </Panel>
    </div>
  )
}

function toNoMovers({ telemetry }: Overview): string {
  if (telemetry === null) return 'Not known at the moment'
  return telemetry.movers === null ? 'Too few devices to compare' : 'No share has changed'
}

const ages = ['Hour', 'Day', 'Week', 'Older']

const toCaseColumns = (tenant: string, cases: Cases): Column<Queue>[] => {
  const toLink = (count: number, search: Record<string, string>) => (
    <Link params={{ tenant }} search={search} to="/t/$tenant/cases">
      {number(count)}
    </Link>
  )
  return [
    { id: 'queue', head: 'Queue', cell: ({ name }) => name },
    ...cases.ages.map(({ from, to }, at) => ({
      id: `age-${at}`,
      head: ages[at] ?? '',
      numeric: true,
      width: '4.5rem',
      cell: ({ query, by_age: counts }: Queue) =>
        toLink(counts[at] ?? 0, {
          ...query,
          ...(from && { begun_from: from }),
          ...(to && { begun_to: to }),
        }),
    })),
    {
      id: 'overdue',
      head: 'Overdue',
      numeric: true,
      width: '5rem',
      cell: ({ query, overdue }) => toLink(overdue, { ...query, breached: 'true' }),
    },
  ]
}

const toPercent = (share: number): string =>
  `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`

const toMoverColumns = (tenant: string, { from, to }: Overview): Column<Mover>[] => [
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal }) => (
      <Link params={{ tenant }} search={{ signal, from, to }} to="/t/$tenant/events">
        <code className="text-sm">{signal}</code>
      </Link>
    ),
  },
  {
    id: 'share',
    head: 'Share of devices',
    numeric: true,
    width: '8.5rem',
    cell: ({ share }) => toPercent(share.now),
  },
  {
    id: 'before',
    head: 'Before',
    numeric: true,
    width: '5.5rem',
    cell: ({ share }) => toPercent(share.before),
  },
]

/**
 * What may be wrong: open spikes on top, open alerts by age, and the signals that changed most.
 * Each number links to the list that has it.
 */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Panel } from '../../components/page.tsx'
import { SmallTable } from '../../components/rows/small-table.tsx'
import type { Column } from '../../components/rows/table-frame.tsx'
import { Empty } from '../../components/states.tsx'
import { openSpikesQuery } from '../signals/open-spikes.ts'
import type { Overview } from './overview.ts'

type Age = Overview['alerts']['open_by_age'][number]
type Mover = NonNullable<Overview['telemetry']>['movers'][number]

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
  const { alerts, telemetry } = overview
  return (
    <div className="grid gap-4 xl:grid-cols-2">
      <Panel title="Open alerts by age">
        <ul className="divide-y divide-line">
          {alerts.open_by_age.map((age) => (
            <li className="flex items-center justify-between px-4 py-2" key={age.from}>
              <Link
                params={{ tenant }}
                search={{
                  disposition: 'OPEN',
                  from: age.from ?? new Date(0).toISOString(),
                  ...(age.to === null ? {} : { to: age.to }),
                }}
                to="/t/$tenant/alerts"
              >
                {toAgeText(age, alerts.open_by_age)}
              </Link>
              <span className="tabular-nums">{number(age.alerts)}</span>
            </li>
          ))}
        </ul>
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
        {telemetry === null || telemetry.movers.length === 0 ? (
          <Empty title={telemetry === null ? 'Not known at the moment' : 'No share has changed'} />
        ) : (
          <SmallTable
            columns={toMoverColumns(tenant, overview)}
            label="Signals that changed most"
            minWidth="26rem"
            rowKey={({ signal }) => signal}
            rows={telemetry.movers}
          />
        )}
      </Panel>
    </div>
  )
}

const ages = ['In the last hour', 'In the last day', 'In the last week', 'Older than a week']

const toAgeText = (age: Age, all: readonly Age[]): string => ages[all.indexOf(age)] ?? 'Older'

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

/** The catalog: each signal with its weight, share of the fleet, precision and lift. */
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { controlClasses } from '../../components/field.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { SignalName, seenByServerText } from '../../components/signal-name.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { fleetOfWeekQuery } from '../fleet/week-query.ts'
import { catalogQuery, type SignalCatalog } from './catalog-query.ts'

type Signal = SignalCatalog['categories'][number]['signals'][number]
type Precision = AnswerOf<
  '/admin/v1/tenants/{tenant_id}/rule-performance',
  'get'
>['signals'][number]

type Row = Signal & { share: number | null; performance: Precision | undefined }

const toPercent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`

export function Catalog({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const path = { tenant_id: tenant }
  const catalog = useQuery(catalogQuery(tenant))
  const performance = useQuery({
    queryKey: ['rule-performance', tenant],
    queryFn: () =>
      ok(api.GET('/admin/v1/tenants/{tenant_id}/rule-performance', { params: { path } })),
  })
  const fleet = useQuery(fleetOfWeekQuery(tenant))
  const rows = useMemo((): Row[] => {
    const shares = new Map(fleet.data?.signals.map(({ signal, share }) => [signal, share]))
    const judged = new Map(performance.data?.signals.map((one) => [one.what, one]))
    const isSeen = (fleet.data?.totals.devices ?? 0) > 0
    return (catalog.data?.categories ?? []).flatMap(({ signals }) =>
      signals.map((signal) => ({
        ...signal,
        share: isSeen && signal.type === 'boolean' ? (shares.get(signal.signal) ?? 0) : null,
        performance: judged.get(signal.signal),
      })),
    )
  }, [catalog.data, performance.data, fleet.data])
  const { q = '', category = '', sort = 'catalog' } = search
  const shown = useMemo(
    () =>
      rows
        .filter((row) => category === '' || row.signal.startsWith(`${category}.`))
        .filter(({ signal, description, flag }) =>
          `${signal} ${description} ${flag}`.toLowerCase().includes(q.toLowerCase()),
        )
        .sort(orders[sort] ?? (() => 0)),
    [rows, category, q, sort],
  )
  const selected = rows.find(({ signal }) => signal === search.signal)
  return (
    <Loaded query={catalog}>
      {({ categories, flags }) => (
        <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,1fr)_18rem]">
          <Panel>
            <div className="flex flex-wrap gap-2 border-line border-b p-2">
              <input
                aria-label="Find a signal"
                className={`${controlClasses} h-8 min-w-40 flex-1`}
                onChange={({ target }) => change({ q: target.value })}
                placeholder="Find by name, meaning or flag"
                type="search"
                value={q}
              />
              <select
                aria-label="Category"
                className={`${controlClasses} h-8 w-auto!`}
                onChange={({ target }) => change({ category: target.value })}
                value={category}
              >
                <option value="">All categories</option>
                {categories.map(({ category: name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <select
                aria-label="Order"
                className={`${controlClasses} h-8 w-auto!`}
                onChange={({ target }) =>
                  change({ sort: target.value === 'catalog' ? '' : target.value })
                }
                value={sort}
              >
                <option value="catalog">As in the catalog</option>
                <option value="weight">Weight</option>
                <option value="share">Share of the fleet</option>
                <option value="precision">Precision</option>
                <option value="lift">Lift</option>
              </select>
            </div>
            {shown.length === 0 ? (
              <Empty title="No signal has this name or meaning">Clear the filters above.</Empty>
            ) : (
              <Table
                columns={columns(fleet.isPending, performance.isPending)}
                label="Signals"
                minWidth="44rem"
                onSelect={({ signal }) => change({ signal })}
                rowKey={({ signal }) => signal}
                rows={shown}
                selected={search.signal}
              />
            )}
          </Panel>
          <Panel title={selected?.signal ?? 'A signal'}>
            {selected === undefined ? (
              <Empty title="Choose a signal">
                Its meaning, sources and judgements are shown here.
              </Empty>
            ) : (
              <SignalFacts meaning={flags[selected.flag]} signal={selected} />
            )}
          </Panel>
        </div>
      )}
    </Loaded>
  )
}

const down = (toNumber: (row: Row) => number | null | undefined) => (a: Row, b: Row) =>
  (toNumber(b) ?? -1) - (toNumber(a) ?? -1)

const orders: Record<string, (a: Row, b: Row) => number> = {
  weight: down(({ weight }) => toMost(weight)),
  share: down(({ share }) => share),
  precision: down(({ performance }) => performance?.precision),
  lift: down(({ performance }) => performance?.lift),
}

/** The most points that a weight can bring. */
function toMost(weight: Signal['weight']): number {
  if (typeof weight === 'number') return weight
  if ('when_false' in weight) return weight.when_false
  if ('at_least' in weight) return weight.weight
  return Math.max(0, ...Object.values(weight.values))
}

function toWeightText(weight: Signal['weight']): string {
  if (typeof weight === 'number') return String(weight)
  if ('when_false' in weight) return `${weight.when_false} when false`
  if ('at_least' in weight) return `${weight.weight} from ${weight.at_least}`
  const most = toMost(weight)
  return `up to ${most} by value`
}

const noData = <span className="text-muted">no data</span>
const waiting = <span className="text-muted">…</span>

const columns = (fleetPending: boolean, performancePending: boolean): Column<Row>[] => [
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal, description }) => <SignalName path={signal} title={description} />,
  },
  {
    id: 'weight',
    head: 'Weight',
    width: '9.5rem',
    cell: ({ weight, suppressed }) => (
      <span className="flex items-center gap-2">
        {toMost(weight) === 0 ? <span className="text-muted">0</span> : toWeightText(weight)}
        {suppressed.length > 0 && <Badge tone="warn">suppressed</Badge>}
      </span>
    ),
  },
  { id: 'grade', head: 'Grade', width: '7.5rem', cell: ({ grade }) => grade },
  {
    id: 'share',
    head: <span title="of devices in the last 7 days">Share of fleet</span>,
    numeric: true,
    width: '5.5rem',
    cell: ({ share }) => (share === null ? (fleetPending ? waiting : noData) : toPercent(share)),
  },
  {
    id: 'precision',
    head: <span title="confirmed of all judged alerts">Precision</span>,
    numeric: true,
    width: '5.5rem',
    cell: ({ performance }) =>
      performance?.precision == null
        ? performancePending
          ? waiting
          : noData
        : toPercent(performance.precision),
  },
  {
    id: 'lift',
    head: <span title="precision against that of all alerts">Lift</span>,
    numeric: true,
    width: '5.5rem',
    cell: ({ performance }) =>
      performance?.lift == null
        ? performancePending
          ? waiting
          : noData
        : performance.lift.toFixed(2),
  },
]

function SignalFacts({ signal, meaning }: { signal: Row; meaning: string | undefined }) {
  const { performance, suppressed } = signal
  return (
    <>
      <p className="px-4 pt-3">{signal.description}</p>
      <Facts
        facts={[
          ['Seen by', signal.seen_by === 'server' ? seenByServerText : 'The client says it'],
          ['Type', signal.type],
          ['Platforms', signal.platforms.join(', ')],
          ['Grade', signal.grade],
          [
            'Flag',
            <span key="flag" title={meaning}>
              {signal.flag}
            </span>,
          ],
          ['Weight', toWeightText(signal.weight)],
          ['Alerts', performance?.alerts.toLocaleString('en') ?? 'none'],
          ['Confirmed', performance?.confirmed.toLocaleString('en') ?? 'none'],
          ['False positive', performance?.false_positive.toLocaleString('en') ?? 'none'],
          [
            'Precision',
            performance === undefined || performance.confirmed + performance.false_positive === 0
              ? 'no data'
              : `${toPercent(performance.precision_low)} to ${toPercent(performance.precision_high)}`,
          ],
        ]}
      />
      {suppressed.map((one) => (
        <p className="border-line border-t px-4 py-3 text-sm" key={one.reason}>
          <Badge tone="warn">suppressed</Badge> {one.reason}
          {one.sdk_versions && <>, in {one.sdk_versions.join(', ')}</>}
          {one.expires_at !== null && (
            <>
              , until <Time at={one.expires_at} exact />
            </>
          )}
        </p>
      ))}
      {signal.sources.length > 0 && (
        <p className="border-line border-t px-4 py-3 text-muted text-sm">
          Sources: {signal.sources.join(', ')}
        </p>
      )}
    </>
  )
}

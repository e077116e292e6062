/** Signals that SDKs send and the catalog does not have, by SDK version. */
import { useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { controlClasses } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'

type Unknown = AnswerOf<'/admin/v1/tenants/{tenant_id}/unknown-signals', 'get'>['data'][number]

const columns: Column<Unknown>[] = [
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal }) => <code className="font-mono text-sm">{signal}</code>,
  },
  {
    id: 'version',
    head: 'SDK version',
    cell: ({ sdk_version: version }) => version || 'none',
    width: '9rem',
  },
  { id: 'platform', head: 'Platform', cell: ({ platform }) => platform || 'none', width: '7rem' },
  {
    id: 'events',
    head: 'Events',
    numeric: true,
    width: '7rem',
    cell: ({ events }) => events.toLocaleString('en'),
  },
  {
    id: 'devices',
    head: 'Devices',
    numeric: true,
    width: '7rem',
    cell: ({ devices }) => devices.toLocaleString('en'),
  },
  {
    id: 'first',
    head: 'First seen',
    width: '8rem',
    cell: ({ first_seen_at: at }) => <Time at={at} />,
  },
  {
    id: 'last',
    head: 'Last seen',
    width: '8rem',
    cell: ({ last_seen_at: at }) => <Time at={at} />,
  },
]

export function UnknownSignals({ tenant }: { tenant: string }) {
  const [days, setDays] = useUrlState('days', '7')
  const unknown = useQuery({
    queryKey: ['unknown-signals', tenant, days],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/unknown-signals', {
          params: { path: { tenant_id: tenant }, query: { days: Number(days), limit: 1_000 } },
        }),
      ),
  })
  return (
    <Panel
      action={
        <select
          aria-label="How far to look back"
          className={`${controlClasses} h-8 w-auto!`}
          onChange={({ target }) => setDays(target.value)}
          value={days}
        >
          <option value="1">Last day</option>
          <option value="7">Last 7 days</option>
          <option value="30">Last 30 days</option>
        </select>
      }
      title="Not in the catalog"
    >
      <Loaded query={unknown}>
        {({ data, left_out: leftOut }) => (
          <>
            {leftOut.values > 0 && (
              <p className="border-line border-b px-4 py-2 text-warn">
                {leftOut.values.toLocaleString('en')} values in{' '}
                {leftOut.events.toLocaleString('en')} events are in the stored bodies alone: there
                are more names than get a place beside the catalog.
              </p>
            )}
            {data.length === 0 ? (
              <Empty title="SDKs send nothing that the catalog does not have">
                A new signal of an SDK is listed here first; it scores nothing until it is known.
              </Empty>
            ) : (
              <Table
                columns={columns}
                label="Unknown signals"
                minWidth="56rem"
                rowKey={(one) => `${one.signal} ${one.sdk_version} ${one.platform}`}
                rows={data}
              />
            )}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

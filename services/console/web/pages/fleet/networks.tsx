/** From which countries and networks the events of a time came. It is read beside the fleet. */
import { useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded, Skeleton } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { AlertsLink, Kinds, Operator } from '../entities/connection.tsx'
import { toPercent } from './fleet-texts.ts'

type Answer = AnswerOf<'/admin/v1/tenants/{tenant_id}/fleet/networks', 'get'>
type Country = Answer['countries'][number]
type Network = Answer['networks'][number]

export function FleetNetworks({
  tenant,
  from,
  to,
}: {
  tenant: string
  from: string
  to: string | null
}) {
  const networks = useQuery({
    queryKey: ['fleet networks', tenant, from, to],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/fleet/networks', {
          params: { path: { tenant_id: tenant }, query: to === null ? { from } : { from, to } },
        }),
      ),
    placeholderData: (before) => before,
  })
  return (
    <Loaded query={networks} skeleton={<Skeleton className="h-72" />}>
      {(found) => <Shown found={found} tenant={tenant} />}
    </Loaded>
  )
}

function Shown({ tenant, found }: { tenant: string; found: Answer }) {
  if (found.measured === 0) {
    return (
      <Panel title="Countries and networks">
        <Empty title="No connection was measured in this time">
          An edge measures addresses of the internet when it has network data.
        </Empty>
      </Panel>
    )
  }
  return (
    <div className="grid gap-4 xl:grid-cols-[2fr_3fr]">
      <Panel
        action={
          <span className="text-muted">{toPercent(found.measured / found.events)} measured</span>
        }
        title="Countries"
      >
        <Table
          columns={countryColumns(tenant)}
          heightClass="max-h-96"
          label="Countries"
          minWidth="28rem"
          rowKey={({ country }) => country}
          rows={found.countries}
        />
      </Panel>
      <Panel title="Networks">
        <Table
          columns={networkColumns(tenant)}
          heightClass="max-h-96"
          label="Networks"
          minWidth="48rem"
          rowKey={({ connection }) => connection.network}
          rows={found.networks}
        />
      </Panel>
    </div>
  )
}

type Counted = Pick<Country, 'events' | 'blocked' | 'devices'>

const counts: Column<Counted>[] = [
  {
    id: 'devices',
    head: 'Devices',
    numeric: true,
    width: '5.5rem',
    cell: (one) => one.devices.toLocaleString('en'),
  },
  {
    id: 'events',
    head: 'Events',
    numeric: true,
    width: '5.5rem',
    cell: (one) => one.events.toLocaleString('en'),
  },
  {
    id: 'blocked',
    head: <span title="Of the events, those whose device score led to BLOCK">Blocked</span>,
    numeric: true,
    width: '5.5rem',
    cell: (one) => toPercent(one.blocked / one.events),
  },
]

const countryColumns = (tenant: string): Column<Country>[] => [
  {
    id: 'country',
    head: 'Country',
    cell: ({ country }) => <AlertsLink name="country" tenant={tenant} value={country} />,
  },
  ...counts,
  {
    id: 'networks',
    head: 'Networks',
    numeric: true,
    width: '6rem',
    cell: (one) => one.networks.toLocaleString('en'),
  },
]

const networkColumns = (tenant: string): Column<Network>[] => [
  {
    id: 'network',
    head: 'Network',
    width: '10rem',
    cell: ({ connection: { network } }) => (
      <AlertsLink name="network" tenant={tenant} value={network} />
    ),
  },
  {
    id: 'country',
    head: 'Country',
    width: '5.5rem',
    cell: ({ connection: { country } }) => country ?? 'not known',
  },
  {
    id: 'operator',
    head: 'Operator',
    cell: ({ connection }) => <Operator connection={connection} tenant={tenant} />,
  },
  {
    id: 'kinds',
    head: 'Kind',
    width: '8rem',
    cell: ({ connection: { kinds } }) => <Kinds kinds={kinds} />,
  },
  ...counts,
]

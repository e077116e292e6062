/** Other devices on the network that a device was last on. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'

type Other = AnswerOf<
  '/admin/v1/tenants/{tenant_id}/devices/{device_id}/network',
  'get'
>['data'][number]

export function NetworkDevices({ tenant, deviceId }: { tenant: string; deviceId: string }) {
  const others = useQuery({
    queryKey: ['network devices', tenant, deviceId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}/network', {
          params: { path: { tenant_id: tenant, device_id: deviceId } },
        }),
      ),
  })
  const { connection, data, total } = others.data ?? {}
  return (
    <Panel
      action={
        connection && (
          <span className="text-muted">
            {data!.length < total!
              ? `the latest ${data!.length} of ${total!.toLocaleString('en')}`
              : connection.network}
          </span>
        )
      }
      title="Other devices on this network"
    >
      <Loaded query={others}>
        {(found) =>
          found.data.length === 0 ? (
            <Empty title="No other device was last seen on it" />
          ) : (
            <Table
              columns={columnsOf(tenant)}
              heightClass="max-h-96"
              label="Other devices on this network"
              rowKey={({ device_id: id }) => id}
              rows={found.data}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const columnsOf = (tenant: string): Column<Other>[] => [
  {
    id: 'device',
    head: 'Device',
    cell: ({ device_id: id }) => (
      <Link params={{ tenant, deviceId: id }} to="/t/$tenant/devices/$deviceId">
        <IdText value={id} />
      </Link>
    ),
  },
  {
    id: 'risk',
    head: 'Risk score',
    numeric: true,
    cell: (one) => one.risk_score,
    width: '7rem',
  },
  {
    id: 'network',
    head: 'On it',
    cell: (one) => <Time at={one.on_network_at} />,
    width: '8rem',
  },
  { id: 'last', head: 'Last seen', cell: (one) => <Time at={one.last_seen_at} />, width: '8rem' },
]

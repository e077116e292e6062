/** Devices and users that are linked: they share a user or a device. */
import { Link } from '@tanstack/react-router'
import { Panel } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'

type Linked = { user_id: string; device_id: string; last_seen_at: string }

export const deviceAddress = (tenant: string, id: string) =>
  `/t/${tenant}/devices/${encodeURIComponent(id)}`
export const userAddress = (tenant: string, id: string) =>
  `/t/${tenant}/users/${encodeURIComponent(id)}`

export function Links({
  tenant,
  title,
  links: { data, truncated },
}: {
  tenant: string
  title: string
  links: { data: Linked[]; truncated: boolean }
}) {
  const columns: Column<Linked>[] = [
    {
      id: 'device',
      head: 'Device',
      cell: ({ device_id: id }) => <Link to={deviceAddress(tenant, id) as '/'}>{id}</Link>,
    },
    {
      id: 'user',
      head: 'User',
      cell: ({ user_id: id }) => <Link to={userAddress(tenant, id) as '/'}>{id}</Link>,
    },
    {
      id: 'last',
      head: 'Last seen together',
      cell: ({ last_seen_at: at }) => <Time at={at} />,
      width: '11rem',
    },
  ]
  return (
    <Panel
      action={truncated && <span className="text-muted">the first {data.length}</span>}
      title={title}
    >
      {data.length === 0 ? (
        <Empty title="None is linked" />
      ) : (
        <Table
          columns={columns}
          heightClass="max-h-96"
          label={title}
          rowKey={({ device_id: device, user_id: user }) => `${device} ${user}`}
          rows={data}
        />
      )}
    </Panel>
  )
}

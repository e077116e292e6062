/** The networks and countries of the sessions that a page shows, the latest first. */
import { useMemo } from 'react'
import { Panel } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { AlertsLink, type Connection, Kinds, Operator } from './connection.tsx'

type Session = { last_seen_at: string; connection: Connection | null }

/** @property last when the latest of its sessions was last seen */
type Network = { connection: Connection; sessions: number; last: string }

/** Nothing while no session has a measured connection. */
export function Networks({ tenant, sessions }: { tenant: string; sessions: Session[] }) {
  const networks = useMemo(() => toNetworks(sessions), [sessions])
  if (networks.length === 0) return null
  const countries = new Set(networks.flatMap(({ connection }) => connection.country ?? []))
  return (
    <Panel
      action={
        <span className="text-muted">
          {counted(networks.length, 'network')} in{' '}
          {countries.size === 1 ? '1 country' : `${countries.size} countries`}
        </span>
      }
      title="Networks"
    >
      <Table
        columns={columnsOf(tenant)}
        heightClass="max-h-72"
        label="Networks of the sessions"
        minWidth="46rem"
        rowKey={({ connection }) => connection.network}
        rows={networks}
      />
    </Panel>
  )
}

function toNetworks(sessions: readonly Session[]): Network[] {
  const networks = new Map<string, Network>()
  for (const { connection, last_seen_at: last } of sessions) {
    if (connection === null) continue
    const known = networks.get(connection.network)
    networks.set(connection.network, {
      connection: known !== undefined && known.last > last ? known.connection : connection,
      sessions: (known?.sessions ?? 0) + 1,
      last: known !== undefined && known.last > last ? known.last : last,
    })
  }
  return [...networks.values()].sort((a, b) => (a.last < b.last ? 1 : -1))
}

const columnsOf = (tenant: string): Column<Network>[] => [
  {
    id: 'network',
    head: 'Network',
    cell: ({ connection: { network } }) => (
      <AlertsLink name="network" tenant={tenant} value={network} />
    ),
    width: '11rem',
  },
  {
    id: 'country',
    head: 'Country',
    cell: ({ connection: { country } }) =>
      country === null ? (
        <span className="text-muted">not known</span>
      ) : (
        <AlertsLink name="country" tenant={tenant} value={country} />
      ),
    width: '6rem',
  },
  {
    id: 'operator',
    head: 'Operator',
    cell: ({ connection }) => <Operator connection={connection} tenant={tenant} />,
  },
  {
    id: 'kinds',
    head: 'Kind',
    cell: ({ connection: { kinds } }) => <Kinds kinds={kinds} />,
    width: '9rem',
  },
  { id: 'sessions', head: 'Sessions', numeric: true, cell: (one) => one.sessions, width: '6rem' },
  { id: 'last', head: 'Last seen', cell: (one) => <Time at={one.last} />, width: '8rem' },
]

/** The flags and SDK versions of a period, by events. */
import { Link } from '@tanstack/react-router'
import { Panel } from '../../components/page.tsx'
import { SmallTable } from '../../components/rows/small-table.tsx'
import type { Column } from '../../components/rows/table-frame.tsx'
import { Empty } from '../../components/states.tsx'
import type { Overview } from './overview.ts'

type Telemetry = NonNullable<Overview['telemetry']>
type FlagShare = Telemetry['top_flags'][number]
type VersionShare = Telemetry['sdk_versions'][number]
type Counted = Pick<FlagShare, 'events' | 'devices'>

const counts: Column<Counted>[] = [
  {
    id: 'events',
    head: 'Events',
    numeric: true,
    cell: (row) => number(row.events.now),
    width: '5.5rem',
  },
  {
    id: 'before',
    head: 'Before',
    numeric: true,
    cell: (row) => number(row.events.before),
    width: '5.5rem',
  },
  {
    id: 'devices',
    head: 'Devices',
    numeric: true,
    cell: (row) => number(row.devices.now),
    width: '5.5rem',
  },
]

const number = (value: number) => value.toLocaleString('en')

export function Shares({
  tenant,
  overview: { telemetry, from, to },
}: {
  tenant: string
  overview: Overview
}) {
  const flagColumns: Column<FlagShare>[] = [
    {
      id: 'flag',
      head: 'Flag',
      cell: ({ flag }) => (
        <Link search={{ flag, from, to }} params={{ tenant }} to="/t/$tenant/events">
          {flag}
        </Link>
      ),
    },
    ...counts,
  ]
  const versionColumns: Column<VersionShare>[] = [
    {
      id: 'version',
      head: 'SDK version',
      cell: ({ platform, sdk_version: version }) => `${version} on ${platform}`,
    },
    ...counts,
  ]
  return (
    <div className="grid gap-4 xl:grid-cols-2">
      <Panel title="Flags">
        {telemetry === null || telemetry.top_flags.length === 0 ? (
          <Empty title={telemetry === null ? 'Not known at the moment' : 'No flag was raised'} />
        ) : (
          <SmallTable
            columns={flagColumns}
            label="Flags"
            minWidth="28rem"
            rowKey={({ flag }) => flag}
            rows={telemetry.top_flags}
          />
        )}
      </Panel>
      <Panel title="SDK versions">
        {telemetry === null || telemetry.sdk_versions.length === 0 ? (
          <Empty title={telemetry === null ? 'Not known at the moment' : 'No event arrived'} />
        ) : (
          <SmallTable
            columns={versionColumns}
            label="SDK versions"
            minWidth="28rem"
            rowKey={({ platform, sdk_version: version }) => `${platform} ${version}`}
            rows={telemetry.sdk_versions}
          />
        )}
      </Panel>
    </div>
  )
}

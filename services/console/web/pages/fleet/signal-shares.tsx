/** On which share of devices each signal was detected, of all and of each SDK version. */
import { Panel } from '../../components/page.tsx'
import { SignalName } from '../../components/signal-name.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { type Fleet, toPercent, toVersionName } from './fleet-texts.ts'

type Signal = Fleet['signals'][number]

export function SignalShares({ fleet: { signals, versions } }: { fleet: Fleet }) {
  const largest = versions.filter(({ devices_over_time: line }) => line !== null)
  const columns: Column<Signal>[] = [
    {
      id: 'signal',
      head: 'Signal',
      width: '16rem',
      cell: ({ signal }) => <SignalName path={signal} />,
    },
    {
      id: 'devices',
      head: 'Devices',
      numeric: true,
      width: '6rem',
      cell: ({ devices }) => devices.toLocaleString('en'),
    },
    {
      id: 'share',
      head: 'Share',
      numeric: true,
      width: '5rem',
      cell: ({ share }) => toPercent(share),
    },
    ...largest.map(
      (version, at): Column<Signal> => ({
        id: `version ${at}`,
        head: <span title={toVersionName(version)}>{toVersionName(version)}</span>,
        numeric: true,
        cell: ({ by_version: byVersion, share }) => (
          <Share all={share} value={byVersion[at] ?? null} />
        ),
      }),
    ),
  ]
  return (
    <Panel title="Signals per version">
      {signals.length === 0 ? (
        <Empty title="No signal was detected in this time" />
      ) : (
        <Table
          columns={columns}
          heightClass="max-h-[32rem]"
          label="Share of devices with a signal, by SDK version"
          minWidth={`${28 + largest.length * 8}rem`}
          rowKey={({ signal }) => signal}
          rows={signals}
        />
      )}
    </Panel>
  )
}

/** Bold where a version has it far more often than the fleet: that is often the version's fault. */
function Share({ value, all }: { value: number | null; all: number }) {
  if (value === null) return <span className="text-muted">no data</span>
  const stands = value >= 0.05 && value > 2 * all
  return <span className={stands ? 'font-semibold text-warn' : ''}>{toPercent(value)}</span>
}

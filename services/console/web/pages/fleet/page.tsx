/** Fleet: SDK versions and platforms over time, devices, sessions, and signals per version. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { api, ok } from '../../api/client.ts'
import { buttonClasses } from '../../components/button.tsx'
import { Chart } from '../../components/chart/chart.tsx'
import type { Series } from '../../components/chart/series.ts'
import { LiveSwitch, useLive } from '../../components/live-switch.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Loaded, Skeleton } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import { Time } from '../../components/time/time.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { type Fleet, toPercent, toVersionName } from './fleet-texts.ts'
import { FleetNetworks } from './networks.tsx'
import { SignalShares } from './signal-shares.tsx'

type Version = Fleet['versions'][number]

const liveMs = 15_000
const recoveryMs = 3_000
const linesMax = 3
const toCount = (value: number) => value.toLocaleString('en')

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const { from, to } = useTimeRange()
  const live = useLive()
  const fleet = useQuery({
    queryKey: ['fleet', tenant, from, to],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/fleet', {
          params: { path: { tenant_id: tenant }, query: to === null ? { from } : { from, to } },
        }),
      ),
    // After an outage the page comes back by itself.
    refetchInterval: ({ state }) => (state.status === 'error' ? recoveryMs : live ? liveMs : false),
    placeholderData: (before) => before,
  })
  return (
    <Frame
      controls={
        <>
          <TimeRange />
          <LiveSwitch />
        </>
      }
      title="Fleet"
    >
      <Loaded query={fleet} skeleton={<Skeleton className="h-[40rem]" />}>
        {(loaded) =>
          loaded.totals.events === 0 ? (
            <Panel>
              <Empty title="No telemetry in this time">
                Choose a longer time at the top right, or send the first event.
                <Link
                  className={`${buttonClasses()} no-underline!`}
                  params={{ tenant }}
                  to="/manage/integrations/$tenant"
                >
                  How to send
                </Link>
              </Empty>
            </Panel>
          ) : (
            <Content fleet={loaded}>
              <FleetNetworks from={from} tenant={tenant} to={to} />
            </Content>
          )
        }
      </Loaded>
    </Frame>
  )
}

const colors = ['accent', 'warn', 'bad'] as const

/** @property children stand between the SDK versions and the signals */
function Content({ fleet, children }: { fleet: Fleet; children: ReactNode }) {
  const { totals } = fleet
  const times = useMemo(() => fleet.times.map((at) => Date.parse(at)), [fleet])
  const charts = useMemo(() => toCharts(fleet), [fleet])
  const isLastOpen = (times.at(-1) ?? 0) + fleet.step_seconds * 1_000 > serverNowMs()
  const tiles: [name: string, value: number][] = [
    ['Events', totals.events],
    ['Devices', totals.devices],
    ['Sessions', totals.sessions],
    ['New devices', totals.new_devices],
  ]
  return (
    <>
      <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        {tiles.map(([name, value]) => (
          <div className="rounded-lg border border-line bg-raised px-4 py-3" key={name}>
            <dt className="text-muted text-sm">{name}</dt>
            <dd className="font-semibold text-xl">{toCount(value)}</dd>
          </div>
        ))}
      </dl>
      <div className="grid gap-4 lg:grid-cols-2">
        {charts.map(({ title, series }) => (
          <Panel key={title}>
            <div className="p-4">
              <Chart isLastOpen={isLastOpen} series={series} times={times} title={title} />
            </div>
          </Panel>
        ))}
      </div>
      <Panel title="SDK versions">
        <Table
          columns={versionColumns(totals.devices)}
          heightClass="max-h-96"
          label="SDK versions"
          rowKey={toVersionName}
          rows={fleet.versions}
        />
      </Panel>
      {children}
      <SignalShares fleet={fleet} />
      <p className="text-muted text-sm">
        Events are exact. Devices and sessions are counted exactly up to tens of thousands, and
        within a percent beyond. One point is {describeStep(fleet.step_seconds)}, in UTC.
      </p>
    </>
  )
}

const describeStep = (seconds: number): string =>
  seconds >= 86_400 ? 'a day' : seconds >= 3_600 ? 'an hour' : 'five minutes'

function toCharts({
  over_time: overTime,
  platforms,
  versions,
}: Fleet): { title: string; series: Series[] }[] {
  const versionLines = versions.flatMap((version) =>
    version.devices_over_time === null
      ? []
      : [{ label: toVersionName(version), values: version.devices_over_time }],
  )
  const platformLines = platforms.map(({ platform, devices }) => ({
    label: platform || 'no platform',
    values: devices,
  }))
  return [
    { title: 'Events', series: [{ label: 'Events', values: overTime.events }] },
    {
      title: 'Devices and sessions',
      series: colored([
        { label: 'Devices', values: overTime.devices },
        { label: 'Sessions', values: overTime.sessions },
        { label: 'New devices', values: overTime.new_devices },
      ]),
    },
    { title: 'Devices by SDK version', series: colored(versionLines) },
    { title: 'Devices by platform', series: colored(platformLines) },
  ]
}

/** The first lines in distinct colours; with more lines they would repeat. */
const colored = (lines: { label: string; values: number[] }[]): Series[] =>
  lines.slice(0, linesMax).map((line, at) => ({ ...line, color: colors[at]! }))

const versionColumns = (devices: number): Column<Version>[] => [
  { id: 'version', head: 'Version', cell: toVersionName },
  {
    id: 'devices',
    head: 'Devices',
    numeric: true,
    width: '7rem',
    cell: (one) => toCount(one.devices),
  },
  {
    id: 'share',
    head: 'Share',
    numeric: true,
    width: '6rem',
    cell: (one) => toPercent(devices === 0 ? 0 : Math.min(1, one.devices / devices)),
  },
  {
    id: 'sessions',
    head: 'Sessions',
    numeric: true,
    width: '7rem',
    cell: (one) => toCount(one.sessions),
  },
  {
    id: 'events',
    head: 'Events',
    numeric: true,
    width: '7rem',
    cell: (one) => toCount(one.events),
  },
  {
    id: 'first',
    head: 'First seen',
    width: '8rem',
    cell: (one) => <Time at={one.first_seen_at} />,
  },
  { id: 'last', head: 'Last seen', width: '8rem', cell: (one) => <Time at={one.last_seen_at} /> },
]

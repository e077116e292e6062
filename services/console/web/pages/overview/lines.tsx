/** Events, actions and alerts over the period, each beside the period before. */
import { useMemo } from 'react'
import { Chart } from '../../components/chart/chart.tsx'
import type { Series } from '../../components/chart/series.ts'
import { Panel } from '../../components/page.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import type { Overview } from './overview.ts'

type Line = Overview['alerts']['line']

/** The last step is drawn as open while it lasts, so that it does not look like a fall. */
export function Lines({ overview }: { overview: Overview }) {
  const times = useMemo(() => overview.times.map((at) => Date.parse(at)), [overview])
  const charts = useMemo(() => toCharts(overview), [overview])
  const isLastOpen = (times.at(-1) ?? 0) + overview.step_seconds * 1_000 > serverNowMs()
  return (
    <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
      {charts.map(({ title, series }) => (
        <Panel key={title}>
          <div className="p-4">
            <Chart
              areDays={overview.step_seconds === 86_400}
              height={140}
              isLastOpen={isLastOpen}
              series={series}
              times={times}
              title={title}
            />
          </div>
        </Panel>
      ))}
    </div>
  )
}

function toCharts({ telemetry, alerts }: Overview): { title: string; series: Series[] }[] {
  const alertChart = { title: 'Alerts', series: toSeries(alerts.line) }
  if (telemetry === null) return [alertChart]
  const { events, REVIEW, BLOCK } = telemetry.lines
  return [
    { title: 'Events', series: toSeries(events) },
    {
      title: 'Events with REVIEW and BLOCK',
      series: [
        { label: 'REVIEW', values: REVIEW.now, color: 'warn' },
        { label: 'BLOCK', values: BLOCK.now, color: 'bad' },
        { label: 'Both before', values: REVIEW.before.map((n, at) => n + (BLOCK.before[at] ?? 0)) },
      ],
    },
    alertChart,
  ]
}

const toSeries = ({ now, before }: Line): Series[] => [
  { label: 'Now', values: now, color: 'accent' },
  { label: 'Before', values: before, color: 'warn' },
]

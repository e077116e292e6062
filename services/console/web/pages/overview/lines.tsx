/**
 * Events, actions and alerts over the period, each beside the period before: two lines in plain
 * SVG, because the first page has no room for a library of charts. Fleet has lines with axes.
 */
import { useMemo } from 'react'
import { Panel } from '../../components/page.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import type { Overview } from './overview.ts'

type Line = Overview['alerts']['line']

const [width, height] = [300, 60]
const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
const number = (value: number) => value.toLocaleString('en')

export function Lines({ overview }: { overview: Overview }) {
  const lines = useMemo(() => toLines(overview), [overview])
  const last = Date.parse(overview.times.at(-1) ?? '')
  // The last step is drawn apart while it lasts, so that it does not look like a fall.
  const isLastOpen = last + overview.step_seconds * 1_000 > serverNowMs()
  return (
    <div className="grid gap-4 sm:grid-cols-2 xl:grid-cols-4">
      {lines.map(([name, line]) => (
        <Panel key={name}>
          <figure className="grid gap-2 p-4">
            <figcaption className="font-medium">{name}</figcaption>
            <TwoLines isLastOpen={isLastOpen} line={line} name={name} />
          </figure>
        </Panel>
      ))}
    </div>
  )
}

function TwoLines({ name, line, isLastOpen }: { name: string; line: Line; isLastOpen: boolean }) {
  const most = Math.max(1, ...line.now, ...line.before)
  const last = line.now.length - 1
  const toPoint = (value: number, at: number) =>
    `${((width * at) / Math.max(1, last)).toFixed(1)},${(height - (height * value) / most).toFixed(1)}`
  const now = line.now.map(toPoint)
  return (
    <>
      <svg
        aria-label={`${name}: ${number(sum(line.now))}, ${number(sum(line.before))} before; at most ${number(most)} a step`}
        className="h-16 w-full overflow-visible"
        fill="none"
        preserveAspectRatio="none"
        role="img"
        strokeWidth="1.5"
        viewBox={`0 0 ${width} ${height}`}
      >
        <polyline
          className="stroke-muted opacity-60"
          points={line.before.map(toPoint).join(' ')}
          strokeDasharray="2 3"
          vectorEffect="non-scaling-stroke"
        />
        <polyline
          className="stroke-accent-text"
          points={(isLastOpen ? now.slice(0, -1) : now).join(' ')}
          vectorEffect="non-scaling-stroke"
        />
        {isLastOpen && (
          <polyline
            className="stroke-accent-text"
            points={now.slice(-2).join(' ')}
            strokeDasharray="1 4"
            vectorEffect="non-scaling-stroke"
          />
        )}
      </svg>
      <p className="text-muted text-sm">
        {number(sum(line.now))}
        {isLastOpen && ' so far'}, before {number(sum(line.before))} (dashed)
      </p>
    </>
  )
}

function toLines({ telemetry, alerts }: Overview): [name: string, line: Line][] {
  const lines = telemetry?.lines
  return [
    ...(lines === undefined
      ? []
      : ([
          ['Events', lines.events],
          ['Events with REVIEW', lines.REVIEW],
          ['Events with BLOCK', lines.BLOCK],
        ] as [string, Line][])),
    ['Alerts', alerts.line],
  ]
}

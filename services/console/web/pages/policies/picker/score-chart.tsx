/** Sessions by score in one strip for each outcome, with the thresholds as sliders over them. */
import { type PointerEvent, useRef } from 'react'
import { classes } from '../../../components/classes.ts'
import { toCount } from '../suggestion/figures.ts'
import {
  type FleetScores,
  moveThreshold,
  type ThresholdName,
  type Thresholds,
  thresholdMax,
  toFigures,
  toMoved,
} from './threshold-figures.ts'

/** Scores are 0 to 100: a strip has 101 bars. */
const bars = 101
const barsHeight = 40

const strips = [
  ['fraud', 'Fraud', 'fill-bad-fill'],
  ['legitimate', 'Legitimate', 'fill-good'],
  ['unlabelled', 'Unlabelled', 'fill-muted'],
] as const

export function ScoreChart({
  scores,
  thresholds,
  onMove,
}: {
  scores: FleetScores
  thresholds: Thresholds
  onMove: (thresholds: Thresholds) => void
}) {
  const area = useRef<HTMLDivElement>(null)
  const moveTo = (name: ThresholdName, to: number) => onMove(moveThreshold(thresholds, name, to))
  const toScore = (clientX: number): number => {
    const { left, width } = area.current!.getBoundingClientRect()
    return ((clientX - left) / width) * bars
  }
  return (
    <div className="mx-3 select-none">
      <div className="relative pt-14" ref={area}>
        {strips.map(([outcome, name, fill]) => (
          <Strip counts={scores.counts[outcome]} fill={fill} key={outcome} name={name} />
        ))}
        {(['review', 'block'] as const).map((name) => (
          <Line
            key={name}
            name={name}
            onMove={(to) => moveTo(name, to)}
            text={`${toFigures(scores, thresholds[name]).alerts_a_day.toFixed(1)} alerts a day`}
            toScore={toScore}
            value={thresholds[name]}
          />
        ))}
      </div>
      <div aria-hidden="true" className="mt-1 flex justify-between text-muted text-xs">
        {[0, 25, 50, 75, 100].map((score) => (
          <span key={score}>{score}</span>
        ))}
      </div>
    </div>
  )
}

/** Heights are square roots of the counts, so that rare scores are seen beside frequent ones. */
function Strip({ name, fill, counts }: { name: string; fill: string; counts: readonly number[] }) {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const highest = Math.max(1, ...counts)
  return (
    <div className="border-line border-b">
      <p className="pt-1 text-muted text-xs">
        {name}: {toCount(total)} {total === 1 ? 'session' : 'sessions'}
      </p>
      <svg
        aria-hidden="true"
        className="block h-12 w-full"
        preserveAspectRatio="none"
        viewBox={`0 0 ${bars} ${barsHeight}`}
      >
        {counts.map((count, score) => {
          const height = barsHeight * Math.sqrt(count / highest)
          return count === 0 ? null : (
            <rect
              className={fill}
              height={height}
              key={score}
              width={0.8}
              x={score + 0.1}
              y={barsHeight - height}
            />
          )
        })}
      </svg>
    </div>
  )
}

const looks = {
  review: { word: 'REVIEW', top: 'top-0', line: 'bg-warn', head: 'bg-warn-soft text-warn' },
  block: { word: 'BLOCK', top: 'top-7', line: 'bg-bad-fill', head: 'bg-bad-soft text-bad' },
} as const

function Line({
  name,
  value,
  text,
  onMove,
  toScore,
}: {
  name: ThresholdName
  value: number
  /** What it means, for screen readers. */
  text: string
  onMove: (to: number) => void
  /** The score at a place of the screen. */
  toScore: (clientX: number) => number
}) {
  const { word, top, line, head } = looks[name]
  const share = (100 * Math.min(bars, Math.max(0, value))) / bars
  const drag = ({ currentTarget, pointerId, clientX }: PointerEvent) => {
    if (currentTarget.hasPointerCapture(pointerId)) onMove(toScore(clientX))
  }
  return (
    <div
      aria-label={`${word} threshold`}
      aria-valuemax={thresholdMax[name]}
      aria-valuemin={1}
      aria-valuenow={value}
      aria-valuetext={`${value}, ${text}`}
      className="absolute inset-y-0 -ml-2 w-4 cursor-ew-resize touch-none"
      onKeyDown={(event) => {
        const to = toMoved(event.key, name, value)
        if (to === null) return
        event.preventDefault()
        onMove(to)
      }}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      role="slider"
      style={{ left: `${share}%` }}
      tabIndex={0}
    >
      <div className={classes('absolute bottom-0 left-1/2 -ml-px w-0.5', top, line)} />
      <div
        className={classes(
          'absolute flex h-6 items-center rounded px-1.5 font-medium text-xs whitespace-nowrap',
          top,
          head,
          // The head stays within the chart.
          value > bars / 2 ? 'right-1/2' : 'left-1/2',
        )}
      >
        {word} {value === 101 ? 'never' : value}
      </div>
    </div>
  )
}

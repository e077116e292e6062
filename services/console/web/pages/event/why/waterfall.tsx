/**
 * The waterfall: every reason as a bar that begins where the one before it ended, with its points,
 * what limited or lifted it, and the signals behind it. The list itself has every number, so the
 * bars are drawn for the eye alone.
 */

import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import { classes } from '../../../components/classes.ts'
import { Icon } from '../../../components/icons.tsx'
import { SignalName } from '../../../components/signal-name.tsx'
import type { Explanation } from '../explanation.ts'
import { type Bar, type Reason, toBars } from './bars.ts'
import { type Note, signalsOf, toBeside, toReasonNotes } from './evidence.ts'
import { WeightLink } from './weight-link.tsx'

type Signal = Explanation['steps']['signals'][number]
type Thresholds = Explanation['steps']['thresholds']

const scoreMax = 100
const gridClasses =
  'grid grid-cols-[minmax(0,1fr)_3.5rem] gap-x-4 @2xl:grid-cols-[16rem_1fr_3.5rem]'

export function Waterfall({
  reasons,
  score,
  action,
  thresholds,
  signals = [],
}: {
  reasons: readonly Reason[]
  score: number
  action: string
  thresholds?: Thresholds | undefined
  /** The signals of the event, for their raw values. */
  signals?: readonly Signal[] | undefined
}) {
  const { bars, unexplained } = toBars(reasons, score)
  const beside = toBeside(reasons, signals)
  return (
    <div className="@container px-4 py-3">
      <Scale thresholds={thresholds} />
      <ol aria-label="Reasons, each with its points">
        {bars.map((bar) => (
          <Row
            bar={bar}
            beside={beside.get(bar.reason.code) ?? []}
            key={bar.reason.code}
            signals={signals}
            thresholds={thresholds}
          />
        ))}
        {unexplained !== 0 && (
          <li className={classes(gridClasses, 'border-line border-t py-2')}>
            <span className="text-muted">Not explained by a reason</span>
            <span className="text-right @2xl:col-start-3">{toSigned(unexplained)}</span>
          </li>
        )}
        <li className={classes(gridClasses, 'border-line-strong border-t-2 py-2 font-semibold')}>
          <span>Risk score, {action}</span>
          <span className="text-right @2xl:col-start-3 @2xl:row-start-1">{score}</span>
          <Track
            className="col-span-2 mt-1 @2xl:col-span-1 @2xl:col-start-2 @2xl:row-start-1 @2xl:mt-0"
            from={0}
            look="total"
            thresholds={thresholds}
            to={score}
          />
        </li>
      </ol>
    </div>
  )
}

const toSigned = (points: number) => (points > 0 ? `+${points}` : String(points))

function Row({
  bar: { reason, from, to },
  beside,
  signals,
  thresholds,
}: {
  bar: Bar
  /** Sent with it and without points: what tells most stands here as well. */
  beside: readonly Signal[]
  signals: readonly Signal[]
  thresholds: Thresholds | undefined
}) {
  const flag = findFlag(reason.code)
  const paths = signalsOf(reason.evidence)
  const scored = signals.filter(({ signal }) => paths.includes(signal))
  const points = signals.length === 0 ? null : scored.reduce((sum, one) => sum + one.points, 0)
  const notes = toReasonNotes(reason, points)
  const { metric } = reason.evidence
  return (
    <li className={classes(gridClasses, 'border-line border-t py-2')}>
      <div className="min-w-0">
        <p className="break-words">
          {flag && <span className="font-medium">{flag.name} </span>}
          <span className={classes('text-sm', flag ? 'text-muted' : 'font-medium')}>
            {reason.code}
          </span>
        </p>
        {flag && <p className="text-muted text-sm">{flag.about}</p>}
      </div>
      <span className="text-right font-medium @2xl:col-start-3">{toSigned(reason.weight)}</span>
      <div className="col-span-2 min-w-0 @2xl:col-span-1 @2xl:col-start-2 @2xl:row-start-1">
        <Track className="my-1 @2xl:my-0" from={from} thresholds={thresholds} to={to} />
        <ul className="mt-1 grid gap-0.5 text-sm">
          {paths.map((path) => (
            <SignalLine
              key={path}
              path={path}
              signal={signals.find((one) => one.signal === path)}
            />
          ))}
          {beside.map((signal) => (
            <li className="flex flex-wrap items-baseline gap-x-2" key={signal.signal}>
              <SignalName path={signal.signal} />
              <code className="font-mono break-all">= {JSON.stringify(signal.value)}</code>
              <span className="ml-auto text-muted">evidence, no points</span>
            </li>
          ))}
          {typeof metric === 'string' && paths.length === 0 && (
            <li>
              <WeightLink of={metric.replaceAll('_', ' ')} weight={`velocity.${metric}`} />
            </li>
          )}
          {notes.map((note) => (
            <NoteLine key={note.text} note={note} />
          ))}
        </ul>
      </div>
    </li>
  )
}

/** A signal with its value and its points before any limit. */
function SignalLine({ path, signal }: { path: string; signal: Signal | undefined }) {
  return (
    <li className="flex flex-wrap items-baseline gap-x-2">
      <SignalName path={path} />
      <WeightLink of={path} weight={path} />
      {signal && (
        <>
          <code className="font-mono text-muted break-all">= {JSON.stringify(signal.value)}</code>
          {signal.points > 0 && <span className="ml-auto text-muted">{signal.points} points</span>}
        </>
      )}
    </li>
  )
}

const noteLooks: Record<Note['kind'], { sign: ReactNode; look: string }> = {
  limit: { sign: <Icon name="down" size={12} />, look: 'text-warn' },
  lift: {
    sign: (
      <span className="rotate-180">
        <Icon name="down" size={12} />
      </span>
    ),
    look: 'text-bad',
  },
  fact: { sign: null, look: 'text-muted' },
}

function NoteLine({ note: { kind, text } }: { note: Note }) {
  const { sign, look } = noteLooks[kind]
  return (
    <li className={classes('flex items-center gap-1.5 break-words', look)}>
      {sign}
      <span className="min-w-0">{text.split(phoneIds).map(toPart)}</span>
    </li>
  )
}

/** Between these the text stands as it is. */
const phoneIds = /(phn_[\w-]+)/

const toPart = (part: string, at: number): ReactNode =>
  phoneIds.test(part) ? <PhoneLink key={at} phoneId={part} /> : part

function PhoneLink({ phoneId }: { phoneId: string }) {
  const { tenant } = useParams({ strict: false })
  if (tenant === undefined) return phoneId
  return (
    <Link params={{ tenant, phoneId }} to="/t/$tenant/phones/$phoneId">
      {phoneId}
    </Link>
  )
}

/** The words above the thresholds' lines. */
function Scale({ thresholds }: { thresholds: Thresholds | undefined }) {
  if (thresholds === undefined) return <div className="h-5" />
  return (
    <div className={gridClasses}>
      <div
        className="relative col-span-2 h-5 text-muted text-xs @2xl:col-span-1 @2xl:col-start-2"
        role="note"
      >
        <Mark
          at={thresholds.review}
          leansLeft={thresholds.review > 30}
          text={`REVIEW ${thresholds.review}`}
        />
        <Mark
          at={thresholds.block}
          leansLeft={thresholds.block > 75}
          text={`BLOCK ${thresholds.block}`}
        />
      </div>
    </div>
  )
}

/** A word beside its line: the two lean away from each other where the page leaves them room. */
function Mark({ at, text, leansLeft }: { at: number; text: string; leansLeft: boolean }) {
  return (
    <span
      className="absolute px-1 whitespace-nowrap"
      style={leansLeft ? { right: `${scoreMax - at}%` } : { left: `${at}%` }}
    >
      {text}
    </span>
  )
}

/** One bar on the scale from 0 to 100, with the thresholds as dashed lines. */
function Track({
  from,
  to,
  thresholds,
  look = 'part',
  className,
}: {
  from: number
  to: number
  thresholds: Thresholds | undefined
  look?: 'part' | 'total'
  className?: string
}) {
  const [left, right] = from <= to ? [from, to] : [to, from]
  return (
    <svg
      aria-hidden="true"
      className={classes('h-5 w-full', className)}
      preserveAspectRatio="none"
      viewBox={`0 0 ${scoreMax} 20`}
    >
      <rect className="fill-hover" height="12" width={scoreMax} x="0" y="4" />
      <rect
        className={look === 'total' ? 'fill-text' : 'fill-accent'}
        height="12"
        // A reason of no points is still a thin line.
        width={Math.max(right - left, 0.4)}
        x={left}
        y="4"
      />
      {thresholds &&
        [thresholds.review, thresholds.block].map((at) => (
          <line
            className="stroke-muted"
            key={at}
            strokeDasharray="3 2"
            vectorEffect="non-scaling-stroke"
            x1={at}
            x2={at}
            y1="0"
            y2="20"
          />
        ))}
    </svg>
  )
}

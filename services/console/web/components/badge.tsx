/** Actions, severities and states by word, shape and colour, so that none of the three is needed. */
import type { ReactNode } from 'react'
import { type Action, type Severity, severities } from '#shared/core/scoring/score.ts'
import { classes } from './classes.ts'

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent'

const tones: Record<Tone, string> = {
  neutral: 'bg-hover text-muted',
  good: 'bg-good-soft text-good',
  warn: 'bg-warn-soft text-warn',
  bad: 'bg-bad-soft text-bad',
  accent: 'bg-accent-soft text-accent-text',
}

export function Badge({
  tone = 'neutral',
  shape,
  children,
}: {
  tone?: Tone
  shape?: ReactNode
  children: ReactNode
}) {
  return (
    <span
      className={classes(
        'inline-flex h-5 items-center gap-1 rounded px-1.5 font-medium text-xs whitespace-nowrap',
        tones[tone],
      )}
    >
      {shape}
      {children}
    </span>
  )
}

function Shape({ path }: { path: string }) {
  return (
    <svg aria-hidden="true" fill="currentColor" height="9" viewBox="0 0 10 10" width="9">
      <path d={path} />
    </svg>
  )
}

const circle = 'M5 .5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z'
const triangle = 'M5 .5l4.8 9h-9.6z'
const octagon = 'M3 .3h4l2.7 2.7v4l-2.7 2.7h-4l-2.7-2.7v-4z'

const actions: Record<Action, { tone: Tone; path: string }> = {
  ALLOW: { tone: 'good', path: circle },
  REVIEW: { tone: 'warn', path: triangle },
  BLOCK: { tone: 'bad', path: octagon },
}

/** ALLOW with a circle, REVIEW with a triangle, BLOCK with an octagon. */
export function ActionBadge({ action }: { action: string }) {
  const known = actions[action as Action]
  if (known === undefined) return <Badge>{action}</Badge>
  return (
    <Badge shape={<Shape path={known.path} />} tone={known.tone}>
      {action}
    </Badge>
  )
}

const severityTones: Tone[] = ['neutral', 'accent', 'warn', 'bad']

/** One to four bars beside the word. */
export function SeverityBadge({ severity }: { severity: string }) {
  const rank = severities.indexOf(severity.toUpperCase() as Severity)
  if (rank < 0) return <Badge>{severity}</Badge>
  const bars = (
    <svg aria-hidden="true" fill="currentColor" height="10" viewBox="0 0 12 10" width="12">
      {severities.map((name, at) => (
        <rect
          height={4 + at * 2}
          key={name}
          opacity={at <= rank ? 1 : 0.25}
          width="2"
          x={at * 3}
          y={6 - at * 2}
        />
      ))}
    </svg>
  )
  return (
    <Badge shape={bars} tone={severityTones[rank] ?? 'neutral'}>
      {severity.toUpperCase()}
    </Badge>
  )
}

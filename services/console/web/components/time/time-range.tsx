/** The time range of a page, in its URL: the last hours or days, or from one moment to another. */

import { useEffect, useState } from 'react'
import { controlClasses } from '../field.tsx'
import { useUrlSearch } from '../state/url-state.ts'
import { toIso } from './clock.ts'
import { MomentInput } from './moment-input.tsx'
import { serverNowMs } from './server-clock.ts'
import { useNowMs } from './time.tsx'

const hourMs = 3_600_000
const spans: [value: string, text: string, ms: number][] = [
  ['1h', 'Last hour', hourMs],
  ['24h', 'Last 24 hours', 24 * hourMs],
  ['7d', 'Last 7 days', 168 * hourMs],
  ['30d', 'Last 30 days', 720 * hourMs],
]
/** Offered where it is usual. */
const anyTime: (typeof spans)[number] = ['any', 'Any time', Number.POSITIVE_INFINITY]
const spansOf = (usual: string) => (usual === 'any' ? [anyTime, ...spans] : spans)

export type Range = { from: string; to: string | null }

/**
 * The range that the URL names.
 * @param usual the span without a parameter; `any` has no beginning
 */
export function useTimeRange(usual = '24h'): Range & { span: string } {
  const [search] = useUrlSearch()
  const now = useNowMs()
  if (search.from) return { span: 'own', from: search.from, to: search.to ?? null }
  const offered = spansOf(usual)
  const span =
    offered.find(([value]) => value === search.span) ?? offered.find(([v]) => v === usual)!
  // Whole minutes, so that the same answer serves for a while.
  const fromMs = Math.max(0, Math.floor((now - span[2]) / 60_000) * 60_000)
  return { span: span[0], from: toIso(fromMs), to: null }
}

export function TimeRange({ usual = '24h' }: { usual?: string }) {
  const [search, change] = useUrlSearch()
  const { span, from, to } = useTimeRange(usual)
  const choose = (value: string) => {
    if (value === 'own') {
      // The beginning of all time is no date to begin typing at.
      const begin = span === 'any' ? toIso(serverNowMs() - 24 * hourMs) : from
      change({ span: '', from: begin, to: to ?? toIso(serverNowMs()) })
    } else change({ span: value === usual ? '' : value, from: '', to: '' })
  }
  return (
    <>
      <select
        aria-label="Time range"
        className={`${controlClasses} h-8 w-auto!`}
        onChange={(event) => choose(event.target.value)}
        value={span}
      >
        {spansOf(usual).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        <option value="own">From … to …</option>
      </select>
      {search.from && (
        <OwnRange
          from={from.slice(0, minuteCharacters)}
          onChange={change}
          to={(to ?? '').slice(0, minuteCharacters)}
        />
      )}
    </>
  )
}

/** Characters of `2026-11-25T14:03`. */
const minuteCharacters = 16

/** Two moments in UTC, as their labels say. They are in force while the first is before the other. */
function OwnRange({
  from,
  to,
  onChange,
}: {
  from: string
  to: string
  onChange: (range: { from: string; to: string }) => void
}) {
  const [typed, setTyped] = useState({ from, to })
  useEffect(() => setTyped({ from, to }), [from, to])
  const isOrdered = typed.to === '' || typed.from < typed.to
  const set = (part: Partial<typeof typed>) => {
    const next = { ...typed, ...part }
    setTyped(next)
    const [fromMs, toMs] = [Date.parse(`${next.from}Z`), Date.parse(`${next.to}Z`)]
    if (next.to === '') onChange({ from: toIso(fromMs), to: '' })
    else if (fromMs < toMs) onChange({ from: toIso(fromMs), to: toIso(toMs) })
  }
  return (
    <>
      <MomentInput
        inLine
        label="From (UTC)"
        onChange={(value) => set({ from: value })}
        required
        value={typed.from}
      />
      <MomentInput
        error={isOrdered ? undefined : 'From must be before To.'}
        inLine
        label="To (UTC)"
        onChange={(value) => set({ to: value })}
        value={typed.to}
      />
    </>
  )
}

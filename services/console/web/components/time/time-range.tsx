/** The time range of a page, in its URL: the last hours or days, or from one moment to another. */

import { useEffect, useState } from 'react'
import { controlClasses } from '../field.tsx'
import { useUrlSearch } from '../state/url-state.ts'
import { toIso } from './clock.ts'
import { MomentInput } from './moment-input.tsx'
import { hourMs, type Range, spansOf, toRange, usualSpan } from './periods.ts'
import { serverNowMs } from './server-clock.ts'
import { useNowMs } from './time.tsx'

/** @param usual the span without a parameter; `any` has no beginning */
export function useTimeRange(usual = usualSpan): Range & { span: string } {
  const [search] = useUrlSearch()
  return toRange(search, usual, useNowMs())
}

export function TimeRange({ usual = usualSpan }: { usual?: string }) {
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

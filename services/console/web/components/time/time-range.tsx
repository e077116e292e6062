/** The time range of a page, in its URL: the last hours or days, or from one moment to another. */

import { controlClasses } from '../field.tsx'
import { useUrlSearch } from '../url-state.ts'
import { toIso } from './clock.ts'
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
    if (value === 'own') change({ span: '', from, to: to ?? toIso(Date.now()) })
    else change({ span: value === usual ? '' : value, from: '', to: '' })
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
        <>
          <Moment label="From" name="from" value={from} />
          <Moment label="To" name="to" value={to ?? ''} />
        </>
      )}
    </>
  )
}

/** A moment in UTC; what is typed is read as UTC, as its label says. */
function Moment({ label, name, value }: { label: string; name: string; value: string }) {
  const [, change] = useUrlSearch()
  return (
    <label className="flex items-center gap-1 text-muted text-sm">
      {label}
      <input
        className={`${controlClasses} h-8 w-auto!`}
        onChange={({ target }) => {
          const atMs = Date.parse(`${target.value}Z`)
          if (!Number.isNaN(atMs)) change({ [name]: toIso(atMs) })
        }}
        type="datetime-local"
        value={value.slice(0, 16)}
      />
      UTC
    </label>
  )
}

/** A number of a period beside the one before; the whole tile is a link to what is behind it. */
import { Link } from '@tanstack/react-router'

const routes = {
  alerts: '/t/$tenant/alerts',
  cases: '/t/$tenant/cases',
  events: '/t/$tenant/events',
  fleet: '/t/$tenant/fleet',
  signals: '/t/$tenant/signals',
} as const

const number = (value: number) => value.toLocaleString('en')

export function Tile({
  name,
  pair,
  page,
  tenant,
  search = {},
  note,
}: {
  name: string
  /** Undefined while it cannot be read, which is not zero; without `before` nothing is compared. */
  pair: { now: number; before?: number } | undefined
  /** What is behind it. */
  page: keyof typeof routes
  tenant: string
  search?: Record<string, string>
  /** Instead of a comparison. */
  note?: string | undefined
}) {
  return (
    <li>
      <Link
        className="grid h-full content-start gap-1 rounded-lg border border-line bg-raised px-3 py-3 text-text sm:px-4 no-underline! hover:bg-hover"
        search={search}
        params={{ tenant }}
        to={routes[page]}
      >
        <span className="text-muted">{name}</span>
        <span className="font-semibold text-xl">
          {pair === undefined ? 'no data' : number(pair.now)}
        </span>
        <span className="min-h-5 text-muted text-sm">
          {pair?.before !== undefined && <Change before={pair.before} now={pair.now} />}
          {note}
        </span>
      </Link>
    </li>
  )
}

function Change({ now, before }: { now: number; before: number }) {
  if (before === 0) return 'none in the period before'
  const percent = Math.round((100 * (now - before)) / before)
  const sign = percent > 0 ? '+' : percent < 0 ? '−' : '±'
  return `${sign}${number(Math.abs(percent))}% from ${number(before)}`
}

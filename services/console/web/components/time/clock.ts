/** Times as text: relative, exact with its offset, and ISO for the clipboard. Pure. */

const units: [name: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

const aheadSeconds = 5

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' })

/** `3 min. ago`, `in 2 hr.`, `12 sec. ago`; below a second `now`. */
export function toRelative(atMs: number, nowMs: number): string {
  const seconds = Math.round((atMs - nowMs) / 1_000)
  // The clock of a server is known to the second, so what has just happened may seem to come.
  if (seconds > -1 && seconds < aheadSeconds) return 'now'
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  }
  return 'now'
}

const two = (value: number) => String(Math.abs(value)).padStart(2, '0')

/**
 * `2026-11-25 14:03:09 +07:00`, in UTC or in the zone that the offset is of.
 * @param offsetMinutes east of Greenwich
 */
export function toExact(atMs: number, offsetMinutes: number): string {
  const text = new Date(atMs + offsetMinutes * 60_000).toISOString()
  const sign = offsetMinutes < 0 ? '-' : '+'
  const offset = `${sign}${two(Math.trunc(offsetMinutes / 60))}:${two(offsetMinutes % 60)}`
  return `${text.slice(0, 10)} ${text.slice(11, 19)} ${offset}`
}

export const toIso = (atMs: number): string => new Date(atMs).toISOString()

/** The periods of pages, as their URLs have them. Pure: pages and the navigation share them. */
import { toIso } from './clock.ts'

export const hourMs = 3_600_000

/** By the value of the parameter `span`. */
export const spans: readonly (readonly [value: string, text: string, ms: number])[] = [
  ['1h', 'Last hour', hourMs],
  ['24h', 'Last 24 hours', 24 * hourMs],
  ['7d', 'Last 7 days', 168 * hourMs],
  ['30d', 'Last 30 days', 720 * hourMs],
]

/** Of every page that counts in a period, so that numbers of two pages are of one period. */
export const usualSpan = '24h'

/** Offered by lists, which are of any time until one is chosen. */
const anyTime = ['any', 'Any time', Number.POSITIVE_INFINITY] as const

export const spansOf = (usual: string) => (usual === 'any' ? [anyTime, ...spans] : spans)

export type Range = { from: string; to: string | null }

type Search = { [name: string]: string | undefined }

/**
 * The range that a URL names.
 * @param usual the span without a parameter; `any` has no beginning
 */
export function toRange(search: Search, usual: string, nowMs: number): Range & { span: string } {
  if (search.from) return { span: 'own', from: search.from, to: search.to ?? null }
  const offered = spansOf(usual)
  const span =
    offered.find(([value]) => value === search.span) ?? offered.find(([value]) => value === usual)!
  return { span: span[0], from: toIso(toBeginMs(span[2], nowMs)), to: null }
}

/**
 * Where a span that ends now begins: a day or more on the hour, as whole hours are counted and read
 * at once; a shorter one on the minute, so that the same answer serves for a while.
 */
export function toBeginMs(ms: number, nowMs: number): number {
  const unit = ms < 24 * hourMs ? 60_000 : hourMs
  return Math.max(0, Math.floor((nowMs - ms) / unit) * unit)
}

/** The period that was chosen stays from page to page. */
export const keepPeriod = ({ span, from, to }: Search) => ({
  ...(span && { span }),
  ...(from && { from }),
  ...(to && { to }),
})

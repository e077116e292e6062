/**
 * One timeline of a device, a user or a phone: what several stores know of it, in one order. Pure:
 * each source reads its own entries, a page of them at most, and they are merged here.
 */
import { timelinePageMax } from '#shared/core/base/limits/entities.ts'

/** In the order in which one leads to the next: at one instant the last of them is the newest. */
export const timelineKinds = [
  'event',
  'signal',
  'alert',
  'delivery',
  'assignment',
  'note',
  'case_note',
  'disposition',
  'label',
  'list_entry',
  'correction',
] as const
export type TimelineKind = (typeof timelineKinds)[number]

/** What every entry has; `id` is unique among those of its kind. */
export type TimelineKey = { kind: TimelineKind; atMs: number; id: string }

/** The last entry of a page. */
export type TimelinePosition = TimelineKey

/** A source has to read what is before `atMs`, or at it with a lower id. */
export type TimelineBound = { atMs: number; id: string }

const rankOf = (kind: TimelineKind): number => timelineKinds.indexOf(kind)

/** Newest first; at one instant by kind, then by id, so that the order is total. */
export function compareEntries(a: TimelineKey, b: TimelineKey): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs
  if (a.kind !== b.kind) return rankOf(b.kind) - rankOf(a.kind)
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}

/**
 * Where the entries of a kind continue after a position.
 * @param toMs the end of the span, which no entry reaches
 */
export function toTimelineBound(
  kind: TimelineKind,
  { after, toMs }: { after: TimelinePosition | null; toMs: number },
): TimelineBound {
  if (after === null || after.atMs >= toMs) return { atMs: toMs, id: '' }
  if (kind === after.kind) return { atMs: after.atMs, id: after.id }
  // At the same instant the kinds of a higher rank came before it.
  return { atMs: rankOf(kind) > rankOf(after.kind) ? after.atMs : after.atMs + 1, id: '' }
}

/** Whether an entry is on the near side of a bound. */
export const isBefore = (bound: TimelineBound, entry: TimelineBound): boolean =>
  entry.atMs < bound.atMs || (entry.atMs === bound.atMs && entry.id < bound.id)

/**
 * One page of what the sources read.
 * @param parts of each source its newest entries after the position: one more than `limit`, or all
 * @returns `next` is the position of the following page; null on the last one
 */
export function mergeTimeline<Entry extends TimelineKey>(
  parts: readonly (readonly Entry[])[],
  limit: number,
): { entries: Entry[]; next: TimelinePosition | null } {
  const sorted = parts.flat().sort(compareEntries)
  const entries = sorted.slice(0, Math.min(limit, timelinePageMax))
  const last = entries.at(-1)
  if (last === undefined || sorted.length === entries.length) return { entries, next: null }
  return { entries, next: { kind: last.kind, atMs: last.atMs, id: last.id } }
}

/** The parameters of a query, `{name:Type}`, as its text has them. Pure. */

export type Parameter = { name: string; type: string }

/**
 * A comment, a text in quotes, or a parameter: what comes first in a query is what it is. What is
 * not closed goes to the end, so that the search is linear: a query can come from a link.
 */
const partPattern =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^'\\]|\\[\s\S])*(?:'|\\?$)|\{\s*(\w+)\s*:([^{}]+)\}/g

/** Each once, in their order; `tenant` is always the tenant of the page. */
export function findParameters(sql: string): Parameter[] {
  const found = new Map<string, Parameter>()
  for (const [, name, type] of sql.matchAll(partPattern)) {
    if (name !== undefined && name !== 'tenant') found.set(name, { name, type: type!.trim() })
  }
  return [...found.values()]
}

const dayMs = 86_400_000

/** What a parameter is at first: `from` is a week ago, `to` the end of this minute. */
export function toDefault(name: string, nowMs: number): string {
  if (name === 'from') return toInstantText(nowMs - 7 * dayMs)
  if (name === 'to' || name === 'as_of') return toInstantText(nowMs + minuteMs)
  return ''
}

const minuteMs = 60_000

/** `2026-11-25 14:03:00.000`, in UTC, as the views' times are. */
const toInstantText = (atMs: number): string =>
  `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')}:00.000`

/** What differs between two policy documents, as people read it. */

export type Change = { path: string; before: string | null; after: string | null }

/** What differs between two documents, by path; lists are compared as they stand. */
export function findChanges(before: unknown, after: unknown, path = ''): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (!isPlain(before) || !isPlain(after)) {
    return [{ path: path === '' ? 'all' : path, before: show(before), after: show(after) }]
  }
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key) =>
    findChanges(before[key], after[key], path === '' ? key : `${path}.${key}`),
  )
}

/** Whether a value is an object that is no list. */
export const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const show = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value))

/**
 * Finds an id in text as a word of its own: not as a part of a longer one. PostgreSQL
 * and ClickHouse both read the pattern.
 */

/** A text as it stands within a JSON string. */
export const toJsonText = (text: string): string => JSON.stringify(text).slice(1, -1)

/** A regular expression: the text, not as a part of a longer word. */
export function toWordPattern(text: string): string {
  const literal = text.replace(/[!-/:-@[-`{-~]/g, '\\$&')
  // The letters of an escape, such as a line end, belong to no word.
  return `(^|[^[:alnum:]_-]|\\\\([bfnrt]|u[0-9a-f]{4}))${literal}($|[^[:alnum:]_-])`
}

/** Free text that people write for one another: names, notes. */
import { z } from 'zod'

/**
 * Text without what Postgres cannot hold: NUL, and half of a surrogate pair, which no audit
 * record's jsonb takes. Spaces around it are removed.
 */
export function operatorText(charactersMax: number) {
  const text = z.string().trim().max(charactersMax)
  return text
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .refine((value) => value.isWellFormed(), 'must not contain a lone surrogate')
}

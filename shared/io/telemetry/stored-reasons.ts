/** Reasons as ClickHouse has them: JSON text. */
import { z } from 'zod'
import { reasonSchema } from '#shared/core/scoring/reason-schema.ts'
import type { Reason } from '#shared/core/scoring/score.ts'

/** @returns null for text that is not a list of reasons */
export function readReasons(text: string): Reason[] | null {
  try {
    const parsed = z.array(reasonSchema).safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

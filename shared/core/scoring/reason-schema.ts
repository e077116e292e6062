/** The schema of a reason. It is not beside the type, since the console's pages load no schemas. */
import { z } from 'zod'
import type { Reason } from './score.ts'

export const reasonSchema = z.object({
  code: z.string(),
  weight: z.number().int(),
  evidence: z.record(z.string(), z.unknown()),
}) satisfies z.ZodType<Reason>

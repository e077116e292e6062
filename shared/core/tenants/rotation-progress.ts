/** How far a rotation is: what each edge has confirmed, and when. */
import { z } from 'zod'

/** The two steps that edges confirm: the old secret is refused, then the new one is accepted. */
export const rotationSteps = ['old_off', 'new_on'] as const
export type RotationStep = (typeof rotationSteps)[number]

/**
 * What an edge did of a step: it has announced it, or it was silent until its lease had run out, so
 * that it refuses requests until it has announced it.
 */
const confirmationSchema = z
  .object({ outcome: z.enum(['confirmed', 'lease_expired']), at: z.string() })
  .nullable()

export const rotationProgressSchema = z.object({
  /** The step that is under way; null before the first one, and without an HMAC secret. */
  step: z.enum(rotationSteps).nullable(),
  edges: z.array(
    z.object({ edge_id: z.string(), old_off: confirmationSchema, new_on: confirmationSchema }),
  ),
  /** From the request to its end; null while it runs. */
  duration_ms: z.number().int().nullable(),
  /** Why it failed. */
  failure: z.string().nullable(),
})
export type RotationProgress = z.infer<typeof rotationProgressSchema>

/** What a rotation reports while it runs. */
export type RotationObserver = {
  begin: (step: RotationStep) => void
  /** An edge that must confirm the step, and whether it has. */
  see: (
    step: RotationStep,
    edgeId: string,
    outcome: 'waiting' | 'confirmed' | 'lease_expired',
  ) => void
}

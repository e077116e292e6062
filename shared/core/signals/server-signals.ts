/**
 * Server signals: facts that the service itself observed or verified. They travel in the head of an
 * event, so nothing in a body can set, change or remove one.
 */
import { z } from 'zod'

/** As the head of an event has them; a later edge may know more of them. */
export const serverSignalsSchema = z.object({
  attestation: z.record(z.string(), z.unknown()).optional(),
  connection: z.record(z.string(), z.unknown()).optional(),
})

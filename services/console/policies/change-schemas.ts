/** Schemas of what another policy changes for sessions. */
import { z } from 'zod'

const count = z.number().int()
const changes = {
  new: count.describe('an alert under the other policy alone'),
  gone: count.describe('no alert under the other policy'),
  stricter: count.describe('a higher action'),
  milder: count.describe('a lower action that still raises an alert'),
  unchanged: count.describe('the same highest action'),
}

export const changesSchema = z
  .object(changes)
  .describe('sessions with an alert under either policy, each counted once')

/** Of a platform, an SDK version or a flag. */
export const namedChangesSchema = z.object({ name: z.string(), ...changes })

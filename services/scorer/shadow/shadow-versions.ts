/**
 * Which shadow policies there are, from memory. A version takes effect some seconds after it is
 * set, so what was read once is right for events up to that much later; for the first that is later
 * one small question tells whether anything was changed, about once a second. A tenant without a
 * shadow is a look-up in a map. Should Postgres be away, what was known last is what decides.
 */
import { type ShadowVersion, shadowLeadMs } from '#shared/core/policies/shadow.ts'
import { listShadowVersions, readShadowChanges } from '#shared/io/policies/shadow-policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { within } from '#shared/io/process/pause.ts'

export type ShadowVersions = {
  /**
   * Makes sure of what decides events up to this instant.
   * @param receivedAtMs the latest of them
   * @throws when Postgres does not answer at once; what was known stays, and it is asked again
   */
  refresh: (receivedAtMs: number) => Promise<void>
  /** The versions of a tenant, ascending; none for nearly all. */
  of: (tenantId: string) => readonly ShadowVersion[]
  /** Whether any tenant has one. */
  any: () => boolean
}

/** What a change may take from the instant that it counts from to its commit. */
const commitMaxMs = 2_000
/** Decisions wait this long for an answer, and when there was none not again for a while. */
const answerMaxMs = 300
const retryMs = 5_000

const none: readonly ShadowVersion[] = []

/** @param nowMs the monotonic clock */
export function createShadowVersions(db: Queryable, nowMs: () => number): ShadowVersions {
  let versions = new Map<string, ShadowVersion[]>()
  let changes: number | null = null
  /** Whatever is not known yet decides no event that was received before. */
  let horizonMs = Number.NEGATIVE_INFINITY
  let retryAtMs = Number.NEGATIVE_INFINITY
  let asking = false
  const ask = async (): Promise<void> => {
    asking = true
    try {
      // Read first: a change in between is then read again, never missed.
      const latest = await readShadowChanges(db)
      if (latest.changes !== changes) versions = await listShadowVersions(db)
      changes = latest.changes
      horizonMs = latest.atMs + shadowLeadMs - commitMaxMs
    } finally {
      asking = false
    }
  }
  return {
    refresh: async (receivedAtMs) => {
      if (receivedAtMs < horizonMs || asking || nowMs() < retryAtMs) return
      retryAtMs = nowMs() + retryMs
      // What comes later is still taken; only nobody waits for it.
      if (!(await within(ask(), answerMaxMs))) {
        throw new Error(`there was no answer within ${answerMaxMs} ms`)
      }
      retryAtMs = Number.NEGATIVE_INFINITY
    },
    of: (tenantId) => versions.get(tenantId) ?? none,
    any: () => versions.size > 0,
  }
}

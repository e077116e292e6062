/**
 * Which shadow policies there are, from memory: one small question a second, asked only while there
 * are events, tells whether any was changed, and then they are read again. A tenant without a
 * shadow is a look-up in a map. Should Postgres be away, what was known last is what decides.
 */
import { type ShadowVersion, shadowLeadMs } from '#shared/core/shadow.ts'
import type { Queryable } from '#shared/io/postgres.ts'
import { listShadowVersions, readShadowChanges } from '#shared/io/shadow-policy-store.ts'

export type ShadowVersions = {
  /**
   * Asks when it is time to.
   * @throws when Postgres does not answer at once; what was known stays, and it is asked again later
   */
  refresh: () => Promise<void>
  /** The versions of a tenant, ascending; none for nearly all. */
  of: (tenantId: string) => readonly ShadowVersion[]
  /** Whether any tenant has one. */
  any: () => boolean
}

/** A third of the lead that a new version has: it is known before the first event it decides. */
const refreshMs = shadowLeadMs / 3
/** Decisions wait this long for an answer, and no more often than this when there was none. */
const answerMaxMs = 300
const retryMs = 5_000

const none: readonly ShadowVersion[] = []

/** @param nowMs the monotonic clock */
export function createShadowVersions(db: Queryable, nowMs: () => number): ShadowVersions {
  let versions = new Map<string, ShadowVersion[]>()
  let changes: number | null = null
  let nextMs = Number.NEGATIVE_INFINITY
  let asking = false
  const ask = async (): Promise<void> => {
    asking = true
    try {
      // Read first: a change in between is then read again, never missed.
      const latest = await readShadowChanges(db)
      if (latest === changes) return
      versions = await listShadowVersions(db)
      changes = latest
    } finally {
      asking = false
    }
  }
  return {
    refresh: async () => {
      if (asking || nowMs() < nextMs) return
      nextMs = nowMs() + retryMs
      await answersWithin(ask(), answerMaxMs)
      nextMs = nowMs() + refreshMs
    },
    of: (tenantId) => versions.get(tenantId) ?? none,
    any: () => versions.size > 0,
  }
}

/** What comes later is still taken; only nobody waits for it. */
async function answersWithin(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(new Error(`there was no answer within ${limitMs} ms`))
    timer = setTimeout(refuse, limitMs)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}

/**
 * A copy of all shadow policy versions in memory. A version takes effect some seconds after it is
 * set, so a copy is valid for events up to that much later. For the first later event one small
 * query, about once a second, reads whether anything changed. While Postgres is away the last copy
 * decides.
 */
import { type ShadowVersion, shadowLeadMs } from '#shared/core/policies/shadow.ts'
import { listShadowVersions, readShadowChanges } from '#shared/io/policies/shadow-policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { within } from '#shared/io/process/pause.ts'

export type ShadowVersions = {
  /**
   * Reads changes, unless the copy is valid for these events.
   * @param receivedAtMs when the latest event was received
   * @throws when Postgres does not answer in time; the copy stays
   */
  refresh: (receivedAtMs: number) => Promise<void>
  /** The versions of a tenant, ascending. */
  of: (tenantId: string) => readonly ShadowVersion[]
  /** Whether any tenant has one. */
  any: () => boolean
}

/** Longest time from the start of a change to its commit. */
const commitMaxMs = 2_000
/** How long a refresh waits for Postgres, and the pause after it did not answer. */
const answerMaxMs = 300
const retryMs = 5_000

const none: readonly ShadowVersion[] = []

/** @param nowMs the monotonic clock */
export function createShadowVersions(db: Queryable, nowMs: () => number): ShadowVersions {
  let versions = new Map<string, ShadowVersion[]>()
  let changes: number | null = null
  /** Changes that are not in the copy decide no event received before this. */
  let horizonMs = Number.NEGATIVE_INFINITY
  let retryAtMs = Number.NEGATIVE_INFINITY
  let reading = false
  const read = async (): Promise<void> => {
    reading = true
    try {
      // Read the counter first: a change in between is then read again, never missed.
      const latest = await readShadowChanges(db)
      if (latest.changes !== changes) versions = await listShadowVersions(db)
      changes = latest.changes
      horizonMs = latest.atMs + shadowLeadMs - commitMaxMs
    } finally {
      reading = false
    }
  }
  return {
    refresh: async (receivedAtMs) => {
      if (receivedAtMs < horizonMs || reading || nowMs() < retryAtMs) return
      retryAtMs = nowMs() + retryMs
      // A late answer still updates the copy.
      if (!(await within(read(), answerMaxMs))) {
        throw new Error(`Postgres did not answer within ${answerMaxMs} ms`)
      }
      retryAtMs = Number.NEGATIVE_INFINITY
    },
    of: (tenantId) => versions.get(tenantId) ?? none,
    any: () => versions.size > 0,
  }
}

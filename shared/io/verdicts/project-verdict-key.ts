/** Projects the key that edges sign verdicts with from Postgres to the tenant directory. */
import { verdictKeyEntryKey } from '#shared/core/verdicts/verdict-keys.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import {
  type Directory,
  putProven,
  readProven,
} from '#shared/io/tenants/directory/directory-entries.ts'
import { findVerdictKeyProjection } from './verdict-key-store.ts'

/**
 * Writes the entry unless it is right. It reads the directory's entry first and Postgres second, so
 * a write on that entry never replaces a newer key.
 * @returns the revision that carries the key, 0 for none; and the keys that it replaced, with which
 *   no edge signs once it has applied that revision
 * @throws when Postgres or NATS is away
 */
export async function projectVerdictKey(
  directory: Directory,
  db: Queryable,
): Promise<{ revision: number; replaced: string[]; written: boolean }> {
  for (;;) {
    const held = await directory.bucket.get(verdictKeyEntryKey)
    const { entry, replaced } = await findVerdictKeyProjection(db)
    const present = held === null ? null : readProven(directory, held)
    if (entry === null && held === null) return { revision: 0, replaced, written: false }
    const text = JSON.stringify(entry)
    if (held !== null && present?.text === text && present.byPresentKey) {
      return { revision: held.revision, replaced, written: false }
    }
    try {
      const revision = await putProven(directory, verdictKeyEntryKey, text, held?.revision ?? 0)
      return { revision, replaced, written: true }
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}

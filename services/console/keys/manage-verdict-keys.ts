/**
 * Rotation of the keys that sign verdicts. The key that begins to sign was published before, and
 * the one that it replaces stays published until its last token has expired, so every token
 * verifies with the keys of its time.
 */
import { unavailable } from '#shared/core/http/problem.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import {
  endReplacedKeys,
  listVerdictKeys,
  rotateVerdictKeys,
  type VerdictKeyView,
} from '#shared/io/verdicts/verdict-key-store.ts'
import { type KeyedDirectoryWriter, requireDirectory } from '../tenants/directory.ts'

export type VerdictKeyDeps = {
  postgres: Postgres
  sealer: Sealer
  directory: KeyedDirectoryWriter
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Makes the next key sign. When it returns, no edge signs with the key before.
 * @param wanted.revoke withdraws that key at once: its tokens verify nowhere, once copies of the
 *   keys have expired
 * @throws Problem conflict while the next key is not published for long enough; unavailable when
 *   the rotation is recorded but an edge may not have the key yet
 */
export async function rotateKeys(
  deps: VerdictKeyDeps,
  wanted: { actor: string; revoke: boolean },
): Promise<VerdictKeyView[]> {
  const { postgres, sealer, wallMs } = deps
  requireDirectory(deps.directory)
  await postgres.transaction((tx) => rotateVerdictKeys(tx, sealer, { ...wanted, nowMs: wallMs() }))
  try {
    await settleVerdictKeys(deps)
  } catch (error) {
    throw unavailable(
      'The rotation is recorded, but the edges cannot be reached: they follow as soon as NATS is ' +
        'back. Until then they sign with the key before, which stays published unless it is revoked.',
      error,
    )
  }
  return listVerdictKeys(postgres)
}

/**
 * Gives the edges the current key, and notes of the keys before that no edge signs with them.
 * @returns whether the entry of the edges was written
 * @throws when Postgres or NATS is away
 */
export async function settleVerdictKeys({
  postgres,
  directory,
  wallMs,
}: Pick<VerdictKeyDeps, 'directory' | 'wallMs'> & { postgres: Queryable }): Promise<boolean> {
  const { revision, replaced, written } = await directory.projectVerdictKey(postgres)
  if (replaced.length > 0) {
    await directory.awaitEdges(revision)
    await endReplacedKeys(postgres, replaced, wallMs())
  }
  return written
}

/**
 * The keys that sign verdicts, in Postgres: pairs with their private half sealed for edges. One is
 * current and one is next; those before stay published until their last token has expired.
 */
import { verdictKeyKeptMs } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  mayRotateAtMs,
  type VerdictJwk,
  type VerdictKeyEntry,
  type VerdictKeySet,
  type VerdictKeyState,
} from '#shared/core/verdicts/verdict-keys.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { toHeadSql, UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type Queryable, toTime } from '#shared/io/postgres/postgres.ts'
import { makeVerdictKey } from './make-verdict-key.ts'

/** A key as operators see it. Times are ISO-8601. */
export type VerdictKeyView = {
  kid: string
  state: VerdictKeyState
  created_at: string
  current_since: string | null
  replaced_at: string | null
  /** Until when it is published; null for as long as it is needed. */
  kept_until: string | null
}

type KeyRow = {
  kid: string
  state: VerdictKeyState
  created_at: Date
  current_since: Date | null
  replaced_at: Date | null
  kept_until: Date | null
}

/** The next one first, then the current one, then those before, the latest first. */
const inOrder = `array_position('{next,current,previous}', state), created_at desc, kid`

/** Every key that is still published. */
export async function listVerdictKeys(db: Queryable): Promise<VerdictKeyView[]> {
  const { rows } = await db.query<KeyRow>(
    `select kid, state, created_at, current_since, replaced_at, kept_until
     from verdict_keys order by ${inOrder}`,
  )
  return rows.map((row) => ({
    kid: row.kid,
    state: row.state,
    created_at: row.created_at.toISOString(),
    current_since: row.current_since?.toISOString() ?? null,
    replaced_at: row.replaced_at?.toISOString() ?? null,
    kept_until: row.kept_until?.toISOString() ?? null,
  }))
}

/** The keys that verify a token of this moment. @param nowMs the wall clock */
export async function readVerdictKeySet(db: Queryable, nowMs: number): Promise<VerdictKeySet> {
  const { rows } = await db.query<{ public_jwk: string }>({
    name: 'read-verdict-keys',
    text: `select public_jwk from verdict_keys
           where kept_until is null or kept_until > $1 order by ${inOrder}`,
    values: [toTime(nowMs)],
  })
  return { keys: rows.map(({ public_jwk }) => JSON.parse(public_jwk) as VerdictJwk) }
}

/**
 * Makes the keys that are missing: both at the first start.
 * @param db a transaction, or the pool: each statement is complete
 * @returns how many were made
 */
export async function ensureVerdictKeys(
  db: Queryable,
  sealer: Sealer,
  nowMs: number,
): Promise<number> {
  const { rows } = await db.query<{ state: VerdictKeyState }>(
    `select state from verdict_keys where state in ('current', 'next')`,
  )
  let made = 0
  for (const state of ['current', 'next'] as const) {
    if (rows.every((row) => row.state !== state)) made += await insertKey(db, sealer, state, nowMs)
  }
  return made
}

/** @returns 1, or 0 when another console was first */
async function insertKey(
  db: Queryable,
  sealer: Sealer,
  state: 'current' | 'next',
  nowMs: number,
): Promise<number> {
  const { jwk, privateKey } = makeVerdictKey()
  const { kid } = jwk
  const sealed = sealer.seal(privateKey, { verdictKeyId: kid, kind: 'verdict' })
  const { rowCount } = await db.query(
    `insert into verdict_keys (kid, state, public_jwk, sealed, created_at, current_since)
     values ($1, $2, $3, $4, $5, case when $2 = 'current' then $5::timestamptz end)
     on conflict do nothing`,
    [kid, state, JSON.stringify(jwk), sealed, toTime(nowMs)],
  )
  return rowCount
}

export type RotateVerdictKeys = {
  actor: string
  /** Whether the replaced key is withdrawn at once: whoever has it must not be believed. */
  revoke: boolean
  /** The wall clock, in ms since 1970. */
  nowMs: number
}

/**
 * Makes the next key the current one, and a new next key. The edges follow by `projectVerdictKey`.
 * @param tx a transaction
 * @throws Problem conflict while verifiers may not have the next key yet, unless `revoke` is set
 */
export async function rotateVerdictKeys(
  tx: Queryable,
  sealer: Sealer,
  { actor, revoke, nowMs }: RotateVerdictKeys,
): Promise<void> {
  await ensureVerdictKeys(tx, sealer, nowMs)
  const { rows } = await tx.query<{ kid: string; state: VerdictKeyState; created_at: Date }>(
    `select kid, state, created_at from verdict_keys
     where state in ('current', 'next') order by state for update`,
  )
  const current = rows.find(({ state }) => state === 'current')
  const next = rows.find(({ state }) => state === 'next')
  if (current === undefined || next === undefined) {
    throw new Problem('conflict', 'Another rotation of the verdict keys is under way.')
  }
  const fromMs = mayRotateAtMs({ createdAtMs: next.created_at.getTime() })
  if (nowMs < fromMs && !revoke) {
    throw new Problem(
      'conflict',
      `The next key is published since ${next.created_at.toISOString()}: until ` +
        `${new Date(fromMs).toISOString()} verifiers may have a copy of the keys without it. ` +
        'Rotate then, or revoke the current key now.',
    )
  }
  const at = toTime(nowMs)
  await tx.query(
    `update verdict_keys set state = 'previous', replaced_at = $2,
       kept_until = case when $3 then $2::timestamptz end
     where kid = $1`,
    [current.kid, at, revoke],
  )
  await tx.query(`update verdict_keys set state = 'current', current_since = $2 where kid = $1`, [
    next.kid,
    at,
  ])
  await insertKey(tx, sealer, 'next', nowMs)
  await insertAudit(tx, {
    actor,
    tenantId: null,
    action: 'verdict_keys.rotated',
    before: { kid: current.kid },
    after: { kid: next.kid, revoked: revoke },
  })
}

/** What the edges need, and which keys they stop to sign with once they have it. */
export type VerdictKeyProjection = {
  /** Null when there is no key. */
  entry: VerdictKeyEntry | null
  replaced: string[]
}

export async function findVerdictKeyProjection(db: Queryable): Promise<VerdictKeyProjection> {
  const { rows } = await db.query<{ kid: string; state: VerdictKeyState; sealed: string | null }>(
    `select kid, state, sealed from verdict_keys where state in ('current', 'previous')`,
  )
  const current = rows.find(({ state }) => state === 'current')
  const replaced = rows.flatMap((row) =>
    row.state === 'previous' && row.sealed !== null ? row.kid : [],
  )
  if (current === undefined) return { entry: null, replaced }
  return { entry: { kid: current.kid, private_key_sealed: current.sealed! }, replaced }
}

/**
 * Notes that no edge signs with these keys any more: their private halves are removed, and they
 * stay published until their last tokens have expired.
 */
export async function endReplacedKeys(
  db: Queryable,
  kids: readonly string[],
  nowMs: number,
): Promise<void> {
  await db.query(
    `update verdict_keys set sealed = null, kept_until = coalesce(kept_until, $2)
     where kid = any($1) and state = 'previous'`,
    [kids, toTime(nowMs + verdictKeyKeptMs)],
  )
}

/** Removes keys of which no token counts any more. @returns how many */
export async function removeExpiredVerdictKeys(db: Queryable, nowMs: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from verdict_keys where state = 'previous' and sealed is null and kept_until <= $1`,
    [toTime(nowMs)],
  )
  return rowCount
}

/** Seals private halves again under the current key. @param tx a transaction */
export async function rewrapVerdictKeys(
  tx: Queryable,
  sealer: Sealer,
): Promise<{ rewrapped: number; remaining: number }> {
  const { rows } = await tx.query<{ kid: string; sealed: string }>(
    `select kid, sealed from verdict_keys
     where sealed is not null and ${toHeadSql('sealed')} <> all($1) order by kid for update`,
    [sealer.currentHeads()],
  )
  let rewrapped = 0
  for (const { kid, sealed } of rows) {
    const owner = { verdictKeyId: kid, kind: 'verdict' } as const
    try {
      const again = sealer.seal(sealer.unseal(sealed, owner), owner)
      await tx.query('update verdict_keys set sealed = $2 where kid = $1', [kid, again])
      rewrapped++
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
    }
  }
  return { rewrapped, remaining: rows.length - rewrapped }
}

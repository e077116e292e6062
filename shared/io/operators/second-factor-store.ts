/**
 * TOTP secrets and recovery codes in Postgres. What a code may be used for once is decided by one
 * statement, so of two uses at the same time one fails.
 */

import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { toHeadSql, UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Stores a secret that is not in force until a code of it was confirmed. */
export async function setPendingTotp(
  tx: Queryable,
  operatorId: string,
  sealed: string,
): Promise<void> {
  await tx.query(
    `update operators set totp_sealed = $2, totp_last_step = null
     where operator_id = $1 and not totp_enabled`,
    [operatorId, sealed],
  )
}

/** Puts the stored secret in force. */
export async function enableTotp(tx: Queryable, operatorId: string): Promise<void> {
  await tx.query('update operators set totp_enabled = true where operator_id = $1', [operatorId])
}

/** Removes the secret and the recovery codes. */
export async function removeTotp(tx: Queryable, operatorId: string): Promise<void> {
  await tx.query(
    `update operators set totp_enabled = false, totp_sealed = null, totp_last_step = null
     where operator_id = $1`,
    [operatorId],
  )
  await tx.query('delete from operator_recovery_codes where operator_id = $1', [operatorId])
}

/** @returns false when a code of this step, or of a later one, was used before */
export async function useTotpStep(
  tx: Queryable,
  operatorId: string,
  step: number,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update operators set totp_last_step = $2
     where operator_id = $1 and coalesce(totp_last_step, 0) < $2`,
    [operatorId, step],
  )
  return rowCount === 1
}

/** Replaces all recovery codes. */
export async function setRecoveryCodes(
  tx: Queryable,
  operatorId: string,
  hashes: readonly Buffer[],
): Promise<void> {
  await tx.query('delete from operator_recovery_codes where operator_id = $1', [operatorId])
  await tx.query(
    `insert into operator_recovery_codes (operator_id, code_hash)
     select $1, unnest($2::bytea[])`,
    [operatorId, hashes],
  )
}

/** @returns false when there is no such code that is unused */
export async function useRecoveryCode(
  tx: Queryable,
  operatorId: string,
  { codeHash, nowMs }: { codeHash: Buffer; nowMs: number },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update operator_recovery_codes set used_at = $3
     where operator_id = $1 and code_hash = $2 and used_at is null`,
    [operatorId, codeHash, new Date(nowMs)],
  )
  return rowCount === 1
}

/**
 * Seals TOTP secrets again that are sealed under another key than the sealer's, or in another form.
 * @returns how many, and how many cannot be opened and stay as they are
 */
export async function rewrapTotpSecrets(
  tx: Queryable,
  sealer: Sealer,
): Promise<{ rewrapped: number; remaining: number }> {
  const { rows } = await tx.query<{ operator_id: string; totp_sealed: string }>(
    `select operator_id, totp_sealed from operators
     where totp_sealed is not null and ${toHeadSql('totp_sealed')} <> all($1)
     order by operator_id for update`,
    [sealer.currentHeads()],
  )
  let rewrapped = 0
  for (const { operator_id: operatorId, totp_sealed: sealed } of rows) {
    const owner = { operatorId, kind: 'totp' } as const
    try {
      const again = sealer.seal(sealer.unseal(sealed, owner), owner)
      await tx.query('update operators set totp_sealed = $2 where operator_id = $1', [
        operatorId,
        again,
      ])
      rewrapped++
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
    }
  }
  return { rewrapped, remaining: rows.length - rewrapped }
}

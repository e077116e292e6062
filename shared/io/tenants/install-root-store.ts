/**
 * Install roots in Postgres and the steps of their rotation. Every step raises the epoch of the
 * tenant in the same transaction, so that the edges get it. Two roots are valid at once at most.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The epochs of the valid roots of a tenant. */
export type RootEpochs = {
  current: number | null
  /** The one beside it: `next` or `previous`. */
  other: number | null
}

/** @returns false when the tenant has a root, or is gone */
export async function insertFirstRoot(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into install_roots (tenant_id, epoch, state, sealed)
     select tenant_id, 1, 'current', $2 from tenants
     where tenant_id = $1 and not exists (select from install_roots where tenant_id = $1)`,
    [tenantId, sealed],
  )
  return rowCount === 1
}

/** `insertFirstRoot` for a tenant that the edges know already. */
export async function addFirstRoot(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<boolean> {
  const isNew = await insertFirstRoot(tx, tenantId, sealed)
  if (isNew) await raiseEpoch(tx, tenantId)
  return isNew
}

/** Tenants without a root: they are older than install roots. */
export async function listTenantsWithoutRoot(db: Queryable, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from tenants t
     where not exists (select from install_roots r where r.tenant_id = t.tenant_id)
     order by tenant_id limit $1`,
    [limit],
  )
  return rows.map((row) => row.tenant_id)
}

export async function findRootEpochs(db: Queryable, tenantId: string): Promise<RootEpochs> {
  const { rows } = await db.query<RootEpochs>(
    `select max(epoch) filter (where state = 'current') as current,
       max(epoch) filter (where state in ('next', 'previous')) as other
     from install_roots where tenant_id = $1`,
    [tenantId],
  )
  return rows[0]!
}

/**
 * The first step of a rotation: the new root is valid and makes no tokens yet. It ends the previous
 * one. A step that an earlier rotation has done is not repeated.
 * @returns the epoch of the new root
 */
export async function beginRootRotation(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<number> {
  await raiseEpoch(tx, tenantId)
  const begun = await tx.query<{ epoch: number }>(
    `select epoch from install_roots where tenant_id = $1 and state = 'next'`,
    [tenantId],
  )
  if (begun.rows[0] !== undefined) return begun.rows[0].epoch
  await retirePrevious(tx, tenantId)
  const { rows } = await tx.query<{ epoch: number }>(
    `insert into install_roots (tenant_id, epoch, state, sealed)
     select $1, max(epoch) + 1, 'next', $2 from install_roots where tenant_id = $1
     returning epoch`,
    [tenantId, sealed],
  )
  return rows[0]!.epoch
}

/** The last step: the new root makes the tokens, and the one before stays valid. */
export async function finishRootRotation(tx: Queryable, tenantId: string): Promise<void> {
  await raiseEpoch(tx, tenantId)
  // Of three states two have an index that allows each once: the new row makes way for the old one.
  const { rows } = await tx.query<{ epoch: number; sealed: string; created_at: Date }>(
    `delete from install_roots where tenant_id = $1 and state = 'next'
     returning epoch, sealed, created_at`,
    [tenantId],
  )
  const next = rows[0]
  if (next === undefined) return
  await tx.query(
    `update install_roots set state = 'previous' where tenant_id = $1 and state = 'current'`,
    [tenantId],
  )
  await tx.query(
    `insert into install_roots (tenant_id, epoch, state, sealed, created_at)
     values ($1, $2, 'current', $3, $4)`,
    [tenantId, next.epoch, next.sealed, next.created_at],
  )
}

/** Ends the root beside the one that makes tokens. @returns its epoch; null when there is none */
export async function dropOtherRoot(tx: Queryable, tenantId: string): Promise<number | null> {
  const { rows } = await tx.query<{ epoch: number }>(
    `update install_roots set state = 'retired', sealed = null, retired_at = clock_timestamp()
     where tenant_id = $1 and state in ('next', 'previous') returning epoch`,
    [tenantId],
  )
  if (rows[0] === undefined) return null
  await raiseEpoch(tx, tenantId)
  return rows[0].epoch
}

/**
 * Takes the valid roots of a directory entry, which knows more than Postgres: the first one makes
 * tokens. What Postgres has beside them is retired.
 */
export async function recoverRoots(
  tx: Queryable,
  tenantId: string,
  roots: readonly { epoch: number; sealed: string }[],
): Promise<void> {
  await tx.query(
    `update install_roots set state = 'retired', sealed = null, retired_at = clock_timestamp()
     where tenant_id = $1 and state <> 'retired'`,
    [tenantId],
  )
  for (const [index, { epoch, sealed }] of roots.entries()) {
    await tx.query(
      `insert into install_roots (tenant_id, epoch, state, sealed) values ($1, $2, $3, $4)
       on conflict (tenant_id, epoch) do update
         set state = excluded.state, sealed = excluded.sealed, retired_at = null`,
      [tenantId, epoch, index === 0 ? 'current' : 'previous', sealed],
    )
  }
}

async function retirePrevious(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query(
    `update install_roots set state = 'retired', sealed = null, retired_at = clock_timestamp()
     where tenant_id = $1 and state = 'previous'`,
    [tenantId],
  )
}

async function raiseEpoch(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query('update tenants set epoch = epoch + 1 where tenant_id = $1', [tenantId])
}

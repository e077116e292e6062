/**
 * The latest rotation of each tenant in Postgres: its progress for every console, and for the
 * person who began it the new credentials, sealed, until they are kept or have expired.
 */
import { rotationMaxMs } from '#shared/core/base/limits/tenants.ts'
import {
  type RotationProgress,
  rotationProgressSchema,
} from '#shared/core/tenants/rotation-progress.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Times are ISO-8601. */
export type StoredRotation = {
  rotationId: string
  startedBy: string
  startedAt: string
  /**
   * `lost`: its console has ended. The directory reconciler undoes it, unless the new credentials
   * were in force already.
   */
  state: 'running' | 'done' | 'failed' | 'lost'
  progress: RotationProgress
  keys: { sealed: string; until: string } | null
}

type RotationId = { tenantId: string; rotationId: string }

/** Records that a rotation runs; it takes the place of the one before. */
export async function insertRotation(
  db: Queryable,
  {
    tenantId,
    rotationId,
    actor,
    progress,
  }: RotationId & { actor: string; progress: RotationProgress },
): Promise<void> {
  await db.query(
    `insert into rotations (tenant_id, rotation_id, started_by, state, progress)
     values ($1, $2, $3, 'running', $4::jsonb)
     on conflict (tenant_id) do update set
       rotation_id = excluded.rotation_id, started_by = excluded.started_by,
       started_at = clock_timestamp(), state = 'running', progress = excluded.progress,
       keys_sealed = null, keys_until = null`,
    [tenantId, rotationId, actor, JSON.stringify(progress)],
  )
}

/** Records the progress of a rotation that is still the latest. */
export async function updateRotation(
  db: Queryable,
  { tenantId, rotationId, progress }: RotationId & { progress: RotationProgress },
): Promise<void> {
  await db.query(
    `update rotations set progress = $3::jsonb
     where tenant_id = $1 and rotation_id = $2 and state = 'running'`,
    [tenantId, rotationId, JSON.stringify(progress)],
  )
}

/** Records the end of a rotation that is still the latest. @param keys null to keep none */
export async function endRotation(
  db: Queryable,
  ended: RotationId & {
    state: 'done' | 'failed'
    progress: RotationProgress
    keys: { sealed: string; keepMs: number } | null
  },
): Promise<void> {
  await db.query(
    `update rotations set state = $3, progress = $4::jsonb, keys_sealed = $5,
       keys_until = clock_timestamp() + $6 * interval '1 millisecond'
     where tenant_id = $1 and rotation_id = $2`,
    [
      ended.tenantId,
      ended.rotationId,
      ended.state,
      JSON.stringify(ended.progress),
      ended.keys?.sealed ?? null,
      ended.keys?.keepMs ?? null,
    ],
  )
}

/** The latest rotation of a tenant. @returns null when none was recorded */
export async function findRotation(
  db: Queryable,
  tenantId: string,
): Promise<StoredRotation | null> {
  const { rows } = await db.query<{
    rotation_id: string
    started_by: string
    started_at: Date
    state: StoredRotation['state']
    progress: unknown
    keys_sealed: string | null
    keys_until: Date
  }>(
    `select rotation_id, started_by, started_at, progress, keys_until,
       case when state = 'running' and started_at < now() - $2 * interval '1 millisecond'
         then 'lost' else state end as state,
       case when keys_until > now() then keys_sealed end as keys_sealed
     from rotations where tenant_id = $1`,
    [tenantId, rotationMaxMs],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    rotationId: row.rotation_id,
    startedBy: row.started_by,
    startedAt: row.started_at.toISOString(),
    state: row.state,
    progress: rotationProgressSchema.parse(row.progress),
    keys:
      row.keys_sealed === null
        ? null
        : { sealed: row.keys_sealed, until: row.keys_until.toISOString() },
  }
}

/** Removes the new credentials of a rotation. @returns whether there were any */
export async function removeRotationKeys(
  db: Queryable,
  { tenantId, rotationId }: RotationId,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update rotations set keys_sealed = null, keys_until = null
     where tenant_id = $1 and rotation_id = $2 and keys_sealed is not null`,
    [tenantId, rotationId],
  )
  return rowCount > 0
}

/** Removes the new credentials of every rotation that were not kept in time. */
export async function removeExpiredRotationKeys(db: Queryable): Promise<void> {
  await db.query(
    `update rotations set keys_sealed = null, keys_until = null where keys_until <= now()`,
  )
}

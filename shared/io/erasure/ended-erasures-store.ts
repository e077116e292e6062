/** When an erasure last ended, for processes that remember what they wrote. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** @returns ISO-8601; null where none ended, of those that are still known */
export async function readLastErasure(postgres: Queryable): Promise<string | null> {
  const { rows } = await postgres.query<{ ended_at: Date | null }>(
    'select max(ended_at) as ended_at from erasures where ended_at is not null',
  )
  return rows[0]?.ended_at?.toISOString() ?? null
}

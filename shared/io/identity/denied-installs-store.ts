/** Which installs are on the deny list of their tenant, for decisions on their phones. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type InstallName, toName } from './phone-link-store.ts'

/** Whether an install was on the deny list at an instant, as far as it has not been removed since. */
export type IsDenied = (install: InstallName, atMs: number) => boolean

type EntryRow = { tenant_id: string; id: string; created_at: Date; expires_at: Date | null }

/** Reads the entries of some installs. */
export async function readDenied(
  db: Queryable,
  installs: readonly InstallName[],
): Promise<IsDenied> {
  const { rows } = await db.query<EntryRow>({
    name: 'denied-installs',
    text: `select tenant_id, id, created_at, expires_at
           from unnest($1::text[], $2::text[]) as wanted (tenant_id, id)
           join list_entries using (tenant_id, id)
           where kind = 'device' and list = 'deny'`,
    values: [installs.map(({ tenantId }) => tenantId), installs.map(({ deviceId }) => deviceId)],
  })
  if (rows.length === 0) return () => false
  const entries = new Map(
    rows.map((row) => [toName({ tenantId: row.tenant_id, deviceId: row.id }), row]),
  )
  return (install, atMs) => {
    const entry = entries.get(toName(install))
    if (entry === undefined || entry.created_at.getTime() > atMs) return false
    return entry.expires_at === null || entry.expires_at.getTime() > atMs
  }
}

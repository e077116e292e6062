/**
 * The apps of tenants in Postgres. The edges have a projection of them: every change raises the
 * tenant's epoch, in the transaction that the calls are part of.
 */
import type { AppEntry, AppPlatform, ShownApp } from '#shared/core/installs/tenant-apps.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** An app to store; `playKeysSealed` undefined keeps what a replaced one has. */
export type StoredApp = {
  platform: AppPlatform
  id: string
  signers: readonly string[]
  team: string | null
  playKeysSealed: string | null | undefined
  allowsDevelopment: boolean
}

type Row = {
  platform: AppPlatform
  app_id: string
  signers: string[]
  team: string | null
  has_play_keys: boolean
  allows_development: boolean
  created_at: Date
}

const shownColumns = `platform, app_id, signers, team, play_keys_sealed is not null as has_play_keys,
  allows_development, created_at`

const toShown = (row: Row): ShownApp => ({
  platform: row.platform,
  id: row.app_id,
  signers: row.signers,
  team: row.team,
  play_keys: row.has_play_keys,
  development: row.allows_development,
  created_at: row.created_at.toISOString(),
})

/** The apps of a tenant by platform and id, without keys. */
export async function listApps(db: Queryable, tenantId: string): Promise<ShownApp[]> {
  const { rows } = await db.query<Row>(
    `select ${shownColumns} from tenant_apps where tenant_id = $1 order by platform, app_id`,
    [tenantId],
  )
  return rows.map(toShown)
}

/** The sealed keys of a tenant's apps by package. */
export async function listSealedPlayKeys(
  db: Queryable,
  tenantId: string,
): Promise<{ app: string; sealed: string }[]> {
  const { rows } = await db.query<{ app: string; sealed: string }>(
    `select app_id as app, play_keys_sealed as sealed from tenant_apps
     where tenant_id = $1 and play_keys_sealed is not null order by app_id`,
    [tenantId],
  )
  return rows
}

/**
 * Adds an app, or replaces the one of its platform and id.
 * @param tx a transaction under the tenant's lock
 */
export async function putApp(tx: Queryable, tenantId: string, app: StoredApp): Promise<ShownApp> {
  const { rows } = await tx.query<Row>(
    `insert into tenant_apps
       (tenant_id, platform, app_id, signers, team, play_keys_sealed, allows_development)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (tenant_id, platform, app_id) do update set
       signers = excluded.signers, team = excluded.team,
       play_keys_sealed =
         case when $8 then tenant_apps.play_keys_sealed else excluded.play_keys_sealed end,
       allows_development = excluded.allows_development
     returning ${shownColumns}`,
    [
      tenantId,
      app.platform,
      app.id,
      app.signers,
      app.team,
      app.playKeysSealed ?? null,
      app.allowsDevelopment,
      app.playKeysSealed === undefined,
    ],
  )
  await raiseEpoch(tx, tenantId)
  return toShown(rows[0]!)
}

/** @returns the app that was removed; null when there is none */
export async function removeApp(
  tx: Queryable,
  tenantId: string,
  app: { platform: AppPlatform; id: string },
): Promise<ShownApp | null> {
  const { rows } = await tx.query<Row>(
    `delete from tenant_apps where tenant_id = $1 and platform = $2 and app_id = $3
     returning ${shownColumns}`,
    [tenantId, app.platform, app.id],
  )
  if (rows[0] === undefined) return null
  await raiseEpoch(tx, tenantId)
  return toShown(rows[0])
}

/**
 * Gives a tenant the apps of its entry in the directory and no others. The epoch is the caller's.
 * @param tx a transaction
 */
export async function restoreApps(
  tx: Queryable,
  { tenant_id: tenantId, apps = [] }: { tenant_id: string; apps?: readonly AppEntry[] | undefined },
): Promise<void> {
  await tx.query('delete from tenant_apps where tenant_id = $1', [tenantId])
  await tx.query(
    `insert into tenant_apps
       (tenant_id, platform, app_id, signers, team, play_keys_sealed, allows_development)
     select $1, platform, id, coalesce(signers, '{}'), team, play_keys_sealed,
       coalesce(development, false)
     from jsonb_to_recordset($2) as apps (platform text, id text, signers text[], team text,
       play_keys_sealed text, development boolean)`,
    [tenantId, JSON.stringify(apps)],
  )
}

const raiseEpoch = (tx: Queryable, tenantId: string) =>
  tx.query('update tenants set epoch = epoch + 1 where tenant_id = $1', [tenantId])

/** SQL: the apps of tenant `t` as its entry of the directory has them; null without one. */
export const appEntriesSql = `(
  select jsonb_agg(
    case platform
      when 'android' then jsonb_strip_nulls(jsonb_build_object(
        'platform', platform, 'id', app_id, 'signers', signers,
        'play_keys_sealed', play_keys_sealed))
      else jsonb_strip_nulls(jsonb_build_object(
        'platform', platform, 'id', app_id, 'team', team,
        'development', case when allows_development then true end))
    end order by platform, app_id)
  from tenant_apps where tenant_id = t.tenant_id)`

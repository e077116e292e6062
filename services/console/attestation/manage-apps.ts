/**
 * Changes of a tenant's apps. A change and its audit row are one transaction; it returns once every
 * live edge judges evidence by the new list. Keys of the Play Console go in and never come out.
 */
import { tenantAppsMax } from '#shared/core/base/limits/attestation.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type AppPlatform,
  encodePlayKeys,
  type NewApp,
  type ShownApp,
  toSigners,
} from '#shared/core/installs/tenant-apps.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { listApps, putApp, removeApp, type StoredApp } from '#shared/io/tenants/tenant-app-store.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { type DirectoryWriter, requireRecovered } from '../tenants/directory.ts'
import { requireTenant, updateEdges } from '../tenants/manage-tenants.ts'

export type AppDeps = {
  postgres: Postgres
  leases: Leases
  directory: DirectoryWriter
  sealer: Sealer
}

type AppOwner = { tenantId: string; actor: string }

/** @throws Problem tenant_not_found */
export async function listTenantApps(
  { postgres }: Pick<AppDeps, 'postgres'>,
  tenantId: string,
): Promise<{ tenant_id: string; data: ShownApp[] }> {
  await requireTenant(postgres, tenantId)
  return { tenant_id: tenantId, data: await listApps(postgres, tenantId) }
}

/**
 * Adds an app, or replaces the one of its platform and id.
 * @throws Problem tenant_not_found; conflict when the tenant has too many; unavailable when the
 *   change is recorded but an edge may not have it yet
 */
export async function putTenantApp(
  deps: AppDeps,
  { tenantId, actor }: AppOwner,
  app: NewApp,
): Promise<ShownApp & { tenant_id: string }> {
  const stored = toStored(deps.sealer, tenantId, app)
  return withTenantLease(deps.leases, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    const shown = await session.transaction(async (tx) => {
      const present = await listApps(tx, tenantId)
      const before = present.find(({ platform, id }) => platform === app.platform && id === app.id)
      if (before === undefined && present.length >= tenantAppsMax) {
        throw new Problem('conflict', `A tenant has at most ${tenantAppsMax} apps.`)
      }
      const after = await putApp(tx, tenantId, stored)
      const action = before === undefined ? 'app.added' : 'app.replaced'
      const was = before === undefined ? {} : { before: toAudited(before) }
      const arePlayKeysNew = stored.playKeysSealed !== null && stored.playKeysSealed !== undefined
      await insertAudit(tx, {
        actor,
        tenantId,
        action,
        ...was,
        after: { ...toAudited(after), ...(arePlayKeysNew ? { play_keys_set: true } : {}) },
      })
      return after
    })
    await updateEdges(deps, session, tenantId)
    return { tenant_id: tenantId, ...shown }
  })
}

/**
 * Removes an app: once it returns, no edge verifies evidence of it.
 * @throws Problem tenant_not_found, app_not_found; unavailable as `putTenantApp`
 */
export async function removeTenantApp(
  deps: AppDeps,
  { tenantId, actor }: AppOwner,
  app: { platform: AppPlatform; id: string },
): Promise<{ tenant_id: string; platform: AppPlatform; id: string }> {
  await withTenantLease(deps.leases, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    await session.transaction(async (tx) => {
      const before = await removeApp(tx, tenantId, app)
      if (before === null) {
        const { platform, id } = app
        throw new Problem('app_not_found', `Tenant ${tenantId} has no ${platform} app ${id}.`)
      }
      await insertAudit(tx, { actor, tenantId, action: 'app.removed', before: toAudited(before) })
    })
    await updateEdges(deps, session, tenantId)
  })
  return { tenant_id: tenantId, ...app }
}

const toAudited = ({ created_at: _, ...app }: ShownApp) => app

function toStored(sealer: Sealer, tenantId: string, app: NewApp): StoredApp {
  if (app.platform === 'ios') {
    const { platform, id, team, development } = app
    const allowsDevelopment = development
    return { platform, id, signers: [], team, playKeysSealed: null, allowsDevelopment }
  }
  const { platform, id, play_keys: keys } = app
  const owner = { tenantId, kind: 'play' as const }
  return {
    platform,
    id,
    signers: toSigners(app.signers),
    team: null,
    playKeysSealed: keys ? sealer.seal(encodePlayKeys(id, keys), owner) : keys,
    allowsDevelopment: false,
  }
}

/**
 * Named API keys of a tenant, with scopes. The plain key is in one answer and nowhere else; only
 * its hash is stored.
 */
import { canChange } from '#shared/core/approvals/four-eyes.ts'
import { apiKeysMax } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import {
  type ApiKeyView,
  insertNamedKey,
  listNamedKeys,
  removeNamedKey,
} from '#shared/io/api-keys/api-key-store.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { type Maker, makeApiKey } from './credentials.ts'
import { requireTenant } from './manage-tenants.ts'

export type KeyDeps = Maker & { postgres: Postgres }

/** The only time that the key is shown. */
type CreatedKey = ApiKeyView & { tenant_id: string; api_key: string }

/**
 * Creates a key.
 * @throws Problem tenant_not_found, key_exists, conflict when the tenant has too many,
 *   approval_required
 */
export async function createKey(
  deps: KeyDeps,
  wanted: {
    tenantId: string
    name: string
    scopes: readonly ApiKeyScope[]
    actor: string
    approval?: Approval | undefined
  },
): Promise<CreatedKey> {
  const { tenantId, name, scopes, actor, approval } = wanted
  const { environment } = await requireTenant(deps.postgres, tenantId)
  const { plain, stored } = makeApiKey(deps, environment)
  const view = await deps.postgres.transaction(async (tx) => {
    if (canChange(scopes)) await claimChange(tx, { tenantId, kind: 'api_key', approval, actor })
    const made = await insertNamedKey(tx, {
      tenantId,
      name,
      scopes,
      stored,
      createdBy: actor,
      approvedBy: approval?.approvedBy ?? null,
      most: apiKeysMax,
    })
    if (made === null) {
      throw new Problem('key_exists', `Tenant ${tenantId} has a key ${name} already.`)
    }
    if (made === 'full') {
      throw new Problem('conflict', `A tenant has at most ${apiKeysMax} named keys.`)
    }
    const after = { name, scopes, last4: made.last4 }
    await insertAudit(tx, { actor, tenantId, action: 'api_key.created', after })
    return made
  })
  return { tenant_id: tenantId, api_key: plain, ...view }
}

/** @throws Problem tenant_not_found */
export async function listKeys(
  deps: KeyDeps,
  tenantId: string,
): Promise<{ tenant_id: string; data: ApiKeyView[] }> {
  await requireTenant(deps.postgres, tenantId)
  return { tenant_id: tenantId, data: await listNamedKeys(deps.postgres, tenantId) }
}

/**
 * Removes a key: once this has returned, no new call with it succeeds and none changes anything.
 * @throws Problem tenant_not_found, key_not_found
 */
export async function removeKey(
  deps: KeyDeps,
  wanted: { tenantId: string; name: string; actor: string },
): Promise<{ tenant_id: string; name: string }> {
  const { tenantId, name, actor } = wanted
  await requireTenant(deps.postgres, tenantId)
  await deps.postgres.transaction(async (tx) => {
    const removed = await removeNamedKey(tx, tenantId, name)
    if (removed === null) {
      throw new Problem('key_not_found', `Tenant ${tenantId} has no key ${name}.`)
    }
    const before = { name, scopes: removed.scopes, last4: removed.last4 }
    await insertAudit(tx, { actor, tenantId, action: 'api_key.removed', before })
  })
  return { tenant_id: tenantId, name }
}

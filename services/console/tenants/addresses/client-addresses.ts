/** Which address of a tenant's clients counts, whether events keep it, and the key of its hash. */
import type { ClientAddress } from '#shared/core/tenants/client-address.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import {
  addAddressKey,
  listTenantsWithoutAddressKey,
} from '#shared/io/tenants/address-key-store.ts'
import { tryTenantLock, withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type Maker, makeAddressKey } from '../credentials.ts'
import { isBehind, projectCurrentState, requireRecovered } from '../directory.ts'
import { type ManageDeps, requireTenant, updateEdges } from '../manage-tenants.ts'

type AddressDeps = Pick<ManageDeps, 'locks' | 'directory'>
type Wanted = { tenantId: string; actor: string }

/**
 * Sets which address of the tenant's clients counts, at every edge when it returns. Repeating it is
 * harmless and waits for the edges again.
 * @throws Problem tenant_not_found; unavailable when the change is recorded but an edge may not
 *   have it yet
 */
export async function setClientAddress(
  deps: AddressDeps,
  { address, ...wanted }: Wanted & { address: ClientAddress },
): Promise<{ tenant_id: string; client_address: ClientAddress }> {
  await changeSetting(deps, wanted, async (tx, before) => {
    if (!(await createTenantStore(tx).setClientAddress(wanted.tenantId, address))) return
    await insertAudit(tx, {
      ...wanted,
      action: 'tenant.client_address_set',
      before: { client_address: before.client_address },
      after: { client_address: address },
    })
  })
  return { tenant_id: wanted.tenantId, client_address: address }
}

/**
 * Sets whether events of the tenant keep the full address of their client. Events that have one
 * keep it until they expire.
 * @throws Problem as `setClientAddress`
 */
export async function setStoreClientAddress(
  deps: AddressDeps,
  { stores, ...wanted }: Wanted & { stores: boolean },
): Promise<{ tenant_id: string; store_client_address: boolean }> {
  await changeSetting(deps, wanted, async (tx) => {
    if (!(await createTenantStore(tx).setStoreClientAddress(wanted.tenantId, stores))) return
    await insertAudit(tx, {
      ...wanted,
      action: 'tenant.store_client_address_set',
      before: { store_client_address: !stores },
      after: { store_client_address: stores },
    })
  })
  return { tenant_id: wanted.tenantId, store_client_address: stores }
}

type Before = Awaited<ReturnType<typeof requireTenant>>

async function changeSetting(
  deps: AddressDeps,
  { tenantId }: Wanted,
  change: (tx: Queryable, before: Before) => Promise<void>,
): Promise<void> {
  await withTenantLock(deps.locks, tenantId, async (session) => {
    const before = await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    await session.transaction((tx) => change(tx, before))
    await updateEdges(deps, session, tenantId)
  })
}

/** How many tenants get their key in one round. */
const keysMax = 100

/**
 * Gives tenants that are older than address keys theirs.
 * @returns how many; as many as a round takes when there may be more
 */
export async function addAddressKeys(deps: AddressDeps & Maker): Promise<number> {
  let added = 0
  for (const tenantId of await listTenantsWithoutAddressKey(deps.locks.work, keysMax)) {
    const done = await tryTenantLock(deps.locks, tenantId, async (session) => {
      if (await isBehind(deps.directory, session, tenantId)) return false
      const isNew = await session.transaction(async (tx) => {
        if (!(await addAddressKey(tx, tenantId, makeAddressKey(deps, tenantId)))) return false
        await insertAudit(tx, { actor: 'system', tenantId, action: 'address_key.created' })
        return true
      })
      if (isNew) await projectCurrentState(deps.directory, session, tenantId)
      return isNew
    })
    if (done) added++
  }
  return added
}

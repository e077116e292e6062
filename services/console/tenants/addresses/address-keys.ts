/** The keys under which addresses are hashed, of tenants that have none yet. */
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import {
  addAddressKey,
  listTenantsWithoutAddressKey,
} from '#shared/io/tenants/address-key-store.ts'
import { tryTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { type Maker, makeAddressKey } from '../credentials.ts'
import { isBehind, projectCurrentState } from '../directory.ts'
import type { ManageDeps } from '../manage-tenants.ts'

type AddressDeps = Pick<ManageDeps, 'leases' | 'directory'>

/** How many tenants get their key in one round. */
const keysMax = 100

/**
 * Gives tenants that are older than address keys theirs.
 * @returns how many; as many as a round takes when there may be more
 */
export async function addAddressKeys(deps: AddressDeps & Maker): Promise<number> {
  let added = 0
  for (const tenantId of await listTenantsWithoutAddressKey(deps.leases.work, keysMax)) {
    const done = await tryTenantLease(deps.leases, tenantId, async (session) => {
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

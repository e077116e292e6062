/**
 * Install roots of a tenant, and whether its own secret signs telemetry. A rotation makes the new
 * root known to every edge before any edge makes a token with it: no install is refused meanwhile.
 * The root before stays valid until it is dropped, or until the next rotation.
 */
import type { RotatedRoot } from '#shared/core/installs/rotated-root.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Session } from '#shared/io/postgres/postgres.ts'
import {
  addFirstRoot,
  beginRootRotation,
  dropOtherRoot,
  findRootEpochs,
  finishRootRotation,
  insertFirstRoot,
  listTenantsWithoutRoot,
} from '#shared/io/tenants/install-root-store.ts'
import { tryTenantLease, withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { type Maker, makeInstallRoot } from '../credentials.ts'
import { isBehind, projectCurrentState, requireDirectory, requireRecovered } from '../directory.ts'
import { changeSetting, type ManageDeps, requireTenant, updateEdges } from '../manage-tenants.ts'

type RootDeps = Pick<ManageDeps, 'leases' | 'directory'>
type Wanted = { tenantId: string; actor: string; approval?: Approval | undefined }

/**
 * Makes a new root, which every edge knows when it returns. Repeating it after a failure goes on
 * where that one ended.
 * @throws Problem tenant_not_found, conflict, approval_required, unavailable when an edge may not
 *   know it yet
 */
export async function rotateInstallRoot(
  deps: RootDeps & Maker,
  { tenantId, actor, approval }: Wanted,
): Promise<RotatedRoot> {
  return withTenantLease(deps.leases, tenantId, async (session) => {
    await requireChangeable(deps, session, tenantId)
    await session.transaction(async (tx) => {
      await claimChange(tx, { tenantId, kind: 'install_root', approval, actor })
      const before = await findRootEpochs(tx, tenantId)
      if (before.current === null) {
        await insertFirstRoot(tx, tenantId, makeInstallRoot(deps, tenantId))
      }
      await beginRootRotation(tx, tenantId, makeInstallRoot(deps, tenantId))
      const after = await findRootEpochs(tx, tenantId)
      await insertAudit(tx, {
        actor,
        tenantId,
        action: 'install_root.rotation_begun',
        before,
        after,
      })
    })
    await updateEdges(deps, session, tenantId)
    await session.transaction(async (tx) => {
      await finishRootRotation(tx, tenantId)
      const after = await findRootEpochs(tx, tenantId)
      await insertAudit(tx, { actor, tenantId, action: 'install_root.rotated', after })
    })
    return toRotated(deps, session, tenantId)
  })
}

/**
 * Ends the root beside the one that makes tokens: installs that have not renewed are refused at
 * every edge when it returns. Repeating it is harmless.
 * @throws Problem as `rotateInstallRoot`
 */
export async function dropOldInstallRoot(
  deps: RootDeps,
  { tenantId, actor, approval }: Wanted,
): Promise<RotatedRoot> {
  return withTenantLease(deps.leases, tenantId, async (session) => {
    await requireChangeable(deps, session, tenantId)
    await session.transaction(async (tx) => {
      await claimChange(tx, { tenantId, kind: 'install_root', approval, actor })
      const dropped = await dropOtherRoot(tx, tenantId)
      if (dropped === null) return
      const before = { epoch: dropped }
      await insertAudit(tx, { actor, tenantId, action: 'install_root.dropped', before })
    })
    return toRotated(deps, session, tenantId)
  })
}

/**
 * Switches telemetry that is signed with the tenant's own secret off or on. Off, every edge refuses
 * it when the call returns. Registrations go on.
 * @throws Problem as `rotateInstallRoot`
 */
export async function setSharedSecret(
  deps: RootDeps,
  { tenantId, actor, off, approval }: Wanted & { off: boolean },
): Promise<{ tenant_id: string; shared_secret_off: boolean }> {
  requireDirectory(deps.directory)
  const action = off ? 'shared_secret.switched_off' : 'shared_secret.switched_on'
  const guarded = { kind: 'shared_secret', approval } as const
  const setting = { name: 'shared_secret_off', value: off, action, guarded } as const
  await changeSetting(deps, { tenantId, actor }, setting)
  return { tenant_id: tenantId, shared_secret_off: off }
}

/** How many tenants get their first root in one round. */
const firstRootsMax = 100

/**
 * Gives tenants that are older than install roots their first one.
 * @returns how many; as many as a round takes when there may be more
 */
export async function addFirstRoots(deps: RootDeps & Maker): Promise<number> {
  let added = 0
  const waiting = await listTenantsWithoutRoot(deps.leases.work, firstRootsMax)
  for (const tenantId of waiting) {
    const done = await tryTenantLease(deps.leases, tenantId, async (session) => {
      if (await isBehind(deps.directory, session, tenantId)) return false
      const isNew = await session.transaction(async (tx) => {
        const root = makeInstallRoot(deps, tenantId)
        if (!(await addFirstRoot(tx, tenantId, root))) return false
        const after = { epoch: 1 }
        await insertAudit(tx, { actor: 'system', tenantId, action: 'install_root.created', after })
        return true
      })
      if (isNew) await projectCurrentState(deps.directory, session, tenantId)
      return isNew
    })
    if (done) added++
  }
  return added
}

async function requireChangeable(
  deps: RootDeps,
  session: Session,
  tenantId: string,
): Promise<void> {
  requireDirectory(deps.directory)
  await requireTenant(session, tenantId)
  await requireRecovered(deps.directory, session, tenantId)
}

async function toRotated(deps: RootDeps, session: Session, tenantId: string): Promise<RotatedRoot> {
  const edges = await updateEdges(deps, session, tenantId)
  const { current, other } = await findRootEpochs(session, tenantId)
  return {
    tenant_id: tenantId,
    epoch: current,
    previous_epoch: other,
    confirmed_edges: edges.confirmed,
    lease_expired_edges: edges.leaseExpired,
  }
}

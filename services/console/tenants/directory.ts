/**
 * Writes the tenant directory: projects a tenant's state from Postgres to the edges, and waits
 * until each edge has applied it or rejects requests.
 */
import { leaseMarginMs, leaseMs } from '#shared/core/base/limits/tenants.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { openDirectory } from '#shared/io/tenants/directory/directory-entries.ts'
import {
  awaitEdges,
  type EdgeListener,
  type EdgesWaited,
  findProvenEpoch,
  projectTenant,
} from '#shared/io/tenants/directory/tenant-directory.ts'
import { createTenantStore, type Projection } from '#shared/io/tenants/tenant-store.ts'
import { isUndone } from '#shared/io/tenants/undone-creations.ts'
import { projectVerdictKey } from '#shared/io/verdicts/project-verdict-key.ts'

export type DirectoryWriter = {
  /** Whether NATS answers right now. */
  connected: () => boolean
  /**
   * The epoch that the directory has of a tenant; null for none, or while NATS is away.
   */
  findEpoch: (tenantId: string) => Promise<number | null>
  /** @returns the revision that carries this state */
  project: (projection: Projection) => Promise<number>
  /** Returns once every edge has applied the revision, or once its lease has expired. */
  awaitEdges: (revision: number, onEdge?: EdgeListener) => Promise<EdgesWaited>
}

/** The same, and what gives the edges the current key of verdicts where they do not have it. */
export type KeyedDirectoryWriter = DirectoryWriter & {
  projectVerdictKey: (db: Queryable) => ReturnType<typeof projectVerdictKey>
}

/**
 * Creates the writer.
 * @param findNats the connection; null before the first one
 * @param sealer its keys sign the entries
 * @param nowMs the monotonic clock
 */
export function createDirectoryWriter(
  findNats: () => Nats | null,
  sealer: Sealer,
  nowMs: () => number,
): KeyedDirectoryWriter {
  const requireNats = () => {
    const nats = findNats()
    if (nats !== null) return nats
    throw unavailable('NATS is not connected.')
  }
  return {
    connected: () => findNats()?.connected() ?? false,
    findEpoch: async (tenantId) => {
      const nats = findNats()
      if (nats?.connected() !== true) return null
      try {
        return await findProvenEpoch(await openDirectory(nats, sealer), tenantId)
      } catch (error) {
        throw unavailable('The tenant directory cannot be read. Nothing was changed.', error)
      }
    },
    project: async ({ entry, policy }) =>
      projectTenant(await openDirectory(requireNats(), sealer), entry, policy),
    projectVerdictKey: async (db) =>
      projectVerdictKey(await openDirectory(requireNats(), sealer), db),
    awaitEdges: (revision, onEdge) =>
      awaitEdges({
        nats: requireNats(),
        sealer,
        revision,
        nowMs,
        leaseMs,
        marginMs: leaseMarginMs,
        onEdge,
      }),
  }
}

/** Rejects a change, before anything is written, while the edges cannot be updated. */
export function requireDirectory(directory: DirectoryWriter): void {
  if (directory.connected()) return
  throw unavailable('The edges cannot be updated: NATS is not connected. Nothing was changed.')
}

/**
 * Refuses a change of a tenant whose state in Postgres is older than the directory's: an operator
 * recovers it first, so that no replaced secret comes back. Call it under the tenant's lock, before
 * anything changes.
 * @throws Problem recovery_pending
 */
export async function requireRecovered(
  directory: DirectoryWriter,
  db: Queryable,
  tenantId: string,
): Promise<void> {
  if (!(await isBehind(directory, db, tenantId))) return
  throw new Problem(
    'recovery_pending',
    `Postgres knows an older state of tenant ${tenantId} than the edges: it was put back. An ` +
      'administrator looks at `di recovery list` and confirms it first.',
  )
}

/** Whether the directory knows a newer state of a tenant than Postgres. */
export async function isBehind(
  directory: DirectoryWriter,
  db: Queryable,
  tenantId: string,
): Promise<boolean> {
  const epoch = await directory.findEpoch(tenantId)
  if (epoch === null) return false
  const projection = await createTenantStore(db).findProjection(tenantId)
  if (projection !== null) return epoch > projection.entry.epoch
  return !(await isUndone(db, tenantId))
}

/**
 * Projects the current state of a tenant.
 * @returns the revision to wait for
 */
export async function projectCurrentState(
  directory: DirectoryWriter,
  db: Queryable,
  tenantId: string,
): Promise<number> {
  const projection = await createTenantStore(db).findProjection(tenantId)
  if (projection === null) throw tenantNotFound(tenantId)
  return directory.project(projection)
}

/** The problem of an unknown tenant. */
export function tenantNotFound(tenantId: string): Problem {
  return new Problem('tenant_not_found', `There is no tenant ${tenantId}.`)
}

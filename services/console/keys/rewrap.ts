/**
 * Rotation of MASTER_KEY, and the switch to the present form of keys: seals every stored secret
 * again under the current keys, tenant by tenant under the tenant's lock, and updates the edges,
 * which open both while both keys are set. A call continues an earlier one, however that ended.
 * Concurrent calls share the work.
 */
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { rewrapProposals } from '#shared/io/approvals/proposal-store.ts'
import { rewrapErasures } from '#shared/io/erasure/erasure-job-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { rewrapTotpSecrets } from '#shared/io/operators/second-factor-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { StaleEntryError } from '#shared/io/tenants/directory/tenant-directory.ts'
import {
  countSealed,
  listTenantsToRewrap,
  rewrapTenant,
} from '#shared/io/tenants/sealed-secret-store.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { rewrapVerdictKeys } from '#shared/io/verdicts/verdict-key-store.ts'
import {
  type KeyedDirectoryWriter,
  requireDirectory,
  requireRecovered,
} from '../tenants/directory.ts'
import { beginSwitch, endSwitch, type SwitchDeps } from './switch-keys.ts'

export type RewrapDeps = SwitchDeps & {
  postgres: Postgres
  /** Connections for changes that hold a tenant's lock. */
  leases: Leases
  sealer: Sealer
  directory: KeyedDirectoryWriter
  /** Tenants whose entry at the edges is sealed or proven under another key than the sealer's. */
  listTenantsToReproject: () => Promise<string[]>
  /** Proves the other entries of the directory again. @returns how many are left */
  proveOthersAgain: () => Promise<number>
  log: Log
  /** The monotonic clock. */
  nowMs: () => number
  onRewrap: (outcome: 'rewrapped' | 'failed', secrets: number) => void
}

export type RewrapResult = {
  /** Secrets that this call sealed under the current key. */
  rewrapped: number
  /** Secrets that had the current key before. */
  already: number
  /** Tenants with a sealed secret. */
  tenants: number
  /**
   * Tenants, operators, erasures and verdict keys left for another call; 0 when the previous key is
   * not needed.
   */
  remaining: number
  duration_ms: number
}

/** The longest time of a call; the rest is `remaining`. */
const callMaxMs = 20_000
/** Concurrent tenants: each uses one of the ten connections for changes. */
const concurrentTenants = 4

/**
 * Seals secrets again that have another key. When it returns, every edge has them.
 * @throws Problem unavailable when the edges or Postgres cannot be reached: what was done stays
 */
export async function rewrapSecrets(
  deps: RewrapDeps,
  { actor, callMs = callMaxMs }: { actor: string; callMs?: number },
): Promise<RewrapResult> {
  const { postgres, directory, sealer, nowMs } = deps
  const startedMs = nowMs()
  const inTime = () => nowMs() - startedMs < callMs
  requireDirectory(directory)
  await beginSwitch(deps)
  const { already, tenants } = await countSealed(postgres, sealer.currentHeads())
  let rewrapped = 0
  let revision = 0
  let remaining = 0
  const count = (others: { rewrapped: number; remaining: number }) => {
    deps.onRewrap('rewrapped', others.rewrapped)
    if (others.remaining > 0) deps.onRewrap('failed', others.remaining)
    rewrapped += others.rewrapped
    remaining += others.remaining
  }
  const project = async (session: Session, tenantId: string) => {
    const projected = await projectAgain(deps, session, tenantId)
    revision = Math.max(revision, projected)
  }
  const pending = await listTenantsToRewrap(postgres, sealer.currentHeads())
  await forEachConcurrently(pending, inTime, async (tenantId) => {
    const done = await rewrapOne(deps, { tenantId, actor }, project)
    rewrapped += done
  })
  // Tenants of an earlier call that was interrupted between Postgres and the edges.
  const undone = new Set(await listTenantsToRewrap(postgres, sealer.currentHeads()))
  const stale = (await readDirectory(deps.listTenantsToReproject)).filter(
    (tenantId) => !undone.has(tenantId),
  )
  await forEachConcurrently(stale, inTime, (tenantId) =>
    withTenantLease(deps.leases, tenantId, (session) => project(session, tenantId)),
  )
  count(await postgres.transaction((tx) => rewrapVerdictKeys(tx, sealer)))
  const { revision: verdictRevision } = await readDirectory(() =>
    directory.projectVerdictKey(postgres),
  )
  revision = Math.max(revision, verdictRevision)
  remaining += await readDirectory(deps.proveOthersAgain)
  if (revision > 0) await directory.awaitEdges(revision)
  for (const rewrapOthers of [rewrapTotpSecrets, rewrapErasures, rewrapProposals]) {
    count(await postgres.transaction((tx) => rewrapOthers(tx, sealer)))
  }
  const left = new Set([
    ...(await listTenantsToRewrap(postgres, sealer.currentHeads())),
    ...(await readDirectory(deps.listTenantsToReproject)),
  ])
  const answer = { rewrapped, already, tenants, remaining: left.size + remaining }
  if (answer.remaining === 0) await endSwitch(deps)
  const after = { ...answer, key_id: sealer.keyId }
  await insertAudit(postgres, { actor, tenantId: null, action: 'secrets.rewrapped', after })
  return { ...answer, duration_ms: Math.round(nowMs() - startedMs) }
}

/**
 * @returns the number of secrets sealed again; a tenant that fails is left unchanged
 */
async function rewrapOne(
  deps: RewrapDeps,
  wanted: { tenantId: string; actor: string },
  project: (session: Session, tenantId: string) => Promise<void>,
): Promise<number> {
  const { tenantId } = wanted
  try {
    return await withTenantLease(deps.leases, tenantId, async (session) => {
      await requireRecovered(deps.directory, session, tenantId)
      const done = await session.transaction((tx) => rewrapTenant(tx, deps.sealer, wanted))
      deps.onRewrap('rewrapped', done)
      if (done > 0) await project(session, tenantId)
      return done
    })
  } catch (error) {
    const skipped = error instanceof UnsealError || isConflict(error)
    deps.onRewrap('failed', 1)
    if (!skipped) throw error
    deps.log.error({ err: error, tenantId }, 'the secrets of a tenant could not be sealed again')
    return 0
  }
}

/** Another change kept the tenant's lock for too long, or an operator must recover the tenant. */
const isConflict = (error: unknown) =>
  error instanceof Problem && ['conflict', 'recovery_pending'].includes(error.code)

/** @returns the revision to wait for; 0 when there is nothing to wait for */
async function projectAgain(deps: RewrapDeps, session: Session, tenantId: string): Promise<number> {
  const projection = await createTenantStore(session).findProjection(tenantId)
  if (projection === null) return 0
  try {
    return await deps.directory.project(projection)
  } catch (error) {
    // A later state was projected meanwhile. If it is wrong, the directory reconciler repairs it.
    if (error instanceof StaleEntryError) return 0
    throw unavailable('The edges cannot be updated. Finished tenants stay; repeat the call.', error)
  }
}

async function readDirectory<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw unavailable(
      'The tenant directory cannot be read. Finished tenants stay; repeat the call.',
      error,
    )
  }
}

async function forEachConcurrently(
  items: readonly string[],
  inTime: () => boolean,
  work: (item: string) => Promise<void>,
): Promise<void> {
  let next = 0
  const failures: unknown[] = []
  const worker = async () => {
    while (next < items.length && inTime() && failures.length === 0) {
      const item = items[next++]!
      await work(item).catch((error: unknown) => failures.push(error))
    }
  }
  // Wait for all workers, so no work continues after the response.
  await Promise.all(Array.from({ length: concurrentTenants }, worker))
  if (failures.length > 0) throw failures[0]
}

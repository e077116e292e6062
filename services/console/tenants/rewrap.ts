/**
 * MASTER_KEY's rotation: every sealed secret is sealed again under the present key, tenant by
 * tenant under its lock, and put before the edges, which open either while both keys are
 * configured. Asking again goes on where an earlier call ended, whatever ended it; several at once
 * share the work.
 */
import { Problem } from '#shared/core/http/problem.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import { rewrapTotpSecrets } from '#shared/io/operators/second-factor-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { StaleEntryError } from '#shared/io/tenants/directory/tenant-directory.ts'
import {
  countSealed,
  listSealedElsewhere,
  rewrapTenant,
} from '#shared/io/tenants/sealed-secret-store.ts'
import { type Sealer, UnsealError } from '#shared/io/tenants/sealed-secrets.ts'
import { withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type DirectoryWriter, requireDirectory } from './directory.ts'

export type RewrapDeps = {
  postgres: Postgres
  /** Connections for changes that hold a tenant's lock. */
  locks: Locks
  sealer: Sealer
  directory: DirectoryWriter
  /** Tenants whose entry at the edges is sealed or proven under another key than the sealer's. */
  listProjectedElsewhere: () => Promise<string[]>
  log: Log
  /** The monotonic clock. */
  nowMs: () => number
  onRewrap: (outcome: 'rewrapped' | 'failed', secrets: number) => void
}

export type RewrapAnswer = {
  /** Secrets that this call sealed under the present key. */
  rewrapped: number
  /** Secrets that were sealed under it before. */
  already: number
  /** Tenants that have a sealed secret. */
  tenants: number
  /** Tenants and operators still to be done: ask again. 0 when the key before is not needed. */
  remaining: number
  duration_ms: number
}

/** One answer takes about this long at most; what is left then is `remaining`. */
const callMaxMs = 20_000
/** Tenants at a time: each holds one of the ten connections for changes. */
const tenantsAtOnce = 4

/**
 * Seals again what is sealed under another key. It is in force everywhere when this returns.
 * @throws Problem unavailable when the edges or Postgres cannot be reached: what was done stays
 */
export async function rewrapSecrets(
  deps: RewrapDeps,
  { actor, callMs = callMaxMs }: { actor: string; callMs?: number },
): Promise<RewrapAnswer> {
  const { postgres, directory, sealer, nowMs } = deps
  const startedMs = nowMs()
  const inTime = () => nowMs() - startedMs < callMs
  requireDirectory(directory)
  const { already, tenants } = await countSealed(postgres, sealer.keyId)
  let rewrapped = 0
  let revision = 0
  const project = async (session: Session, tenantId: string) => {
    const projected = await projectAgain(deps, session, tenantId)
    revision = Math.max(revision, projected)
  }
  const pending = await listSealedElsewhere(postgres, sealer.keyId)
  await forEachAtOnce(pending, inTime, async (tenantId) => {
    const done = await rewrapOne(deps, { tenantId, actor }, project)
    rewrapped += done
  })
  // Of an earlier call that was interrupted between Postgres and the edges.
  const undone = new Set(await listSealedElsewhere(postgres, sealer.keyId))
  const late = (await listLate(deps)).filter((tenantId) => !undone.has(tenantId))
  await forEachAtOnce(late, inTime, (tenantId) =>
    withTenantLock(deps.locks, tenantId, (session) => project(session, tenantId)),
  )
  if (revision > 0) await directory.awaitEdges(revision)
  const totp = await postgres.transaction((tx) => rewrapTotpSecrets(tx, sealer))
  deps.onRewrap('rewrapped', totp.rewrapped)
  if (totp.remaining > 0) deps.onRewrap('failed', totp.remaining)
  rewrapped += totp.rewrapped
  const left = new Set([
    ...(await listSealedElsewhere(postgres, sealer.keyId)),
    ...(await listLate(deps)),
  ])
  const answer = { rewrapped, already, tenants, remaining: left.size + totp.remaining }
  const after = { ...answer, key_id: sealer.keyId }
  await insertAudit(postgres, { actor, tenantId: null, action: 'secrets.rewrapped', after })
  return { ...answer, duration_ms: Math.round(nowMs() - startedMs) }
}

/**
 * @returns how many secrets were sealed again; a tenant that cannot be done now is left as it is
 */
async function rewrapOne(
  deps: RewrapDeps,
  wanted: { tenantId: string; actor: string },
  project: (session: Session, tenantId: string) => Promise<void>,
): Promise<number> {
  const { tenantId } = wanted
  try {
    return await withTenantLock(deps.locks, tenantId, async (session) => {
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

/** Somebody else kept the tenant's lock for too long. */
const isConflict = (error: unknown) => error instanceof Problem && error.code === 'conflict'

/** @returns the revision to wait for; 0 when there is nothing to wait for */
async function projectAgain(deps: RewrapDeps, session: Session, tenantId: string): Promise<number> {
  const projection = await createTenantStore(session).findProjection(tenantId)
  if (projection === null) return 0
  try {
    return await deps.directory.project(projection)
  } catch (error) {
    // Somebody put a later state there meanwhile; if it is wrong, the directory reconciler repairs
    // it.
    if (error instanceof StaleEntryError) return 0
    throw unavailable('The edges cannot be told any more. What was done stays; ask again.', error)
  }
}

async function listLate(deps: RewrapDeps): Promise<string[]> {
  try {
    return await deps.listProjectedElsewhere()
  } catch (error) {
    throw unavailable('The tenant directory cannot be read. What was done stays; ask again.', error)
  }
}

async function forEachAtOnce(
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
  // All of them have ended when this fails: nothing goes on behind the answer.
  await Promise.all(Array.from({ length: tenantsAtOnce }, worker))
  if (failures.length > 0) throw failures[0]
}

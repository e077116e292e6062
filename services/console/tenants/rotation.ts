/**
 * Rotation with no overlap. The old HMAC secret goes off in Postgres and at every edge before the
 * new one goes on, so there may be an instant at which neither works and never one at which both
 * do; the new secret is told to nobody before it works everywhere. A rotation that breaks off
 * before the new secret is on is undone (the old one works again), by itself, by the next call or
 * by the sweep.
 */
import { Problem } from '#shared/core/http/problem.ts'
import { lockSecretLease } from '#shared/io/deliveries/webhook-secret-lease.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import type { EdgesWaited } from '#shared/io/tenants/directory/tenant-directory.ts'
import { tryTenantLock, withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { createTenantStore, type TenantView } from '#shared/io/tenants/tenant-store.ts'
import {
  type Made,
  type Maker,
  makeApiKey,
  makeHmacSecret,
  makeWebhookSecret,
} from './credentials.ts'
import {
  type DirectoryWriter,
  projectPresent,
  requireDirectory,
  tenantNotFound,
} from './directory.ts'

/**
 * Where a rotation stands. Tests stop one at each of these. Without an HMAC secret there is nothing
 * to tell the edges, and a rotation goes from `locked` to `on` in one transaction.
 */
export type RotationStage =
  | 'locked'
  | 'off'
  | 'off_projected'
  | 'off_everywhere'
  | 'on'
  | 'on_projected'
  | 'on_everywhere'

export type RotationDeps = Maker & {
  /** Connections for changes that hold a tenant's lock while they wait for the edges. */
  locks: Locks
  directory: DirectoryWriter
  log: Log
  /** The monotonic clock. */
  nowMs: () => number
  onOutcome: (outcome: 'done' | 'undone' | 'failed') => void
  /** Called at every stage. */
  checkpoint?: (stage: RotationStage) => Promise<void>
}

export type RotationRequest = {
  tenantId: string
  actor: string
  hmac: boolean
  webhook: boolean
  apiKey: boolean
}

export type RotationAnswer = {
  tenant_id: string
  public_api_key?: string
  hmac_secret?: string
  webhook_secret?: string
  /** From the request to the moment the new credentials work everywhere. */
  duration_ms: number
  /** Edges that confirmed the new HMAC secret, and those that refuse until they have it. */
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

type NewCredentials = {
  hmac?: Made<{ sealed: string; last4: string }>
  webhook?: Made<{ sealed: string; last4: string }>
  apiKey?: Made<{ hash: Buffer; prefix: string; last4: string }>
}

/**
 * Rotates what is asked for, all of it or none.
 * @throws Problem tenant_not_found, conflict when another change of the tenant takes too long,
 *   unavailable when it could not be completed; the message says what works now
 */
export async function rotate(
  deps: RotationDeps,
  request: RotationRequest,
): Promise<RotationAnswer> {
  const startedMs = deps.nowMs()
  try {
    if (request.hmac) requireDirectory(deps.directory)
    const { tenantId } = request
    const [made, edges] = await withTenantLock(deps.locks, tenantId, async (session) => {
      const tenant = await createTenantStore(session).findTenant(tenantId)
      if (tenant === null) throw tenantNotFound(tenantId)
      await deps.checkpoint?.('locked')
      const made = makeCredentials(deps, request, tenant)
      return [made, await replace(deps, session, request, made)] as const
    })
    deps.onOutcome('done')
    return {
      tenant_id: tenantId,
      ...(made.apiKey === undefined ? {} : { public_api_key: made.apiKey.plain }),
      ...(made.hmac === undefined ? {} : { hmac_secret: made.hmac.plain }),
      ...(made.webhook === undefined ? {} : { webhook_secret: made.webhook.plain }),
      duration_ms: Math.round(deps.nowMs() - startedMs),
      confirmed_edges: edges.confirmed,
      lease_expired_edges: edges.leaseExpired,
    }
  } catch (error) {
    deps.onOutcome('failed')
    throw error
  }
}

function makeCredentials(
  deps: RotationDeps,
  request: RotationRequest,
  tenant: TenantView,
): NewCredentials {
  return {
    ...(request.hmac ? { hmac: makeHmacSecret(deps, tenant.tenant_id) } : {}),
    ...(request.webhook ? { webhook: makeWebhookSecret(deps, tenant.tenant_id) } : {}),
    ...(request.apiKey ? { apiKey: makeApiKey(deps, tenant.environment) } : {}),
  }
}

async function replace(
  deps: RotationDeps,
  session: Session,
  request: RotationRequest,
  made: NewCredentials,
): Promise<EdgesWaited> {
  if (made.hmac !== undefined) return replaceHmac(deps, session, request, made)
  const leaseMs = await session.transaction((tx) => switchOthers(tx, request, made, {}))
  const outlasted = outlastSends(leaseMs)
  await deps.checkpoint?.('on')
  await outlasted
  await deps.checkpoint?.('on_everywhere')
  return { confirmed: [], leaseExpired: [], waitedMs: 0 }
}

async function replaceHmac(
  deps: RotationDeps,
  session: Session,
  request: RotationRequest,
  made: NewCredentials,
): Promise<EdgesWaited> {
  const { tenantId, actor } = request
  const epoch = await turnOff(deps, session, request, made)
  let leaseMs: number | null | undefined
  try {
    leaseMs = await switchOn(session, request, made, epoch)
  } finally {
    if (leaseMs === undefined) await undoQuietly(deps, session, tenantId, actor)
  }
  // From the commit on: telling the edges takes its time as well.
  const outlasted = outlastSends(leaseMs)
  await deps.checkpoint?.('on')
  const revision = await projectPersistently(deps, session, tenantId)
  await deps.checkpoint?.('on_projected')
  const [edges] = await Promise.all([deps.directory.awaitEdges(revision), outlasted])
  await deps.checkpoint?.('on_everywhere')
  return edges
}

/** Off in Postgres, then at every edge; undone when the edges cannot be told. */
async function turnOff(
  deps: RotationDeps,
  session: Session,
  { tenantId, actor }: RotationRequest,
  made: NewCredentials,
): Promise<number> {
  const begun = await session.transaction(async (tx) => {
    const step = await createCredentialStore(tx).beginHmacRotation(tenantId, made.hmac!.stored)
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'tenant.rotation_begun',
      before: { hmac_secret: toShown(step.oldLast4) },
      after: { hmac_secret: null, epoch: step.epoch },
    })
    return step
  })
  await deps.checkpoint?.('off')
  try {
    const revision = await projectPresent(deps.directory, session, tenantId)
    await deps.checkpoint?.('off_projected')
    await deps.directory.awaitEdges(revision)
  } catch (error) {
    await undoQuietly(deps, session, tenantId, actor)
    throw unavailable('The rotation could not reach the edges and was undone.', error)
  }
  await deps.checkpoint?.('off_everywhere')
  return begun.epoch
}

async function switchOn(
  session: Session,
  request: RotationRequest,
  made: NewCredentials,
  begunEpoch: number,
): Promise<number | null> {
  return await session.transaction(async (tx) => {
    const step = await createCredentialStore(tx).finishHmacRotation(request.tenantId, begunEpoch)
    if (step === null) {
      throw new Problem('conflict', 'The tenant was changed by somebody else. Rotate again.')
    }
    return await switchOthers(tx, request, made, { hmac: step.oldLast4 })
  })
}

/**
 * Webhook secret and API key, and the one audit row of the whole rotation.
 * @returns how long the old webhook secret may still sign after the commit, in ms; null without one
 */
async function switchOthers(
  tx: Queryable,
  { tenantId, actor }: RotationRequest,
  made: NewCredentials,
  old: { hmac?: string | null },
): Promise<number | null> {
  const store = createCredentialStore(tx)
  const leaseMs = made.webhook === undefined ? null : await lockSecretLease(tx)
  const before: Record<string, unknown> = {}
  const after: Record<string, unknown> = {}
  const note = (name: string, oldLast4: string | null, last4: string) => {
    before[name] = toShown(oldLast4)
    after[name] = toShown(last4)
  }
  if (made.hmac) note('hmac_secret', old.hmac ?? null, made.hmac.stored.last4)
  if (made.webhook) {
    const { stored } = made.webhook
    note('webhook_secret', await store.replaceWebhookSecret(tenantId, stored), stored.last4)
  }
  if (made.apiKey) {
    const { stored } = made.apiKey
    note('public_api_key', await store.replaceApiKey(tenantId, stored), stored.last4)
  }
  await insertAudit(tx, { actor, tenantId, action: 'tenant.rotated', before, after })
  return leaseMs
}

/** For timers that fire late, on either side. */
const sendMarginMs = 50

/**
 * The API asks Postgres at every request, so an old key is dead with the commit. Delivery signs
 * with what it read a moment before: when that lease is over, nothing signed with the old secret is
 * sent any more.
 */
async function outlastSends(leaseMs: number | null): Promise<void> {
  if (leaseMs === null) return
  await new Promise((resolve) => setTimeout(resolve, leaseMs + sendMarginMs))
}

const toShown = (last4: string | null) => (last4 === null ? null : { last4 })

/** How long the edges may be out of reach once the new secret is on. */
const persistMaxMs = 10_000

/** The new secret is on and there is no way back: keep trying to tell the edges. */
async function projectPersistently(
  deps: RotationDeps,
  session: Session,
  tenantId: string,
): Promise<number> {
  const startedMs = deps.nowMs()
  for (;;) {
    try {
      return await projectPresent(deps.directory, session, tenantId)
    } catch (error) {
      if (deps.nowMs() - startedMs > persistMaxMs || error instanceof Problem) {
        throw unavailable(
          'The edges cannot be reached, and neither secret works. Rotate again.',
          error,
        )
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Undoes what it can; what it cannot, the sweep will. */
async function undoQuietly(
  deps: RotationDeps,
  session: Session,
  tenantId: string,
  actor: string,
): Promise<void> {
  try {
    await undo(deps, session, tenantId, actor)
  } catch (error) {
    deps.log.error({ err: error, tenantId }, 'a rotation could not be undone yet')
  }
}

async function undo(
  deps: RotationDeps,
  session: Session,
  tenantId: string,
  actor: string,
): Promise<boolean> {
  const undone = await session.transaction(async (tx) => {
    const step = await createCredentialStore(tx).undoHmacRotation(tenantId)
    if (step === null) return false
    const after = { hmac_secret: toShown(step.oldLast4), epoch: step.epoch }
    await insertAudit(tx, { actor, tenantId, action: 'tenant.rotation_undone', after })
    return true
  })
  if (!undone) return false
  deps.onOutcome('undone')
  await projectPresent(deps.directory, session, tenantId)
  return true
}

/**
 * Undoes abandoned rotations: their console died, or lost its database.
 * @returns how many
 */
export async function undoAbandonedRotations(deps: RotationDeps): Promise<number> {
  let undone = 0
  for (const tenantId of await createCredentialStore(deps.locks.work).listRotating()) {
    const done = await tryTenantLock(deps.locks, tenantId, (session) =>
      undo(deps, session, tenantId, 'system'),
    )
    if (done) {
      undone++
      deps.log.warn({ tenantId }, 'an abandoned rotation was undone')
    }
  }
  return undone
}

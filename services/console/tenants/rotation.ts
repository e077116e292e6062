/**
 * Rotation without overlap. The old HMAC secret is switched off in Postgres and at every edge
 * before the new one is switched on. So for a moment neither secret may work, but never do both.
 * The new secret is disclosed once it works everywhere. An interrupted rotation is undone, so the
 * old secret works again: by the call itself, by the next call, or by the directory reconciler.
 * Only a webhook secret may sign beside the new one, for as long as the operator says.
 */
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import type { RotationObserver, RotationStep } from '#shared/core/tenants/rotation-progress.ts'
import { type Approval, claimChange, requireMayClaim } from '#shared/io/approvals/claim-change.ts'
import { lockSecretLease } from '#shared/io/deliveries/webhook-secret-lease.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import type { EdgesWaited } from '#shared/io/tenants/directory/tenant-directory.ts'
import { tryTenantLease, withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import type { TenantView } from '#shared/io/tenants/tenant-view.ts'
import {
  type Maker,
  makeApiKey,
  makeHmacSecret,
  makeWebhookSecret,
  type NewCredential,
} from './credentials.ts'
import {
  type DirectoryWriter,
  isBehind,
  projectCurrentState,
  requireDirectory,
  requireRecovered,
  tenantNotFound,
} from './directory.ts'

/**
 * The stages of a rotation. Tests interrupt it at each. Without an HMAC secret the edges need no
 * update, and a rotation goes from `locked` to `on` in one transaction.
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
  leases: Leases
  directory: DirectoryWriter
  log: Log
  /** The monotonic clock. */
  nowMs: () => number
  onOutcome: (outcome: 'done' | 'undone' | 'failed') => void
  /** Called at every stage. */
  checkpoint?: (stage: RotationStage) => Promise<void>
}

/** What undoing a rotation needs. */
export type UndoDeps = Pick<RotationDeps, 'leases' | 'directory' | 'log' | 'onOutcome'>

/** Counts the outcomes of rotations. */
export function countRotations(metrics: Metrics): RotationDeps['onOutcome'] {
  const outcomes = metrics.counter('di_rotations_total', 'Rotations of HMAC secrets and keys', [
    'outcome',
  ])
  return (outcome) => outcomes.inc({ outcome })
}

export type RotationRequest = {
  tenantId: string
  actor: string
  hmac: boolean
  webhook: boolean
  apiKey: boolean
  approval?: Approval | undefined
  /** Called under the tenant's lock, before anything changes. */
  onBegin?: () => Promise<void>
  /** Receives what the edges confirm. */
  observer?: RotationObserver
}

export type RotationResult = {
  tenant_id: string
  public_api_key?: string
  hmac_secret?: string
  webhook_secret?: string
  /** From the request to the moment the new credentials work everywhere. */
  duration_ms: number
  /** Edges that confirmed the new HMAC secret, and edges that reject requests until they have it. */
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

type NewCredentials = {
  hmac?: NewCredential<{ sealed: string; last4: string }>
  webhook?: NewCredential<{ sealed: string; last4: string }>
  apiKey?: NewCredential<{ hash: Buffer; prefix: string; last4: string }>
}

/**
 * Rotates the requested credentials, all or none.
 * @throws Problem tenant_not_found, conflict when another change of the tenant takes too long,
 *   approval_required, unavailable when it was not completed; the message names the secret that
 *   works
 */
export async function rotate(
  deps: RotationDeps,
  request: RotationRequest,
): Promise<RotationResult> {
  const startedMs = deps.nowMs()
  try {
    if (request.hmac) requireDirectory(deps.directory)
    const { tenantId } = request
    const [made, edges] = await withTenantLease(deps.leases, tenantId, async (session) => {
      const tenant = await createTenantStore(session).findTenant(tenantId)
      if (tenant === null) throw tenantNotFound(tenantId)
      await requireRecovered(deps.directory, session, tenantId)
      // Before there is a record of it.
      await requireMayClaim(session, { tenantId, kind: 'rotation', approval: request.approval })
      await request.onBegin?.()
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
  const leaseMs = await session.transaction(async (tx) => {
    await claimChange(tx, { kind: 'rotation', ...request })
    return replaceOthers(tx, request, made, {})
  })
  const leaseEnded = awaitLeaseEnd(leaseMs)
  await deps.checkpoint?.('on')
  await leaseEnded
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
  const epoch = await switchOff(deps, session, request, made)
  let leaseMs: number | null | undefined
  try {
    leaseMs = await switchOn(session, request, made, epoch)
  } finally {
    if (leaseMs === undefined) await tryUndo(deps, session, tenantId, actor)
  }
  // Count from the commit: updating the edges takes time as well.
  const leaseEnded = awaitLeaseEnd(leaseMs)
  await deps.checkpoint?.('on')
  const revision = await projectWithRetries(deps, session, tenantId)
  await deps.checkpoint?.('on_projected')
  const [edges] = await Promise.all([awaitStep(deps, request, 'new_on', revision), leaseEnded])
  await deps.checkpoint?.('on_everywhere')
  return edges
}

/** Switches the old secret off in Postgres, then at every edge. Undone if the edges cannot be updated. */
async function switchOff(
  deps: RotationDeps,
  session: Session,
  request: RotationRequest,
  made: NewCredentials,
): Promise<number> {
  const { tenantId, actor } = request
  const begun = await session.transaction(async (tx) => {
    await claimChange(tx, { kind: 'rotation', ...request })
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
    const revision = await projectCurrentState(deps.directory, session, tenantId)
    await deps.checkpoint?.('off_projected')
    await awaitStep(deps, request, 'old_off', revision)
  } catch (error) {
    await tryUndo(deps, session, tenantId, actor)
    throw unavailable('The rotation could not reach the edges and was undone.', error)
  }
  await deps.checkpoint?.('off_everywhere')
  return begun.epoch
}

/** Waits until every edge has confirmed a step, or its lease has run out, and reports each. */
async function awaitStep(
  { directory }: RotationDeps,
  { observer }: RotationRequest,
  step: RotationStep,
  revision: number,
): Promise<EdgesWaited> {
  observer?.begin(step)
  const waited = await directory.awaitEdges(revision, (edgeId, hasConfirmed) =>
    observer?.see(step, edgeId, hasConfirmed ? 'confirmed' : 'waiting'),
  )
  for (const edgeId of waited.leaseExpired) observer?.see(step, edgeId, 'lease_expired')
  return waited
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
      throw new Problem('conflict', 'The tenant was changed meanwhile. Rotate again.')
    }
    return await replaceOthers(tx, request, made, { hmac: step.oldLast4 })
  })
}

/**
 * Replaces the webhook secret and the API key, and writes the audit row of the rotation.
 * @returns how long the old webhook secret may still sign after the commit, in ms; null without one
 */
async function replaceOthers(
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
    const oldLast4 = await store.replaceWebhookSecret(tenantId, stored)
    note('webhook_secret', oldLast4, stored.last4)
  }
  if (made.apiKey) {
    const { stored } = made.apiKey
    note('public_api_key', await store.replaceApiKey(tenantId, stored), stored.last4)
  }
  await insertAudit(tx, { actor, tenantId, action: 'tenant.rotated', before, after })
  return leaseMs
}

/** Allows for timers that fire late. */
const sendMarginMs = 50

/**
 * Waits until delivery no longer signs with the old webhook secret: it may use a secret until the
 * lease of its last read ends. The API reads Postgres on every request, so it needs no wait.
 */
async function awaitLeaseEnd(leaseMs: number | null): Promise<void> {
  if (leaseMs === null) return
  await new Promise((resolve) => setTimeout(resolve, leaseMs + sendMarginMs))
}

const toShown = (last4: string | null) => (last4 === null ? null : { last4 })

/** How long the edges may be out of reach once the new secret is on. */
const persistMaxMs = 10_000

/** Retries: the new secret is on, so the rotation can no longer be undone. */
async function projectWithRetries(
  deps: RotationDeps,
  session: Session,
  tenantId: string,
): Promise<number> {
  const startedMs = deps.nowMs()
  for (;;) {
    try {
      return await projectCurrentState(deps.directory, session, tenantId)
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

/** Undoes a rotation. If that fails, the directory reconciler repeats it. */
async function tryUndo(
  deps: UndoDeps,
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
  deps: UndoDeps,
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
  await projectCurrentState(deps.directory, session, tenantId)
  return true
}

/**
 * Undoes abandoned rotations: their console died, or lost its database.
 * @returns how many
 */
export async function undoAbandonedRotations(deps: UndoDeps): Promise<number> {
  let undone = 0
  for (const tenantId of await createCredentialStore(deps.leases.work).listRotating()) {
    const done = await tryTenantLease(deps.leases, tenantId, async (session) => {
      // A Postgres that was put back may have a rotation that ended long ago.
      if (await isBehind(deps.directory, session, tenantId)) return false
      return undo(deps, session, tenantId, 'system')
    })
    if (done) {
      undone++
      deps.log.warn({ tenantId }, 'an abandoned rotation was undone')
    }
  }
  return undone
}

/**
 * Erasures as rows in Postgres: requested by a call, run by a job, listed with their receipts. The
 * id is stored sealed while an erasure is not done; afterwards only its SHA-256 is left.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { erasuresKeptDays } from '#shared/core/base/limits/tenants.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { toHeadSql, UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { type ErasureSubject, toSubjectSha256 } from './erasure-subject.ts'
import type { KeptMentions } from './mentions.ts'

/** In the order in which they are erased. */
export const erasureStores = ['postgres', 'streams', 'clickhouse'] as const
type Store = (typeof erasureStores)[number]
export type StoreState = 'waiting' | 'erasing' | 'erased'
export type ErasureProgress = Record<Store, StoreState>
/** What each store held before, by table or stream; a store is missing until it was counted. */
export type CountsBefore = Partial<Record<Store, Record<string, number>>>

export type ErasureReceipt = {
  tenant_id: string
  subject: { kind: ErasureSubject['kind']; sha256: string }
  started_at: string
  finished_at: string
  /** By store and table or stream. */
  counts: Record<string, { before: number; after: number }>
  kept_mentions: KeptMentions
  notes: string[]
}

/** An erasure as operators see it. Times are ISO-8601. */
export type Erasure = {
  erasure_id: string
  tenant_id: string
  subject: { kind: ErasureSubject['kind']; sha256: string }
  state: 'waiting' | 'running' | 'done' | 'failed'
  requested_by: string
  created_at: string
  started_at: string | null
  ended_at: string | null
  /** `rows`: what the store held before; null until it was counted. */
  progress: { store: Store; state: StoreState; rows: number | null }[]
  /** Why the last attempt did not complete it; it is tried again unless the state is `failed`. */
  problem: string | null
  receipt: ErasureReceipt | null
}

type Row = Omit<Erasure, 'subject' | 'created_at' | 'started_at' | 'ended_at' | 'progress'> & {
  kind: ErasureSubject['kind']
  subject_sha256: string
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
  progress: Partial<ErasureProgress>
  before: CountsBefore
}

const columns = `erasure_id, tenant_id, kind, subject_sha256, state, requested_by, created_at,
  started_at, ended_at, progress, before, problem, receipt`

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((total, count) => total + count, 0)

const toView = (row: Row): Erasure => ({
  erasure_id: row.erasure_id,
  tenant_id: row.tenant_id,
  subject: { kind: row.kind, sha256: row.subject_sha256 },
  state: row.state,
  requested_by: row.requested_by,
  created_at: row.created_at.toISOString(),
  started_at: row.started_at?.toISOString() ?? null,
  ended_at: row.ended_at?.toISOString() ?? null,
  progress: erasureStores.map((store) => ({
    store,
    state: row.progress[store] ?? 'waiting',
    rows: row.before[store] === undefined ? null : sum(row.before[store]),
  })),
  problem: row.problem,
  receipt: row.receipt,
})

/**
 * Requests an erasure. While one of the same subject is not done this is that one, which then also
 * covers what was accepted before this request.
 * @param wanted.waitingMax of one tenant
 * @param wanted.approval `repeated` for one that was approved or requested before
 * @returns `busy` with too many that are not done
 * @throws Problem approval_required where the tenant wants four eyes
 */
export function requestErasure(
  postgres: Session,
  sealer: Sealer,
  wanted: {
    erasureId: string
    subject: ErasureSubject
    actor: string
    waitingMax: number
    approval?: Approval | 'repeated' | undefined
  },
): Promise<Erasure | 'busy'> {
  const { erasureId, subject, actor, approval } = wanted
  const { tenantId, kind, id } = subject
  const sha256 = toSubjectSha256(subject)
  return postgres.transaction(async (tx) => {
    const others = await tx.query<{ n: number }>(
      `select count(*) as n from erasures where tenant_id = $1 and ended_at is null
         and (kind, subject_sha256) <> ($2, $3)`,
      [tenantId, kind, sha256],
    )
    if (others.rows[0]!.n >= wanted.waitingMax) return 'busy'
    if (approval !== 'repeated') {
      const claimed = { kind: 'erasure', subject: { kind, sha256 }, approval, actor } as const
      await claimChange(tx, { tenantId, ...claimed })
    }
    const { rows } = await tx.query<Row>(
      `insert into erasures as present
         (erasure_id, tenant_id, kind, subject_sha256, sealed, requested_by)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (tenant_id, kind, subject_sha256) where ended_at is null do update
         set requests = present.requests + 1, problem = null,
           next_at = least(present.next_at, clock_timestamp())
       returning ${columns}`,
      [erasureId, tenantId, kind, sha256, sealer.seal(id, { erasureId, kind: 'subject' }), actor],
    )
    const erasure = toView(rows[0]!)
    const after = { erasure_id: erasure.erasure_id, subject: erasure.subject }
    await insertAudit(tx, { actor, tenantId, action: 'erasure.requested', after })
    return erasure
  })
}

/** @returns null when the tenant has no such erasure */
export async function findErasure(
  db: Queryable,
  { tenantId, erasureId }: { tenantId: string; erasureId: string },
): Promise<Erasure | null> {
  const { rows } = await db.query<Row>(
    `select ${columns} from erasures where tenant_id = $1 and erasure_id = $2`,
    [tenantId, erasureId],
  )
  return rows[0] === undefined ? null : toView(rows[0])
}

/** The erasures of a tenant, newest first. @param before continues after this one */
export async function listErasures(
  db: Queryable,
  { tenantId, limit, before }: { tenantId: string; limit: number; before?: string | undefined },
): Promise<Erasure[]> {
  const { rows } = await db.query<Row>(
    `select ${columns} from erasures
     where tenant_id = $1 and ($3::text is null or (created_at, erasure_id) <
       (select created_at, erasure_id from erasures where tenant_id = $1 and erasure_id = $3))
     order by created_at desc, erasure_id desc limit $2`,
    [tenantId, limit, before ?? null],
  )
  return rows.map(toView)
}

/** The tenants with an erasure that is due, the longest due first. */
export async function listDueTenants(db: Queryable, most: number): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from erasures where ended_at is null and next_at <= clock_timestamp()
     group by tenant_id order by min(next_at) limit $1`,
    [most],
  )
  return rows.map((row) => row.tenant_id)
}

/** An erasure that an attempt has begun. */
export type BegunErasure = {
  erasureId: string
  tenantId: string
  kind: ErasureSubject['kind']
  sealed: string
  requestedBy: string
  requests: number
  startedAt: string
  before: CountsBefore
}

/** The longest pause between two attempts. */
const pauseMaxSeconds = 300

/**
 * Begins an attempt of the tenant's oldest due erasure. Call it under the lock of the tenant's
 * erasures. After a crash the next attempt is due in seconds, later after each further one.
 * @returns null when none is due
 */
export async function beginErasure(
  session: Session,
  tenantId: string,
): Promise<BegunErasure | null> {
  type Begun = Row & { sealed: string; requests: number; started_at: Date }
  const { rows } = await session.query<Begun>(
    `update erasures set state = 'running', attempts = attempts + 1,
       started_at = coalesce(started_at, clock_timestamp()),
       next_at = clock_timestamp()
         + least(power(2, least(attempts, 10)), ${pauseMaxSeconds}) * interval '1 second'
     where erasure_id = (
       select erasure_id from erasures
       where tenant_id = $1 and ended_at is null and next_at <= clock_timestamp()
       order by created_at, erasure_id limit 1)
     returning ${columns}, sealed, requests`,
    [tenantId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    erasureId: row.erasure_id,
    tenantId: row.tenant_id,
    kind: row.kind,
    sealed: row.sealed,
    requestedBy: row.requested_by,
    requests: row.requests,
    startedAt: row.started_at.toISOString(),
    before: row.before,
  }
}

/** Records how far an attempt is. */
export async function saveErasureProgress(
  session: Session,
  erasureId: string,
  { progress, before }: { progress: ErasureProgress; before: CountsBefore },
): Promise<void> {
  await session.query(
    'update erasures set progress = $2::jsonb, before = $3::json where erasure_id = $1',
    [erasureId, JSON.stringify(progress), JSON.stringify(before)],
  )
}

/**
 * Ends an erasure with its receipt, and forgets the id.
 * @returns false when it was requested again since the attempt began: erase again
 */
export function finishErasure(
  session: Session,
  begun: BegunErasure,
  receipt: ErasureReceipt,
): Promise<boolean> {
  const { erasureId, tenantId, requests, requestedBy: actor } = begun
  return session.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `update erasures set state = 'done', receipt = $3::json, sealed = null, problem = null,
         ended_at = clock_timestamp()
       where erasure_id = $1 and requests = $2 and ended_at is null`,
      [erasureId, requests, JSON.stringify(receipt)],
    )
    if (rowCount === 0) return false
    const { tenant_id: _, ...after } = receipt
    await insertAudit(tx, { actor, tenantId, action: 'erasure.done', after })
    return true
  })
}

/** Ends an attempt without a receipt. @param outcome.atOnce without a pause before the next */
export async function postponeErasure(
  db: Queryable,
  erasureId: string,
  { problem, atOnce }: { problem: string | null; atOnce: boolean },
): Promise<void> {
  await db.query(
    `update erasures set state = 'waiting', problem = coalesce($2, problem),
       next_at = case when $3 then clock_timestamp() else next_at end
     where erasure_id = $1 and ended_at is null`,
    [erasureId, problem, atOnce],
  )
}

/** Ends an erasure that cannot be done: its id cannot be read any more. */
export async function failErasure(
  db: Queryable,
  erasureId: string,
  problem: string,
): Promise<void> {
  await db.query(
    `update erasures set state = 'failed', problem = $2, sealed = null,
       ended_at = clock_timestamp()
     where erasure_id = $1 and ended_at is null`,
    [erasureId, problem],
  )
}

/** Seals the ids of erasures again that have another key; those that cannot be opened remain. */
export async function rewrapErasures(
  tx: Queryable,
  sealer: Sealer,
): Promise<{ rewrapped: number; remaining: number }> {
  const { rows } = await tx.query<{ erasure_id: string; sealed: string }>(
    `select erasure_id, sealed from erasures
     where ended_at is null and ${toHeadSql('sealed')} <> all($1) for update`,
    [sealer.currentHeads()],
  )
  let rewrapped = 0
  for (const { erasure_id: erasureId, sealed } of rows) {
    const owner = { erasureId, kind: 'subject' } as const
    try {
      const again = sealer.seal(sealer.unseal(sealed, owner), owner)
      await tx.query('update erasures set sealed = $2 where erasure_id = $1', [erasureId, again])
      rewrapped++
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
    }
  }
  return { rewrapped, remaining: rows.length - rewrapped }
}

/**
 * Removes old erasures that have ended, with their receipts.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeEndedErasures(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from erasures where erasure_id in (
       select erasure_id from erasures where ended_at < $1
       order by ended_at limit $2 for update skip locked)`,
    [new Date(nowMs - erasuresKeptDays * dayMs), most],
  )
  return rowCount
}

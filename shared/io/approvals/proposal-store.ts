/**
 * Proposals in Postgres: made, listed, ended without being carried out, and removed in time.
 * `claimChange` ends those that are carried out.
 */
import type { GuardedKind, ProposalState } from '#shared/core/approvals/four-eyes.ts'
import type { AuditedAction } from '#shared/core/audit/audited-actions.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { proposalsEndedMax, proposalsKeptDays } from '#shared/core/base/limits/policies.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { toHeadSql, UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'

/** The device or user that an erasure is proposed for. */
export type ProposalSubject = { kind: 'device' | 'user'; id: string; sha256: string }

/** Times are ISO-8601. */
export type StoredProposal = {
  proposal_id: string
  tenant_id: string
  kind: GuardedKind
  parameters: unknown
  base: unknown
  reason: string
  author: string
  state: ProposalState
  subject: Omit<ProposalSubject, 'id'> | null
  /** The id of an erasure's subject while it is open. */
  sealed: string | null
  created_at: string
  expires_at: string
  ended_at: string | null
  ended_by: string | null
  note: string | null
}

type Row = Omit<StoredProposal, 'subject' | 'created_at' | 'expires_at' | 'ended_at'> & {
  subject_kind: ProposalSubject['kind'] | null
  subject_sha256: string | null
  created_at: Date
  expires_at: Date
  ended_at: Date | null
}

const columns = `proposal_id, tenant_id, kind, parameters, base, reason, author,
  case when state = 'open' and expires_at <= clock_timestamp() then 'expired' else state end
    as state,
  subject_kind, subject_sha256, sealed, created_at, expires_at, ended_at, ended_by, note`

const toProposal = ({ subject_kind: kind, subject_sha256: sha256, ...row }: Row) => ({
  ...row,
  subject: kind === null ? null : { kind, sha256: sha256! },
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
})

type NewProposal = {
  proposalId: string
  tenantId: string
  kind: GuardedKind
  parameters: unknown
  base: unknown
  reason: string
  author: string
  days: number
  /** Of an erasure, in place of its id in the parameters. */
  subject: ProposalSubject | null
  openMax: number
}

/** The owner that the id of an erasure is sealed for. */
export const toSealOwner = (proposalId: string) =>
  ({ erasureId: proposalId, kind: 'subject' }) as const

/** Makes a proposal. @returns `busy` with too many that are open */
export function insertProposal(
  postgres: Postgres,
  sealer: Sealer,
  wanted: NewProposal,
): Promise<StoredProposal | 'busy'> {
  const { proposalId, tenantId, kind, reason, author, subject } = wanted
  return postgres.transaction(async (tx) => {
    await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
    const open = await tx.query<{ n: number }>(
      `select count(*) as n from proposals
       where tenant_id = $1 and state = 'open' and expires_at > clock_timestamp()`,
      [tenantId],
    )
    if (open.rows[0]!.n >= wanted.openMax) return 'busy'
    await removeOldest(tx, tenantId)
    const sealed = subject && sealer.seal(subject.id, toSealOwner(proposalId))
    const { rows } = await tx.query<Row>(
      `insert into proposals (proposal_id, tenant_id, kind, parameters, base, reason, author,
         expires_at, subject_kind, subject_sha256, sealed)
       values ($1, $2, $3, $4::json, $5::jsonb, $6, $7,
         clock_timestamp() + $8 * interval '1 day', $9, $10, $11)
       returning ${columns}`,
      [
        ...[proposalId, tenantId, kind, JSON.stringify(wanted.parameters)],
        ...[JSON.stringify(wanted.base), reason, author, wanted.days],
        ...[subject?.kind ?? null, subject?.sha256 ?? null, sealed],
      ],
    )
    // Neither a policy nor the ids of alerts: both are kept with the proposal.
    const after = { proposal_id: proposalId, kind, reason, base: wanted.base }
    await insertAudit(tx, { actor: author, tenantId, action: 'proposal.made', after })
    return toProposal(rows[0]!)
  })
}

/** Removes what ended before the newest that are kept. Under the lock of the tenant. */
async function removeOldest(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query(
    `delete from proposals where proposal_id in (
       select proposal_id from proposals
       where tenant_id = $1 and (state <> 'open' or expires_at <= clock_timestamp())
       order by coalesce(ended_at, expires_at) desc, proposal_id offset $2)`,
    [tenantId, proposalsEndedMax],
  )
}

/** @returns null when the tenant has no such proposal */
export async function findProposal(
  db: Queryable,
  { tenantId, proposalId }: { tenantId: string; proposalId: string },
): Promise<StoredProposal | null> {
  const { rows } = await db.query<Row>(
    `select ${columns} from proposals where tenant_id = $1 and proposal_id = $2`,
    [tenantId, proposalId],
  )
  return rows[0] === undefined ? null : toProposal(rows[0])
}

/** The proposals of a tenant, newest first. @param page.open only those that wait */
export async function listProposals(
  db: Queryable,
  page: { tenantId: string; limit: number; before?: string | undefined; open: boolean },
): Promise<StoredProposal[]> {
  const { rows } = await db.query<Row>(
    `select ${columns} from proposals
     where tenant_id = $1
       and (not $4::boolean or (state = 'open' and expires_at > clock_timestamp()))
       and ($3::text is null or (created_at, proposal_id) <
         (select created_at, proposal_id from proposals
          where tenant_id = $1 and proposal_id = $3))
     order by created_at desc, proposal_id desc limit $2`,
    [page.tenantId, page.limit, page.before ?? null, page.open],
  )
  return rows.map(toProposal)
}

type Ended = 'rejected' | 'withdrawn' | 'void'
const endActions: Record<Ended, AuditedAction> = {
  rejected: 'proposal.rejected',
  withdrawn: 'proposal.withdrawn',
  void: 'proposal.voided',
}

/** Ends an open proposal without carrying it out. @returns null when it is not open */
export function endProposal(
  postgres: Postgres,
  wanted: { tenantId: string; proposalId: string; as: Ended; actor: string; note: string | null },
): Promise<StoredProposal | null> {
  const { tenantId, proposalId, as, actor, note } = wanted
  return postgres.transaction(async (tx) => {
    const { rows } = await tx.query<Row>(
      `update proposals set state = $3, ended_at = clock_timestamp(), ended_by = $4, note = $5,
         sealed = null
       where tenant_id = $1 and proposal_id = $2 and state = 'open'
         and expires_at > clock_timestamp()
       returning ${columns}`,
      [tenantId, proposalId, as, actor, note],
    )
    if (rows[0] === undefined) return null
    const after = { proposal_id: proposalId, kind: rows[0].kind, note }
    const before = { state: 'open', proposed_by: rows[0].author }
    await insertAudit(tx, { actor, tenantId, action: endActions[as], before, after })
    return toProposal(rows[0])
  })
}

/** Records that what was approved could not be done. @returns whether it was approved */
export function failProposal(
  postgres: Postgres,
  wanted: { tenantId: string; proposalId: string; actor: string; note: string },
): Promise<boolean> {
  const { tenantId, proposalId, actor, note } = wanted
  return postgres.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `update proposals set state = 'failed', note = $3
       where tenant_id = $1 and proposal_id = $2 and state = 'approved'`,
      [tenantId, proposalId, note],
    )
    if (rowCount === 0) return false
    const after = { proposal_id: proposalId, note }
    await insertAudit(tx, { actor, tenantId, action: 'proposal.failed', after })
    return true
  })
}

/** Proposals that name a device or user: to erase it, or to change alerts filtered by its id. */
const namesSubject = `tenant_id = $1 and ((subject_kind = $2 and subject_sha256 = $3)
  or (kind = 'bulk' and parameters->'filter'->>($2 || '_id') = $4))`

type Named = ProposalSubject & { tenantId: string }

const toNamed = ({ tenantId, kind, sha256, id }: Named): unknown[] => [tenantId, kind, sha256, id]

export async function countProposalsOf(db: Queryable, subject: Named): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*) as n from proposals where ${namesSubject}`,
    toNamed(subject),
  )
  return rows[0]!.n
}

export async function removeProposalsOf(tx: Queryable, subject: Named): Promise<void> {
  await tx.query(`delete from proposals where ${namesSubject}`, toNamed(subject))
}

/**
 * Removes old proposals. Those of erasures, which name a device or user, go when their time is
 * over; the others stay for a while after their end.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeEndedProposals(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from proposals where proposal_id in (
       select proposal_id from proposals
       where (kind = 'erasure' and expires_at < $1) or coalesce(ended_at, expires_at) < $2
       order by coalesce(ended_at, expires_at) limit $3 for update skip locked)`,
    [new Date(nowMs), new Date(nowMs - proposalsKeptDays * dayMs), most],
  )
  return rowCount
}

/** Seals the ids of open proposals again that have another key; those that cannot be opened remain. */
export async function rewrapProposals(
  tx: Queryable,
  sealer: Sealer,
): Promise<{ rewrapped: number; remaining: number }> {
  const { rows } = await tx.query<{ proposal_id: string; sealed: string }>(
    `select proposal_id, sealed from proposals
     where sealed is not null and ${toHeadSql('sealed')} <> all($1) for update`,
    [sealer.currentHeads()],
  )
  let rewrapped = 0
  for (const { proposal_id: proposalId, sealed } of rows) {
    const owner = toSealOwner(proposalId)
    try {
      const again = sealer.seal(sealer.unseal(sealed, owner), owner)
      await tx.query('update proposals set sealed = $2 where proposal_id = $1', [proposalId, again])
      rewrapped++
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
    }
  }
  return { rewrapped, remaining: rows.length - rewrapped }
}

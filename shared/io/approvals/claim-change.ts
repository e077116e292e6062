/**
 * The one place that every guarded change passes, in the transaction that makes it. Without an
 * approval it asks what the tenant wants. With one it ends the proposal, so that a proposal is
 * carried out once, and writes both names into the audit log. Either way, other proposals that were
 * made over what now changes are void.
 */
import { type GuardedKind, needsApproval } from '#shared/core/approvals/four-eyes.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { includesRole, leastRoleOf, type Role, seesTenant } from '#shared/core/operators/roles.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { findFourEyes } from './four-eyes-store.ts'

/** The proposal that a change carries out, and who approved it. */
export type Approval = { proposalId: string; approvedBy: string }

export type GuardedChange = {
  tenantId: string
  kind: GuardedKind
  /** Left out where nobody has approved it. */
  approval?: Approval | undefined
  /** How many alerts a bulk change means. */
  alerts?: number
  /** The device or user of an erasure. */
  subject?: { kind: string; sha256: string }
  actor: string
}

/** Of these a proposal stays as it was when another one is carried out. */
const independentKinds = new Set<GuardedKind>(['bulk', 'bulk_undo', 'api_key', 'wide_list_entry'])

/**
 * Lets a change pass, or not. Call it in the transaction of the change, before it.
 * @throws Problem approval_required; conflict when the proposal was ended meanwhile
 */
export async function claimChange(tx: Queryable, change: GuardedChange): Promise<void> {
  const { tenantId, kind, approval } = change
  if (approval === undefined) {
    if (needsApproval(await findFourEyes(tx, tenantId), change)) throw approvalRequired(change)
  } else {
    await endApproved(tx, change, approval)
  }
  if (!independentKinds.has(kind)) await voidOthers(tx, change)
}

/** Refuses a change before anything is written about it; `claimChange` decides. */
export async function requireMayClaim(
  db: Queryable,
  change: Omit<GuardedChange, 'actor'>,
): Promise<void> {
  if (change.approval !== undefined) return
  if (needsApproval(await findFourEyes(db, change.tenantId), change)) {
    throw approvalRequired(change)
  }
}

const approvalRequired = ({ tenantId, kind }: Pick<GuardedChange, 'tenantId' | 'kind'>): Problem =>
  new Problem(
    'approval_required',
    `Tenant ${tenantId} wants four eyes. Nothing was changed. Propose it with ` +
      `POST /admin/v1/tenants/${tenantId}/proposals and the kind ${kind}: another ` +
      'administrator approves it, and then it is done.',
  )

/** As whom the bearer of the admin token acts. */
const adminActor = 'admin'

/**
 * Both are persons who may make the change themselves now, whatever was so when it was proposed.
 * The admin token counts for one only where the tenant wants no four eyes.
 */
async function requirePersons(
  tx: Queryable,
  { tenantId, kind }: GuardedChange,
  emails: readonly string[],
): Promise<void> {
  const { rows } = await tx.query<{ email: string; role: Role; tenants: string[] | null }>(
    `select email, role, tenants from operators
     where email = any($1) and disabled_at is null for share`,
    [emails],
  )
  const { enabled } = await findFourEyes(tx, tenantId)
  for (const email of emails) {
    if (email === adminActor && !enabled) continue
    const found = rows.find((row) => row.email === email)
    const may =
      found !== undefined &&
      includesRole(found.role, leastRoleOf(kind)) &&
      seesTenant(found.tenants ?? 'all', tenantId)
    if (may) continue
    const detail = `${email} may not make this change now. Reject the proposal, and propose it anew.`
    throw new Problem('forbidden', detail)
  }
}

async function endApproved(
  tx: Queryable,
  change: GuardedChange,
  { proposalId, approvedBy }: Approval,
): Promise<void> {
  const { tenantId, kind } = change
  const { rows } = await tx.query<{ author: string; reason: string }>(
    `update proposals
     set state = 'approved', ended_at = clock_timestamp(), ended_by = $4, sealed = null
     where proposal_id = $1 and tenant_id = $2 and kind = $3 and state = 'open'
       and expires_at > clock_timestamp() and author <> $4
     returning author, reason`,
    [proposalId, tenantId, kind, approvedBy],
  )
  const row = rows[0]
  if (row === undefined) throw new Problem('conflict', 'The proposal is not open any more.')
  await requirePersons(tx, change, [row.author, approvedBy])
  await insertAudit(tx, {
    actor: approvedBy,
    tenantId,
    action: 'proposal.approved',
    before: { state: 'open', proposed_by: row.author },
    after: { state: 'approved', approved_by: approvedBy, proposal_id: proposalId, kind },
  })
}

async function voidOthers(
  tx: Queryable,
  { tenantId, kind, subject, actor }: GuardedChange,
): Promise<void> {
  const { rows } = await tx.query<{ proposal_id: string }>(
    `update proposals
     set state = 'void', ended_at = clock_timestamp(), ended_by = $3, sealed = null,
       note = 'What it was proposed over was changed.'
     where tenant_id = $1 and kind = $2 and state = 'open'
       and ($4::text is null or (subject_kind, subject_sha256) = ($4, $5))
     returning proposal_id`,
    [tenantId, kind, actor, subject?.kind ?? null, subject?.sha256 ?? null],
  )
  for (const { proposal_id } of rows) {
    const after = { proposal_id, kind }
    await insertAudit(tx, { actor, tenantId, action: 'proposal.voided', after })
  }
}

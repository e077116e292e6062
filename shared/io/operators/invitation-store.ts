/** Invitations of operators in Postgres: one open one per email, each used once. */
import { hourMs } from '#shared/core/base/instants.ts'
import type { Role, TenantScope } from '#shared/core/operators/roles.ts'
import { endedInvitationsMs } from '#shared/core/operators/session-times.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type Invitation = {
  invitationId: string
  /** The operator who is to choose a new password; null for a new account. */
  operatorId: string | null
  email: string
  name: string
  role: Role
  tenants: TenantScope
  createdAtMs: number
  createdBy: string
  expiresAtMs: number
}

export type ListedInvitation = Invitation & { acceptedAtMs: number | null; revoked: boolean }

type InvitationRow = {
  invitation_id: string
  operator_id: string | null
  email: string
  name: string
  role: Role
  tenants: string[] | null
  created_at: Date
  created_by: string
  expires_at: Date
}

const columns =
  'invitation_id, operator_id, email, name, role, tenants, created_at, created_by, expires_at'

const toInvitation = (row: InvitationRow): Invitation => ({
  invitationId: row.invitation_id,
  operatorId: row.operator_id,
  email: row.email,
  name: row.name,
  role: row.role,
  tenants: row.tenants ?? 'all',
  createdAtMs: row.created_at.getTime(),
  createdBy: row.created_by,
  expiresAtMs: row.expires_at.getTime(),
})

/** An invitation that ended so long ago is removed; the audit log has what became of it. */
const endedKeptMs = 90 * 24 * hourMs

/** Stores an invitation; one of the same email that is open is revoked. */
export async function insertInvitation(
  tx: Queryable,
  { invitation, tokenHash }: { invitation: Invitation; tokenHash: Buffer },
): Promise<void> {
  const { email, tenants } = invitation
  const createdAt = new Date(invitation.createdAtMs)
  // Two at once for one email: the later one revokes the earlier one.
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 2))', [email])
  await tx.query('delete from operator_invitations where expires_at < $1', [
    new Date(invitation.createdAtMs - endedKeptMs),
  ])
  await tx.query(
    `update operator_invitations set revoked_at = $2
     where email = $1 and accepted_at is null and revoked_at is null`,
    [email, createdAt],
  )
  await tx.query(
    `insert into operator_invitations
       (invitation_id, token_hash, operator_id, email, name, role, tenants, created_at, created_by,
        expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      invitation.invitationId,
      tokenHash,
      invitation.operatorId,
      email,
      invitation.name,
      invitation.role,
      tenants === 'all' ? null : tenants,
      createdAt,
      invitation.createdBy,
      new Date(invitation.expiresAtMs),
    ],
  )
}

const openOnes =
  'token_hash = $1 and expires_at > $2 and accepted_at is null and revoked_at is null'

/** The invitation of a token, while it can be accepted. */
export async function findOpenInvitation(
  db: Queryable,
  tokenHash: Buffer,
  nowMs: number,
): Promise<Invitation | null> {
  const { rows } = await db.query<InvitationRow>(
    `select ${columns} from operator_invitations where ${openOnes}`,
    [tokenHash, new Date(nowMs)],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Uses an invitation: of several callers one gets it, the others null. */
export async function acceptInvitation(
  tx: Queryable,
  tokenHash: Buffer,
  nowMs: number,
): Promise<Invitation | null> {
  const { rows } = await tx.query<InvitationRow>(
    `update operator_invitations set accepted_at = $2 where ${openOnes} returning ${columns}`,
    [tokenHash, new Date(nowMs)],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Uses the open invitation of an email to a new account; null when there is none. */
export async function acceptInvitationOf(
  tx: Queryable,
  email: string,
  nowMs: number,
): Promise<Invitation | null> {
  const { rows } = await tx.query<InvitationRow>(
    `update operator_invitations set accepted_at = $2
     where email = $1 and operator_id is null and expires_at > $2
       and accepted_at is null and revoked_at is null
     returning ${columns}`,
    [email, new Date(nowMs)],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Ends an open invitation; null when there is none of this id, or it is not open any more. */
export async function withdrawInvitation(
  tx: Queryable,
  invitationId: string,
  nowMs: number,
): Promise<Invitation | null> {
  const { rows } = await tx.query<InvitationRow>(
    `update operator_invitations set revoked_at = $2
     where invitation_id = $1 and expires_at > $2 and accepted_at is null and revoked_at is null
     returning ${columns}`,
    [invitationId, new Date(nowMs)],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** The latest invitations, newest first. */
export async function listInvitations(db: Queryable, limit: number): Promise<ListedInvitation[]> {
  const { rows } = await db.query<
    InvitationRow & { accepted_at: Date | null; revoked_at: Date | null }
  >(
    `select ${columns}, accepted_at, revoked_at from operator_invitations
     order by created_at desc, invitation_id desc limit $1`,
    [limit],
  )
  return rows.map((row) => ({
    ...toInvitation(row),
    acceptedAtMs: row.accepted_at?.getTime() ?? null,
    revoked: row.revoked_at !== null,
  }))
}

/**
 * Removes invitations that were accepted, revoked or expired some time ago, oldest first.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeEndedInvitations(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from operator_invitations where invitation_id in (
       select invitation_id from operator_invitations
       where coalesce(accepted_at, revoked_at, expires_at) < $1
       order by created_at limit $2 for update skip locked)`,
    [new Date(nowMs - endedInvitationsMs), most],
  )
  return rowCount
}

/** Slugs among these that no tenant has. */
export async function findUnknownTenants(
  db: Queryable,
  slugs: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ slug: string }>(
    `select slug from unnest($1::text[]) as slug
     where not exists (select 1 from tenants where tenant_id = slug)`,
    [slugs],
  )
  return rows.map((row) => row.slug)
}

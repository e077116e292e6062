/**
 * Invitations, the only way to an account, and links for a new password. Each link works once,
 * until it expires.
 */

import type { AuditedAction } from '#shared/core/audit/audited-actions.ts'
import { hourMs } from '#shared/core/base/instants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  hashToken,
  operatorIdBytes,
  tokenBytes,
  toOperatorsId,
  toToken,
} from '#shared/core/operators/operator-credentials.ts'
import type { Role, TenantScope } from '#shared/core/operators/roles.ts'
import {
  acceptInvitation,
  findOpenInvitation,
  findUnknownTenants,
  type Invitation,
  insertInvitation,
  withdrawInvitation,
} from '#shared/io/operators/invitation-store.ts'
import {
  bindSubject,
  findOperator,
  findOperatorByEmail,
  insertOperator,
  type OidcSubject,
  type Operator,
  setPasswordHash,
} from '#shared/io/operators/operator-store.ts'
import { removeTotp } from '#shared/io/operators/second-factor-store.ts'
import { endSessionsOf } from '#shared/io/operators/session-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { hashNewPassword } from './choose-password.ts'
import type { OperatorParts } from './operator-deps.ts'
import { beginSession, type Caller, requirePasswords, type SignedIn } from './sign-in.ts'

export type NewInvitation = {
  email: string
  name: string
  role: Role
  tenants: TenantScope
  validHours: number
  actor: string
}

/** A link as it is shown, this once. */
export type ShownLink = { invitation_id: string; url: string; expires_at: string }

/** How long a link for a new password is valid. */
const resetHours = 24

/**
 * Invites a person; an open invitation of the same email ends.
 * @throws Problem operator_exists, tenant_not_found
 */
export async function invite(parts: OperatorParts, wanted: NewInvitation): Promise<ShownLink> {
  return parts.postgres.transaction(async (tx) => {
    if ((await findOperatorByEmail(tx, wanted.email)) !== null) throw exists(wanted.email)
    await requireTenants(tx, wanted.tenants)
    return makeLink(parts, tx, { ...wanted, operatorId: null, action: 'operator.invited' })
  })
}

/**
 * Ends an open invitation: its link does nothing any more.
 * @throws Problem invitation_not_found: unknown, used, withdrawn and expired alike
 */
export async function withdraw(
  { postgres, wallMs }: Pick<OperatorParts, 'postgres' | 'wallMs'>,
  { invitationId, actor }: { invitationId: string; actor: string },
): Promise<{ invitation_id: string; email: string }> {
  return postgres.transaction(async (tx) => {
    const invitation = await withdrawInvitation(tx, invitationId, wallMs())
    if (invitation === null) {
      throw new Problem('invitation_not_found', 'There is no open invitation of this id.')
    }
    const ended = { invitation_id: invitationId, email: invitation.email }
    await insertAudit(tx, {
      actor,
      tenantId: null,
      action: 'operator.invitation_withdrawn',
      before: { ...ended, role: invitation.role },
    })
    return ended
  })
}

/**
 * Makes a link by which an operator chooses a new password; its use also switches TOTP off and
 * forgets who they were at the identity provider.
 * @throws Problem operator_not_found, conflict when the operator is disabled
 */
export async function startReset(
  parts: OperatorParts,
  { operatorId, actor }: { operatorId: string; actor: string },
): Promise<ShownLink> {
  return parts.postgres.transaction(async (tx) => {
    const operator = await findOperator(tx, operatorId, { lock: true })
    if (operator === null) throw operatorNotFound(operatorId)
    const { email, name, role, tenants, disabled } = operator
    if (disabled) throw new Problem('conflict', `${email} is disabled.`)
    const of = { operatorId, email, name, role, tenants, validHours: resetHours, actor }
    return makeLink(parts, tx, { ...of, action: 'operator.reset_started' })
  })
}

async function makeLink(
  { randomBytes, wallMs, origin }: OperatorParts,
  tx: Queryable,
  wanted: NewInvitation & { operatorId: string | null; action: AuditedAction },
): Promise<ShownLink> {
  const { validHours, actor, action, ...of } = wanted
  const token = toToken(randomBytes(tokenBytes))
  const createdAtMs = wallMs()
  const invitation: Invitation = {
    ...of,
    invitationId: toOperatorsId('inv', randomBytes(operatorIdBytes)),
    createdAtMs,
    createdBy: actor,
    expiresAtMs: createdAtMs + validHours * hourMs,
  }
  const { invitationId, email, name, role, tenants } = invitation
  const expiresAt = new Date(invitation.expiresAtMs).toISOString()
  await insertInvitation(tx, { invitation, tokenHash: hashToken(token) })
  await insertAudit(tx, {
    actor,
    tenantId: null,
    action,
    after: { invitation_id: invitationId, email, name, role, tenants, expires_at: expiresAt },
  })
  return { invitation_id: invitationId, url: origin.toInvitationUrl(token), expires_at: expiresAt }
}

/** @throws Problem tenant_not_found, which names the first that there is not */
export async function requireTenants(db: Queryable, scope: TenantScope): Promise<void> {
  const [unknown] = scope === 'all' ? [] : await findUnknownTenants(db, scope)
  if (unknown !== undefined) {
    throw new Problem('tenant_not_found', `There is no tenant ${unknown}.`)
  }
}

/** @throws Problem invitation_not_found: unknown, used, revoked and expired alike */
export async function showInvitation(
  { postgres, wallMs }: OperatorParts,
  token: string,
): Promise<Invitation> {
  const invitation = await findOpenInvitation(postgres, hashToken(token), wallMs())
  if (invitation === null) throw notValid()
  return invitation
}

/**
 * Makes the account, or gives an existing one its new password, and signs in.
 * @throws Problem invitation_not_found, invalid_body for the password, operator_exists
 */
export async function accept(
  parts: OperatorParts,
  wanted: { token: string; name: string; password: string },
  caller: Caller,
): Promise<SignedIn> {
  const { postgres, wallMs } = parts
  const { token, password } = wanted
  const shown = await showInvitation(parts, token)
  // A link for a new password is a way in also then.
  if (shown.operatorId === null) requirePasswords(parts)
  const name = wanted.name || shown.name || shown.email
  const passwordHash = await hashNewPassword(parts, { password, email: shown.email, name })
  return postgres.transaction(async (tx) => {
    const invitation = await acceptInvitation(tx, hashToken(token), wallMs())
    if (invitation === null) throw notValid()
    const { operatorId } = invitation
    if (operatorId === null) {
      const operator = await makeOperator(parts, tx, {
        ...invitation,
        name,
        passwordHash,
        subject: null,
      })
      return beginSession(parts, tx, { operator, caller, action: 'joined', by: 'link' })
    }
    const operator = await findOperator(tx, operatorId, { lock: true })
    if (operator === null || operator.disabled) throw notValid()
    await setPasswordHash(tx, operatorId, passwordHash)
    await removeTotp(tx, operatorId)
    await bindSubject(tx, operatorId, null)
    await endSessionsOf(tx, operatorId)
    return beginSession(parts, tx, {
      operator: { ...operator, totp: false, password: true, oidc: false },
      caller,
      action: 'reset',
      by: 'link',
    })
  })
}

/**
 * Makes the account of an invitation.
 * @param of.passwordHash one of this and `of.subject` at least
 * @throws Problem operator_exists
 */
export async function makeOperator(
  { randomBytes, wallMs }: OperatorParts,
  tx: Queryable,
  invited: Invitation & { passwordHash: string | null; subject: OidcSubject | null },
): Promise<Operator> {
  const { email, name, role, tenants, createdBy, passwordHash, subject } = invited
  const operatorId = toOperatorsId('opr', randomBytes(operatorIdBytes))
  const made = { operatorId, email, name, role, tenants }
  const how = { passwordHash, subject, createdBy, nowMs: wallMs() }
  if (!(await insertOperator(tx, { ...made, ...how }))) throw exists(email)
  const ways = { password: passwordHash !== null, oidc: subject !== null }
  return { ...made, ...ways, totp: false, disabled: false }
}

export const operatorNotFound = (operatorId: string): Problem =>
  new Problem('operator_not_found', `There is no operator ${operatorId}.`)

const exists = (email: string): Problem =>
  new Problem('operator_exists', `There is an operator ${email} already.`)

const notValid = (): Problem =>
  new Problem('invitation_not_found', 'This link was used already, has expired or never was one.')

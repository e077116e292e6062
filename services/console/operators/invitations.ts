/** Invitations: the only way to an account. Each link works once, until it expires. */

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
} from '#shared/io/operators/invitation-store.ts'
import { findOperatorByEmail, insertOperator } from '#shared/io/operators/operator-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { hashNewPassword } from './choose-password.ts'
import type { OperatorParts } from './operator-deps.ts'
import { beginSession, type Caller, type SignedIn } from './sign-in.ts'

export type NewInvitation = {
  email: string
  name: string
  role: Role
  tenants: TenantScope
  validHours: number
  actor: string
}

/**
 * Invites somebody; an open invitation of the same email ends.
 * @throws Problem operator_exists, tenant_not_found
 */
export async function invite(
  { postgres, randomBytes, wallMs, origin }: OperatorParts,
  { validHours, actor, ...wanted }: NewInvitation,
): Promise<{ invitation_id: string; url: string; expires_at: string }> {
  const token = toToken(randomBytes(tokenBytes))
  const createdAtMs = wallMs()
  const invitation: Invitation = {
    ...wanted,
    invitationId: toOperatorsId('inv', randomBytes(operatorIdBytes)),
    createdAtMs,
    createdBy: actor,
    expiresAtMs: createdAtMs + validHours * hourMs,
  }
  const { invitationId, email, name, role, tenants } = invitation
  const expiresAt = new Date(invitation.expiresAtMs).toISOString()
  await postgres.transaction(async (tx) => {
    if ((await findOperatorByEmail(tx, email)) !== null) throw exists(email)
    await requireTenants(tx, tenants)
    await insertInvitation(tx, { invitation, tokenHash: hashToken(token) })
    await insertAudit(tx, {
      actor,
      tenantId: null,
      action: 'operator.invited',
      after: { invitation_id: invitationId, email, name, role, tenants, expires_at: expiresAt },
    })
  })
  return {
    invitation_id: invitationId,
    url: origin.toInvitationUrl(token),
    expires_at: expiresAt,
  }
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
 * Makes the account and signs in.
 * @throws Problem invitation_not_found, invalid_body for the password, operator_exists
 */
export async function accept(
  parts: OperatorParts,
  wanted: { token: string; name: string; password: string },
  caller: Caller,
): Promise<SignedIn> {
  const { postgres, randomBytes, wallMs } = parts
  const { token, password } = wanted
  const shown = await showInvitation(parts, token)
  const name = wanted.name || shown.name || shown.email
  const passwordHash = await hashNewPassword(parts, { password, email: shown.email, name })
  return postgres.transaction(async (tx) => {
    const nowMs = wallMs()
    const invitation = await acceptInvitation(tx, hashToken(token), nowMs)
    if (invitation === null) throw notValid()
    const { email, role, tenants, createdBy } = invitation
    const operatorId = toOperatorsId('opr', randomBytes(operatorIdBytes))
    const made = { operatorId, email, name, role, tenants }
    if (!(await insertOperator(tx, { ...made, passwordHash, createdBy, nowMs })))
      throw exists(email)
    const operator = { ...made, totp: false, disabled: false }
    return beginSession(parts, tx, { operator, caller, action: 'joined' })
  })
}

const exists = (email: string): Problem =>
  new Problem('operator_exists', `There is an operator ${email} already.`)

const notValid = (): Problem =>
  new Problem('invitation_not_found', 'This link was used already, has expired or never was one.')

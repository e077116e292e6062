/** Operators, sessions and invitations as the admin API shows them. */
import { toIso } from '#shared/core/base/instants.ts'
import { toSessionEnds } from '#shared/core/operators/session-times.ts'
import type { ListedInvitation } from '#shared/io/operators/invitation-store.ts'
import type { ListedOperator, Operator } from '#shared/io/operators/operator-store.ts'
import type { Session } from '#shared/io/operators/session-store.ts'
import type { OperatorParts } from './operator-deps.ts'
import { toStepUpWays } from './sign-in.ts'

const toOperatorView = (operator: Operator) => ({
  operator_id: operator.operatorId,
  email: operator.email,
  name: operator.name,
  role: operator.role,
  tenants: operator.tenants === 'all' ? ('all' as const) : [...operator.tenants],
  totp: operator.totp,
  password: operator.password,
  oidc: operator.oidc,
})

export function toSessionView(session: Session) {
  const { expiresAtMs, idleExpiresAtMs } = toSessionEnds(session)
  return {
    session_id: session.sessionId,
    created_at: toIso(session.createdAtMs),
    expires_at: toIso(expiresAtMs),
    idle_expires_at: toIso(idleExpiresAtMs),
    signed_in_by: session.signedInBy,
    step_up_until: session.stepUpUntilMs === null ? null : toIso(session.stepUpUntilMs),
  }
}

export const toSignedInView = (
  parts: OperatorParts,
  signedIn: { operator: Operator; session: Session; mustEnrol: boolean },
) => ({
  operator: toOperatorView(signedIn.operator),
  session: toSessionView(signedIn.session),
  step_up_by: toStepUpWays(parts, signedIn),
  must_enrol: signedIn.mustEnrol,
})

export const toListedOperator = (operator: ListedOperator) => ({
  ...toOperatorView(operator),
  disabled: operator.disabled,
  created_at: operator.createdAt.toISOString(),
  created_by: operator.createdBy,
  last_signed_in_at: operator.lastSignedInAt?.toISOString() ?? null,
})

export function toInvitationView(invitation: ListedInvitation, nowMs: number) {
  const { acceptedAtMs, revoked, expiresAtMs } = invitation
  const ended = revoked ? 'revoked' : nowMs < expiresAtMs ? 'open' : 'expired'
  return {
    invitation_id: invitation.invitationId,
    email: invitation.email,
    name: invitation.name,
    role: invitation.role,
    tenants: invitation.tenants === 'all' ? ('all' as const) : [...invitation.tenants],
    state: acceptedAtMs === null ? ended : ('accepted' as const),
    created_at: toIso(invitation.createdAtMs),
    created_by: invitation.createdBy,
    expires_at: toIso(expiresAtMs),
  } as const
}

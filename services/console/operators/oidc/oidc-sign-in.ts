/**
 * What an identity of the provider may do here. Only accounts that exist, or are invited, sign in:
 * the first time by their verified email, from then on by the provider's name for the person.
 */
import { Problem } from '#shared/core/http/problem.ts'
import { oidcClockSkewMs } from '#shared/core/operators/oidc-attempt.ts'
import { emailPattern, normalizeEmail } from '#shared/core/operators/operator-credentials.ts'
import { acceptInvitationOf } from '#shared/io/operators/invitation-store.ts'
import type { OidcIdentity } from '#shared/io/operators/oidc-client.ts'
import {
  bindSubject,
  lockOperatorOfEmail,
  lockOperatorOfSubject,
  type Operator,
} from '#shared/io/operators/operator-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { OperatorPrincipal } from '../../http/admin-app.ts'
import { makeOperator } from '../invitations.ts'
import type { OperatorParts } from '../operator-deps.ts'
import { beginSession, type Caller, raiseSession, type SignedIn } from '../sign-in.ts'

/** Why an identity has no account here, for the log. */
type Fault =
  | 'email_missing'
  | 'email_unverified'
  | 'email_not_said_verified'
  | 'email_not_plain'
  | 'no_account'
  | 'bound_to_another'
  | 'disabled'

/** What is wrong with an account is not for a stranger: all of these get one answer. */
const operatorNotAllowed =
  'This identity cannot sign in here. It needs an invitation to its email address, and an ' +
  'identity provider that has verified the address.'
/** These say nothing of accounts, only of what the provider said. */
const words: Partial<Record<Fault, string>> = {
  email_missing:
    'The identity provider does not say your email address, by which your account is found.',
  email_unverified:
    'The identity provider says that your email address is not verified: verify it there.',
  email_not_said_verified:
    'The identity provider does not say whether your email address is verified (email_verified). ' +
    'Where it never does, an administrator sets OIDC_TRUST_EMAILS_OF.',
}

/** @throws Problem forbidden, alike for unknown, disabled and bound accounts */
export async function signInByOidc(
  parts: OperatorParts,
  identity: OidcIdentity,
  caller: Caller,
): Promise<SignedIn> {
  let fault: Fault | null = null
  let refusedOf: string | undefined
  const signedIn = await parts.postgres.transaction(async (tx) => {
    const found = await findOwner(parts, tx, identity)
    fault = typeof found === 'string' ? found : found.operator.disabled ? 'disabled' : null
    if (typeof found === 'string') return null
    refusedOf = found.operator.email
    return fault === null ? beginSession(parts, tx, { ...found, caller, by: 'oidc' }) : null
  })
  if (signedIn !== null) return signedIn
  parts.refused.note(caller.address, refusedOf)
  parts.log.warn({ reason: fault }, oidcRefusedLine)
  throw new Problem('forbidden', (fault && words[fault]) ?? operatorNotAllowed)
}

/** The line of the log for a refusal, with its `reason`. */
export const oidcRefusedLine = 'a sign-in through the identity provider was refused'

type Owner = { operator: Operator; action: 'signed_in' | 'joined' }

/** The account of an identity; one with its verified email is bound to it. */
async function findOwner(
  parts: OperatorParts,
  tx: Queryable,
  identity: OidcIdentity,
): Promise<Owner | Fault> {
  const bound = await lockOperatorOfSubject(tx, identity)
  if (bound !== null) return { operator: bound, action: 'signed_in' }
  if (identity.email === null) return 'email_missing'
  if (identity.emailVerified === null) return 'email_not_said_verified'
  if (!identity.emailVerified) return 'email_unverified'
  // Lower case makes an ASCII letter of the Kelvin sign: another address than the verified one.
  if (identity.email !== identity.email.normalize()) return 'email_not_plain'
  const email = normalizeEmail(identity.email)
  if (!emailPattern.test(email)) return 'email_not_plain'
  const operator = await lockOperatorOfEmail(tx, email)
  if (operator !== null) return bindOwner(tx, operator, identity)
  const invitation = await acceptInvitationOf(tx, email, parts.wallMs())
  if (invitation === null) return 'no_account'
  const made = await makeOperator(parts, tx, {
    ...invitation,
    name: invitation.name || email,
    passwordHash: null,
    subject: identity,
  })
  await noteBinding(tx, email, identity)
  return { operator: made, action: 'joined' }
}

async function bindOwner(
  tx: Queryable,
  operator: Operator,
  identity: OidcIdentity,
): Promise<Owner | Fault> {
  // Bound to someone else there: an address that was given to another person is not the account.
  if (operator.oidc) return 'bound_to_another'
  if (operator.disabled) return { operator, action: 'signed_in' }
  await bindSubject(tx, operator.operatorId, identity)
  await noteBinding(tx, operator.email, identity)
  return { operator: { ...operator, oidc: true }, action: 'signed_in' }
}

const noteBinding = (tx: Queryable, email: string, { issuer, subject }: OidcIdentity) =>
  insertAudit(tx, {
    actor: email,
    tenantId: null,
    action: 'operator.oidc_bound',
    after: { issuer, subject },
  })

/**
 * Steps a session up, when its own operator has just proved at the provider who they are.
 * @param begunAtMs when the attempt began, by the wall clock
 * @throws Problem step_up_refused; unauthorized when the session has ended meanwhile
 */
export async function stepUpByOidc(
  parts: OperatorParts,
  principal: OperatorPrincipal,
  { identity, begunAtMs, address }: { identity: OidcIdentity; begunAtMs: number; address: string },
): Promise<SignedIn> {
  const { operatorId, email } = principal.operator
  const fault = findStaleness(identity, begunAtMs)
  const stepped = await parts.postgres.transaction(async (tx) => {
    const owner = fault === null ? await lockOperatorOfSubject(tx, identity) : null
    if (owner?.operatorId !== operatorId) return null
    return raiseSession(parts, tx, principal, 'oidc')
  })
  if (stepped !== null) return stepped
  const reason = fault ?? 'another_identity'
  parts.refused.note(address, email)
  parts.log.warn({ reason }, oidcRefusedLine)
  throw new Problem('step_up_refused', stepUpWords[reason])
}

type StepUpFault = 'no_auth_time' | 'not_checked_again' | 'another_identity'

const stepUpWords: Record<StepUpFault, string> = {
  no_auth_time:
    'The identity provider does not say when you proved who you are (auth_time), so it cannot ' +
    'confirm this. An administrator sets OIDC_STEP_UP=totp: then a code of an authenticator app ' +
    'does, which can be set up right after signing in.',
  not_checked_again: 'The identity provider did not check again who you are.',
  another_identity: 'That is another identity than yours.',
}

function findStaleness(
  { authenticatedAtMs: atMs }: OidcIdentity,
  begunAtMs: number,
): StepUpFault | null {
  if (atMs === null) return 'no_auth_time'
  return atMs >= begunAtMs - oidcClockSkewMs ? null : 'not_checked_again'
}

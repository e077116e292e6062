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

/** One answer to everyone without an account: what is wrong with it is not for a stranger. */
const notWelcome = () =>
  new Problem(
    'forbidden',
    'This identity cannot sign in here. It needs an invitation to its email address, and an ' +
      'identity provider that has verified the address.',
  )

/** @throws Problem forbidden, alike for unknown, disabled and unverified */
export async function signInByOidc(
  parts: OperatorParts,
  identity: OidcIdentity,
  caller: Caller,
): Promise<SignedIn> {
  let refusedOf: string | undefined
  const signedIn = await parts.postgres.transaction(async (tx) => {
    const found = await findOwner(parts, tx, identity)
    refusedOf = found?.operator.email
    if (found === null || found.operator.disabled) return null
    return beginSession(parts, tx, { ...found, caller, by: 'oidc' })
  })
  if (signedIn !== null) return signedIn
  parts.refused.note(caller.address, refusedOf)
  throw notWelcome()
}

type Owner = { operator: Operator; action: 'signed_in' | 'joined' }

/** The account of an identity; one with its verified email is bound to it. */
async function findOwner(
  parts: OperatorParts,
  tx: Queryable,
  identity: OidcIdentity,
): Promise<Owner | null> {
  const bound = await lockOperatorOfSubject(tx, identity)
  if (bound !== null) return { operator: bound, action: 'signed_in' }
  if (!identity.emailVerified || identity.email === null) return null
  // Lower case makes an ASCII letter of the Kelvin sign: another address than the verified one.
  if (identity.email !== identity.email.normalize()) return null
  const email = normalizeEmail(identity.email)
  if (!emailPattern.test(email)) return null
  const operator = await lockOperatorOfEmail(tx, email)
  if (operator !== null) return bindOwner(tx, operator, identity)
  const invitation = await acceptInvitationOf(tx, email, parts.wallMs())
  if (invitation === null) return null
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
): Promise<Owner | null> {
  // Bound to someone else there: an address that was given to another person is not the account.
  if (operator.oidc) return null
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
  const { authenticatedAtMs: atMs } = identity
  const isFresh = atMs !== null && atMs >= begunAtMs - oidcClockSkewMs
  const stepped = await parts.postgres.transaction(async (tx) => {
    const owner = isFresh ? await lockOperatorOfSubject(tx, identity) : null
    if (owner?.operatorId !== operatorId) return null
    return raiseSession(parts, tx, principal, 'oidc')
  })
  if (stepped !== null) return stepped
  parts.refused.note(address, email)
  const detail = isFresh
    ? 'That is another identity than yours.'
    : 'The identity provider did not check again who you are.'
  throw new Problem('step_up_refused', detail)
}

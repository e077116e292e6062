/**
 * Signing in, stepping up and beginning sessions. Whether there is an account makes no difference
 * to the answer or its time until the password was right.
 */
import { Problem } from '#shared/core/http/problem.ts'
import {
  emailPattern,
  hashToken,
  normalizeEmail,
  operatorIdBytes,
  tokenBytes,
  toOperatorsId,
  toToken,
} from '#shared/core/operators/operator-credentials.ts'
import { mustEnrol } from '#shared/core/operators/second-factor-rule.ts'
import { stepUpMs } from '#shared/core/operators/session-times.ts'
import {
  findOperator,
  findOperatorByEmail,
  noteSignIn,
  type Operator,
  type OperatorSecrets,
} from '#shared/io/operators/operator-store.ts'
import { findRequiredSince } from '#shared/io/operators/second-factor-rule-store.ts'
import {
  insertSession,
  replaceToken,
  type Session,
  type SignedInBy,
} from '#shared/io/operators/session-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { OperatorPrincipal } from '../http/admin-app.ts'
import { tooMany } from './attempt-limits.ts'
import type { OperatorParts } from './operator-deps.ts'
import { useCode } from './second-factor/second-factor.ts'

/** Where a call comes from. */
export type Caller = { address: string; userAgent: string }

/** A session as it has just begun, or with its new token: `token` goes into the cookie. */
export type SignedIn = {
  operator: Operator
  session: Session
  token: string
  /** TOTP must be set up before anything else. */
  mustEnrol: boolean
}

/** `Retry-After` while the queue of hashes is full: about what it takes to empty. */
const busySeconds = 5
const userAgentCharactersMax = 200

/** @throws Problem forbidden while sign-in by password is switched off */
export function requirePasswords({ passwordsOff }: OperatorParts): void {
  if (!passwordsOff) return
  const detail =
    'Passwords are switched off here: sign in through the identity provider. When it cannot be ' +
    'used, an administrator makes a link on the machine: di operators reset EMAIL.'
  throw new Problem('forbidden', detail)
}

/**
 * @throws Problem forbidden while passwords are off; unauthorized (whatever of account, password
 *   and state is wrong); totp_required
 *   (the password was right; the code is missing, wrong or used); rate_limited
 */
export async function signIn(
  parts: OperatorParts,
  tried: { email: string; password: string; code?: string | undefined },
  caller: Caller,
): Promise<SignedIn> {
  const { postgres, limits, passwords, refused } = parts
  requirePasswords(parts)
  const email = normalizeEmail(tried.email)
  const attempt = limits.begin({ email, address: caller.address })
  // What is no email cannot be looked up: Postgres takes no NUL.
  const found = emailPattern.test(email) ? await findOperatorByEmail(postgres, email) : null
  const usable = found === null || found.disabled ? null : found
  const stored = usable?.passwordHash ?? null
  const right = await passwords.verify(tried.password, stored, attempt.stranger)
  if (right === null) throw tooMany(busySeconds)
  if (!right || usable === null) {
    refused.note(caller.address, found?.email)
    throw new Problem('unauthorized', 'The email or the password is wrong.')
  }
  return postgres.transaction(async (tx) => {
    // Again, under a lock: it may have been disabled or given another password meanwhile.
    const operator = await findOperator(tx, usable.operatorId, { lock: true })
    if (operator === null || operator.disabled || operator.passwordHash !== stored) {
      throw new Problem('unauthorized', 'The email or the password is wrong.')
    }
    await requireCode(parts, tx, { operator, code: tried.code, caller })
    const signedIn = await beginSession(parts, tx, {
      operator,
      caller,
      action: 'signed_in',
      by: 'password',
    })
    attempt.succeeded()
    return signedIn
  })
}

async function requireCode(
  parts: OperatorParts,
  tx: Queryable,
  tried: { operator: Operator & OperatorSecrets; code: string | undefined; caller: Caller },
): Promise<void> {
  const { operator, code, caller } = tried
  if (!operator.totp) return
  if (code === undefined) {
    throw new Problem('totp_required', 'Enter the code of your authenticator app.')
  }
  if (await useCode(parts, tx, { operator, code })) return
  parts.refused.note(caller.address, operator.email)
  throw new Problem('totp_required', 'The code is wrong or was used already.')
}

/** Begins a session with a new token. Call it in the transaction of what let the person in. */
export async function beginSession(
  { randomBytes, wallMs, knownTokens, limits }: OperatorParts,
  tx: Queryable,
  wanted: {
    operator: Operator
    caller: Caller
    action: 'signed_in' | 'joined' | 'reset'
    by: SignedInBy
  },
): Promise<SignedIn> {
  const { operator, caller, action, by } = wanted
  const atMs = wallMs()
  const token = toToken(randomBytes(tokenBytes))
  const session: Session = {
    sessionId: toOperatorsId('ses', randomBytes(operatorIdBytes)),
    operatorId: operator.operatorId,
    createdAtMs: atMs,
    lastUsedAtMs: atMs,
    stepUpUntilMs: null,
    signedInBy: by,
    address: caller.address,
    userAgent: caller.userAgent.slice(0, userAgentCharactersMax),
  }
  const tokenHash = hashToken(token)
  await insertSession(tx, { session, tokenHash })
  knownTokens.add(tokenHash)
  limits.noteSignedIn({ operatorId: operator.operatorId, address: caller.address })
  await noteSignIn(tx, operator.operatorId, atMs)
  await insertAudit(tx, {
    actor: operator.email,
    tenantId: null,
    action: `operator.${action}`,
    after: { session_id: session.sessionId, address: session.address, by },
  })
  const requiredSinceMs = await findRequiredSince(tx, operator.operatorId)
  return { operator, session, token, mustEnrol: mustEnrol(operator, session, requiredSinceMs) }
}

export type StepUpWay = 'password' | 'code' | 'oidc'

/**
 * How a session can step up. While passwords are off a password counts in the session that the link
 * for it began: that is the way in while the identity provider cannot be used.
 */
export function toStepUpWays(
  { oidc, passwordsOff }: OperatorParts,
  { operator, session }: { operator: Operator; session: Session },
): StepUpWay[] {
  const byPassword = operator.password && (!passwordsOff || session.signedInBy === 'link')
  return [
    ...(operator.totp ? (['code'] as const) : []),
    ...(byPassword ? (['password'] as const) : []),
    ...(operator.oidc && oidc?.stepsUp === true ? (['oidc'] as const) : []),
  ]
}

/**
 * Whether a session may set TOTP up without a step-up. For as long as a step-up would, a sign-in is
 * enough where TOTP must be set up right after it, and where the identity provider confirms none.
 */
export function mayEnrol(
  parts: OperatorParts,
  signedIn: { operator: Operator; session: Session; mustEnrol: boolean },
): boolean {
  const { signedInBy, createdAtMs } = signedIn.session
  if (parts.wallMs() - createdAtMs >= stepUpMs) return false
  if (signedIn.mustEnrol) return true
  const hasNoWay = parts.oidc?.stepsUp === false && toStepUpWays(parts, signedIn).length === 0
  return signedInBy === 'oidc' && hasNoWay
}

/**
 * Takes the password or a code again and gives the session a new token.
 * @throws Problem step_up_refused, rate_limited; unauthorized when the session has ended meanwhile
 */
export async function stepUp(
  parts: OperatorParts,
  principal: OperatorPrincipal,
  tried: { password?: string | undefined; code?: string | undefined; address: string },
): Promise<SignedIn> {
  const { postgres, limits } = parts
  const { operator } = principal
  const { operatorId } = operator
  const attempt = limits.beginSignedIn({ operatorId, address: tried.address })
  const passwordRight =
    tried.password !== undefined &&
    toStepUpWays(parts, principal).includes('password') &&
    (await checkPassword(parts, operatorId, tried.password))
  return postgres.transaction(async (tx) => {
    const right =
      passwordRight ||
      (tried.code !== undefined && (await stepUpByCode(parts, tx, principal, tried.code)))
    if (!right) {
      parts.refused.note(tried.address, operator.email)
      throw new Problem('step_up_refused', 'The password or the code is wrong.')
    }
    const stepped = await raiseSession(parts, tx, principal, passwordRight ? 'password' : 'code')
    attempt.succeeded()
    return stepped
  })
}

/**
 * Steps a session up, with a new token. Call it in the transaction of what proved who it is.
 * @throws Problem unauthorized when the session has ended meanwhile
 */
export async function raiseSession(
  parts: OperatorParts,
  tx: Queryable,
  principal: OperatorPrincipal,
  by: StepUpWay,
): Promise<SignedIn> {
  const { operator, session, mustEnrol: isEnrolFirst } = principal
  const stepUpUntilMs = parts.wallMs() + stepUpMs
  const token = await renewToken(parts, tx, principal, stepUpUntilMs)
  await insertAudit(tx, {
    actor: operator.email,
    tenantId: null,
    action: 'operator.stepped_up',
    after: { session_id: session.sessionId, by },
  })
  const stepped = { ...session, stepUpUntilMs }
  return { operator, session: stepped, token, mustEnrol: isEnrolFirst }
}

async function stepUpByCode(
  parts: OperatorParts,
  tx: Queryable,
  { operator: { operatorId } }: OperatorPrincipal,
  code: string,
): Promise<boolean> {
  const operator = await findOperator(tx, operatorId, { lock: true })
  return operator?.totp === true && useCode(parts, tx, { operator, code })
}

/**
 * Whether this is the operator's password.
 * @throws Problem rate_limited when no hash can be computed now
 */
export async function checkPassword(
  { postgres, passwords }: OperatorParts,
  operatorId: string,
  password: string,
): Promise<boolean> {
  const found = await findOperator(postgres, operatorId)
  const right = await passwords.verify(password, found?.passwordHash ?? null)
  if (right === null) throw tooMany(busySeconds)
  return right
}

/**
 * Gives a session a new token; the old one is dead from then on.
 * @throws Problem unauthorized when the session has ended or got another token meanwhile
 */
export async function renewToken(
  { randomBytes, knownTokens }: OperatorParts,
  tx: Queryable,
  { session, tokenHash }: OperatorPrincipal,
  stepUpUntilMs?: number,
): Promise<string> {
  const token = toToken(randomBytes(tokenBytes))
  const to = hashToken(token)
  const renewed = await replaceToken(tx, {
    sessionId: session.sessionId,
    from: tokenHash,
    to,
    ...(stepUpUntilMs === undefined ? {} : { stepUpUntilMs }),
  })
  if (!renewed) throw new Problem('unauthorized', 'The session has ended.')
  knownTokens.add(to)
  return token
}

/**
 * Sessions of operators in Postgres. A row is found by the hash of its token; whether it is still
 * valid is decided by `session-times.ts` with the caller's clock.
 */
import { sessionMaxMs, sessionsPerOperatorMax } from '#shared/core/operators/session-times.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type Operator, type OperatorRow, operatorColumns, toOperator } from './operator-store.ts'
import { requiredSinceSql } from './second-factor-rule-store.ts'

/** What began a session: a password, the identity provider, or a link. */
export type SignedInBy = 'password' | 'oidc' | 'link'

export type Session = {
  sessionId: string
  operatorId: string
  createdAtMs: number
  lastUsedAtMs: number
  stepUpUntilMs: number | null
  signedInBy: SignedInBy
  address: string
  userAgent: string
}

type SessionRow = {
  session_id: string
  operator_id: string
  created_at: Date
  last_used_at: Date
  step_up_until: Date | null
  signed_in_by: SignedInBy
  address: string
  user_agent: string
}

const sessionColumns = `s.session_id, s.operator_id, s.created_at, s.last_used_at, s.step_up_until,
  s.signed_in_by, s.address, s.user_agent`

const toSession = (row: SessionRow): Session => ({
  sessionId: row.session_id,
  operatorId: row.operator_id,
  createdAtMs: row.created_at.getTime(),
  lastUsedAtMs: row.last_used_at.getTime(),
  stepUpUntilMs: row.step_up_until?.getTime() ?? null,
  signedInBy: row.signed_in_by,
  address: row.address,
  userAgent: row.user_agent,
})

/** Begins a session. The oldest sessions of the operator end beyond the number one may have. */
export async function insertSession(
  tx: Queryable,
  { session, tokenHash }: { session: Session; tokenHash: Buffer },
): Promise<void> {
  const { sessionId, operatorId, createdAtMs, stepUpUntilMs, signedInBy } = session
  await tx.query(
    `delete from operator_sessions where session_id in (
       select session_id from operator_sessions where operator_id = $1
       order by created_at desc, session_id offset $2)`,
    [operatorId, sessionsPerOperatorMax - 1],
  )
  await tx.query(
    `insert into operator_sessions
       (session_id, token_hash, operator_id, created_at, last_used_at, step_up_until, signed_in_by,
        address, user_agent)
     values ($1, $2, $3, $4, $4, $5, $6, $7, $8)`,
    [
      sessionId,
      tokenHash,
      operatorId,
      new Date(createdAtMs),
      stepUpUntilMs === null ? null : new Date(stepUpUntilMs),
      signedInBy,
      session.address,
      session.userAgent,
    ],
  )
}

/**
 * The session of a token and its operator, valid or not.
 * @returns also since when a second factor is required of the operator
 */
export async function findSessionByToken(
  db: Queryable,
  tokenHash: Buffer,
): Promise<{ session: Session; operator: Operator; requiredSinceMs: number | null } | null> {
  const { rows } = await db.query<SessionRow & OperatorRow & { required_since: Date | null }>({
    name: 'find-operator-session',
    text: `select ${sessionColumns}, ${operatorColumns},
             case when not o.totp_enabled then ${requiredSinceSql} end as required_since
           from operator_sessions s join operators o using (operator_id)
           where s.token_hash = $1`,
    values: [tokenHash],
  })
  const [row] = rows
  if (row === undefined) return null
  const requiredSinceMs = row.required_since?.getTime() ?? null
  return { session: toSession(row), operator: toOperator(row), requiredSinceMs }
}

/** Sessions by id with their operators, valid or not. */
export async function findSessions(
  db: Queryable,
  sessionIds: readonly string[],
): Promise<{ session: Session; operator: Operator }[]> {
  const { rows } = await db.query<SessionRow & OperatorRow>({
    name: 'find-operator-sessions',
    text: `select ${sessionColumns}, ${operatorColumns}
           from operator_sessions s join operators o using (operator_id)
           where s.session_id = any($1)`,
    values: [sessionIds],
  })
  return rows.map((row) => ({ session: toSession(row), operator: toOperator(row) }))
}

/** Which of these are the hashes of tokens of sessions. */
export async function findExistingTokens(
  db: Queryable,
  tokenHashes: readonly Buffer[],
): Promise<Buffer[]> {
  const { rows } = await db.query<{ token_hash: Buffer }>({
    name: 'find-existing-tokens',
    text: 'select token_hash from operator_sessions where token_hash = any($1::bytea[])',
    values: [tokenHashes],
  })
  return rows.map(({ token_hash }) => token_hash)
}

/** Moves the last use forward, never back. */
export async function noteSessionUse(
  db: Queryable,
  sessionId: string,
  nowMs: number,
): Promise<void> {
  await db.query(
    `update operator_sessions set last_used_at = greatest(last_used_at, $2)
     where session_id = $1`,
    [sessionId, new Date(nowMs)],
  )
}

/**
 * Gives a session a new token; the old one is dead from then on.
 * @param change.stepUpUntilMs left out, the step-up stays as it is
 * @returns false when the session has ended or its token was replaced meanwhile
 */
export async function replaceToken(
  tx: Queryable,
  change: { sessionId: string; from: Buffer; to: Buffer; stepUpUntilMs?: number },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update operator_sessions
     set token_hash = $3, step_up_until = coalesce($4, step_up_until)
     where session_id = $1 and token_hash = $2`,
    [
      change.sessionId,
      change.from,
      change.to,
      change.stepUpUntilMs === undefined ? null : new Date(change.stepUpUntilMs),
    ],
  )
  return rowCount === 1
}

/** The sessions of an operator, newest first, expired ones included. */
export async function listSessions(db: Queryable, operatorId: string): Promise<Session[]> {
  const { rows } = await db.query<SessionRow>(
    `select ${sessionColumns} from operator_sessions s
     where s.operator_id = $1 order by s.created_at desc, s.session_id`,
    [operatorId],
  )
  return rows.map(toSession)
}

export async function findSession(db: Queryable, sessionId: string): Promise<Session | null> {
  const { rows } = await db.query<SessionRow>(
    `select ${sessionColumns} from operator_sessions s where s.session_id = $1`,
    [sessionId],
  )
  return rows[0] === undefined ? null : toSession(rows[0])
}

/** @returns false when it had ended already */
export async function endSession(tx: Queryable, sessionId: string): Promise<boolean> {
  const { rowCount } = await tx.query('delete from operator_sessions where session_id = $1', [
    sessionId,
  ])
  return rowCount === 1
}

/**
 * Ends all sessions of an operator.
 * @param except one that stays
 * @returns how many ended
 */
export async function endSessionsOf(
  tx: Queryable,
  operatorId: string,
  except: string | null = null,
): Promise<number> {
  const { rowCount } = await tx.query(
    `delete from operator_sessions
     where operator_id = $1 and session_id is distinct from $2`,
    [operatorId, except],
  )
  return rowCount
}

/**
 * Ends the sessions of all operators.
 * @returns how many ended
 */
export async function endEverySession(tx: Queryable): Promise<number> {
  // In one order, since several transactions may do this at once.
  const { rowCount } = await tx.query(
    `delete from operator_sessions where session_id in (
       select session_id from operator_sessions order by session_id for update)`,
  )
  return rowCount
}

/**
 * Removes sessions that are past their age, oldest first.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeExpiredSessions(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from operator_sessions where session_id in (
       select session_id from operator_sessions where created_at < $1
       order by created_at limit $2 for update skip locked)`,
    [new Date(nowMs - sessionMaxMs), most],
  )
  return rowCount
}

/**
 * Calls with an `Idempotency-Key`: the answer is written in the transaction of what the call
 * changes, so after a crash there are both or neither. A repeat within a day gets that answer.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { idempotentAnswersMax } from '#shared/core/base/limits/http.ts'
import { toJsonText, toWordPattern } from '#shared/core/base/word-pattern.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { Postgres, Queryable, Session } from '#shared/io/postgres/postgres.ts'

/** A call that must change things once. */
export type OnceCall = {
  /** Whose key it is; the tenant of an operator's call is ''. */
  tenantId: string
  actor: string
  key: string
  /** 32 bytes: what the key was first used for. */
  requestSha256: Buffer
}

export type OnceAnswer<T> = { answer: T; replayed: boolean }

/** How long an answer is kept. */
const keptMs = dayMs

/**
 * Runs a call once for its key.
 * @param work makes the change on the connection that it is given, and nothing outside Postgres;
 *   its result is JSON
 * @returns the answer, or the first one for a repeat. An error changes nothing, so a repeat tries
 *   again.
 * @throws Problem idempotency_key_in_flight, idempotency_key_reused, rate_limited, and what `work`
 *   throws
 */
export function answerOnce<T>(
  postgres: Postgres,
  call: OnceCall,
  work: (postgres: Postgres) => Promise<T>,
): Promise<OnceAnswer<T>> {
  const owner = [call.tenantId, call.actor]
  return postgres.transaction(async (tx) => {
    await lockKey(tx, call)
    const { rows } = await tx.query<{ request_sha256: Buffer; answer: string }>(
      `select request_sha256, answer from idempotent_answers
       where tenant_id = $1 and actor = $2 and idempotency_key = $3
         and created_at > clock_timestamp() - $4 * interval '1 millisecond'`,
      [...owner, call.key, keptMs],
    )
    const [first] = rows
    if (first !== undefined) {
      if (!first.request_sha256.equals(call.requestSha256)) {
        const detail = 'Use another key for another request.'
        throw new Problem('idempotency_key_reused', detail)
      }
      return { answer: JSON.parse(first.answer) as T, replayed: true }
    }
    await requireRoom(tx, owner)
    const answer = await work(toPostgres(tx))
    await tx.query(
      `insert into idempotent_answers (tenant_id, actor, idempotency_key, request_sha256, answer)
       values ($1, $2, $3, $4, $5)
       on conflict (tenant_id, actor, idempotency_key) do update
       set request_sha256 = excluded.request_sha256, answer = excluded.answer,
         created_at = excluded.created_at`,
      [...owner, call.key, call.requestSha256, JSON.stringify(answer)],
    )
    return { answer, replayed: false }
  })
}

/** Holds the key until the transaction ends. @throws Problem when another call holds it */
async function lockKey(tx: Queryable, { tenantId, actor, key }: OnceCall): Promise<void> {
  const { rows } = await tx.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as locked',
    [`idempotency ${JSON.stringify([tenantId, actor, key])}`],
  )
  if (rows[0]!.locked) return
  const detail = 'A call with this key is in progress. Its answer is kept: repeat the call later.'
  throw new Problem('idempotency_key_in_flight', detail)
}

/** @throws Problem rate_limited when the caller has as many answers as are kept */
async function requireRoom(tx: Queryable, owner: readonly string[]): Promise<void> {
  const { rows } = await tx.query<{ kept: number }>(
    `select count(*)::int as kept from (
       select from idempotent_answers where tenant_id = $1 and actor = $2
         and created_at > clock_timestamp() - $4 * interval '1 millisecond'
       limit $3) as kept`,
    [...owner, idempotentAnswersMax, keptMs],
  )
  if (rows[0]!.kept < idempotentAnswersMax) return
  const detail = `At most ${idempotentAnswersMax} idempotency keys are kept for a day.`
  throw new Problem('rate_limited', detail, { retryAfterSeconds: 3_600 })
}

/** What works on a pool works on the transaction: its own transactions are parts of it. */
function toPostgres(tx: Queryable): Postgres {
  const transaction = <T>(work: (tx: Queryable) => Promise<T>): Promise<T> => work(tx)
  const session: Session = { query: tx.query, transaction }
  const withSession = <T>(work: (session: Session) => Promise<T>): Promise<T> => work(session)
  const ofPool = () => Promise.reject(new Error('expected a pool, got a transaction'))
  return { ...session, withSession, checkReady: ofPool, close: ofPool }
}

/** Removes answers that are no longer kept. @returns how many */
export async function removeExpiredAnswers(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from idempotent_answers where (tenant_id, actor, idempotency_key) in (
       select tenant_id, actor, idempotency_key from idempotent_answers
       where created_at < $1 order by created_at limit $2 for update skip locked)`,
    [new Date(nowMs - keptMs), most],
  )
  return rowCount
}

/**
 * Erases the answers of a tenant that hold an id as a value or as a word of a note. Those of
 * operators need not name their tenant, so of these all that hold the id go. A repeat of an erased
 * answer's call makes the change again.
 */
export async function eraseAnswers(db: Queryable, tenantId: string, id: string): Promise<void> {
  await db.query(
    `delete from idempotent_answers
     where tenant_id in ($1, '') and strpos(answer, $2) > 0 and answer ~ $3`,
    [tenantId, toJsonText(id), toWordPattern(toJsonText(id))],
  )
}

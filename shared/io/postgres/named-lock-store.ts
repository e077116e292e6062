/**
 * Named locks in Postgres: one of any number of processes does a task at a time. A lock ends with
 * its connection, so a crash leaves none behind. It belongs to a transaction, not to a session,
 * because a pooler keeps only a transaction on one connection.
 */
import type { Postgres, Queryable, Session } from './postgres.ts'
import { PostgresUnavailableError } from './postgres.ts'

/** Separate pools for the locks and for the work under them. */
export type Locks = { holders: Postgres; work: Postgres }

/**
 * Runs `work` under the lock of this name.
 * @returns null when another process has it
 */
export async function tryNamedLock<T>(
  locks: Locks,
  name: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return whileLocked(locks, name, 'pg_try_advisory_xact_lock', work)
}

/**
 * Waits for the lock of this name, up to the holders' `lockTimeoutMs`, and runs `work` under it.
 * @param work its session fails once the lock is lost with its connection
 * @throws lockNotAvailable when the wait is over
 */
export async function withNamedLock<T>(
  locks: Locks,
  name: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return (await whileLocked(locks, name, 'pg_advisory_xact_lock', work)) as T
}

async function whileLocked<T>(
  { holders, work: postgres }: Locks,
  name: string,
  lockFunction: 'pg_advisory_xact_lock' | 'pg_try_advisory_xact_lock',
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return holders.withSession(async (holder) => {
    let outcome: { result: T | null } | undefined
    try {
      await holder.transaction(async (tx) => {
        const { rows } = await tx.query<{ locked: boolean }>(
          `select ${lockFunction}(hashtextextended($1, 0))::text <> 'false' as locked`,
          [name],
        )
        if (!rows[0]!.locked) {
          outcome = { result: null }
          return
        }
        // The transaction is idle while the work runs.
        await tx.query('set local idle_in_transaction_session_timeout = 0')
        outcome = { result: await work(toFenced(postgres, name, await findHolder(tx))) }
      })
    } catch (error) {
      // Losing the lock after the work has ended does no harm.
      if (outcome === undefined) throw error
    }
    return outcome!.result
  })
}

/** @returns the transaction that has the lock, as `pg_locks` names it */
async function findHolder(tx: Queryable): Promise<string> {
  const { rows } = await tx.query<{ holder: string }>(
    `select virtualtransaction as holder from pg_locks
     where locktype = 'advisory' and pid = pg_backend_pid() limit 1`,
  )
  return rows[0]!.holder
}

/**
 * A session whose transactions run one at a time and only while the lock exists: a transaction that
 * began before the lock was lost ends before the next holder's transactions begin.
 */
function toFenced(postgres: Postgres, name: string, holder: string): Session {
  const transaction: Session['transaction'] = (work) =>
    postgres.withSession((session) =>
      session.transaction(async (tx) => {
        await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 1))', [name])
        const { rowCount } = await tx.query(
          `select 1 from pg_locks where locktype = 'advisory' and virtualtransaction = $1`,
          [holder],
        )
        if (rowCount === 0) {
          throw new PostgresUnavailableError(new Error(`the lock ${name} was lost`))
        }
        return work(tx)
      }),
    )
  return { transaction, query: (sql, values) => transaction((tx) => tx.query(sql, values)) }
}

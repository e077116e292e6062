// A clock for the database: `now()` in production statements is replaced by the test's time, in the
// text of each statement. Defaults of columns keep the real clock.
import type { Postgres, Queryable, Session, Sql } from '#shared/io/postgres/postgres.ts'

/** The same database at another time. */
export function atTime(postgres: Postgres, clock: { nowMs: () => number }): Postgres {
  const shift = (sql: string | Sql): string | Sql => {
    const now = `timestamptz '${new Date(clock.nowMs()).toISOString()}'`
    const replace = (text: string) => text.replace(/\bnow\(\)/g, now)
    // Without its name, because a named statement has one text.
    return typeof sql === 'string'
      ? replace(sql)
      : { text: replace(sql.text), ...(sql.values === undefined ? {} : { values: sql.values }) }
  }
  const toQuery =
    (db: Queryable): Queryable['query'] =>
    (sql, values) =>
      db.query(shift(sql), values)
  const toTransaction =
    (db: Session | Postgres): Session['transaction'] =>
    (work) =>
      db.transaction((tx) => work({ query: toQuery(tx) }))
  return {
    ...postgres,
    query: toQuery(postgres),
    transaction: toTransaction(postgres),
    withSession: (work) =>
      postgres.withSession((session) =>
        work({ query: toQuery(session), transaction: toTransaction(session) }),
      ),
  }
}

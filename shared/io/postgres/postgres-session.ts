/**
 * What a new connection to PostgreSQL needs before it is used. Connected directly, its settings are
 * set once and hot statements are prepared by name. Behind a pooler such as PgBouncer neither
 * lasts: each transaction may run on another connection of the server, so settings are set within
 * each transaction and no statement has a name. A pooler shows itself: the process id it announces
 * is not that of the server process that answers.
 */
import type pg from 'pg'

/** Settings of PostgreSQL by name, times in ms. */
export type SessionSettings = Readonly<Record<string, string>>

/** How statements are run on one connection. */
export type ConnectionMode = {
  /** Whether statements may be prepared by name. */
  named: boolean
  /** What begins a transaction, with the settings that do not last. */
  begin: string
  /** Whether a statement of its own needs a transaction around it, for these settings. */
  wrap: boolean
}

/** Names of settings are ours, values are numbers and words: nothing to escape. */
const toSetLocal = (settings: SessionSettings): string =>
  Object.entries(settings)
    .map(([name, value]) => `; set local ${name} = '${value}'`)
    .join('')

/**
 * Finds out what is at the other end and sets what can be set for good: one round trip, two behind
 * a pooler. There a role that has the settings already (`alter role ... set`) saves a lone
 * statement its transaction.
 */
export async function prepareConnection(
  client: pg.ClientBase,
  settings: SessionSettings,
): Promise<ConnectionMode> {
  const names = Object.keys(settings)
  const values = Object.values(settings)
  // What pg keeps of the server's announcement; its types leave it out.
  const { processID } = client as pg.ClientBase & { processID: number | null }
  const { rows } = await client.query<{ direct: boolean }>(
    `select pg_backend_pid() = $1 as direct,
       (select count(case when pg_backend_pid() = $1 then set_config(name, value, false) end)
        from unnest($2::text[], $3::text[]) as wanted (name, value)) as set`,
    [processID, names, values],
  )
  if (rows[0]!.direct) return { named: true, begin: 'begin', wrap: false }
  const found = await client.query<{ same: boolean }>(
    `select coalesce(bool_and(setting = value), true) as same
     from unnest($1::text[], $2::text[]) as wanted (name, value)
     left join pg_settings using (name)`,
    [names, values],
  )
  return { named: false, begin: `begin${toSetLocal(settings)}`, wrap: !found.rows[0]!.same }
}

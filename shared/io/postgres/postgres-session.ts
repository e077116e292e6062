/**
 * Prepares a new connection to PostgreSQL. On a direct connection settings are set once and hot
 * statements are prepared by name. Behind a pooler such as PgBouncer each transaction may run on
 * another server connection, so settings are set within each transaction and statements have no
 * name. A pooler is detected by its process id, which differs from that of the server process.
 */
import type pg from 'pg'
import { UnfitServerError } from '#shared/io/process/connect-faults.ts'

/** Settings of PostgreSQL by name, times in ms. */
export type SessionSettings = Readonly<Record<string, string>>

/** How statements run on one connection. */
export type ConnectionMode = {
  /** Whether statements may be prepared by name. */
  named: boolean
  /** The statement that begins a transaction, with settings that apply to it alone. */
  begin: string
  /** Whether a single statement needs a transaction around it, for these settings. */
  wrap: boolean
}

/** A server that takes no writes, where they are required. */
export class ReadOnlyServerError extends UnfitServerError {
  constructor() {
    super('is read-only, as a standby is')
    this.name = 'ReadOnlyServerError'
  }
}

/** Names and values are constants of this code: there is nothing to escape. */
const toSetLocal = (settings: SessionSettings): string =>
  Object.entries(settings)
    .map(([name, value]) => `; set local ${name} = '${value}'`)
    .join('')

/**
 * Detects a pooler and sets lasting settings: one round trip, two behind a pooler. There a role
 * with the same settings (`alter role ... set`) saves a single statement its transaction.
 * @throws ReadOnlyServerError with `readWrite`, when the server takes no writes
 */
export async function prepareConnection(
  client: pg.ClientBase,
  { settings, readWrite }: { settings: SessionSettings; readWrite: boolean },
): Promise<ConnectionMode> {
  const names = Object.keys(settings)
  const values = Object.values(settings)
  // Announced by the server; missing in the types of pg.
  const { processID } = client as pg.ClientBase & { processID: number | null }
  const { rows } = await client.query<{ direct: boolean; is_read_only: boolean }>(
    `select pg_backend_pid() = $1 as direct,
       current_setting('transaction_read_only') = 'on' as is_read_only,
       (select count(case when pg_backend_pid() = $1 then set_config(name, value, false) end)
        from unnest($2::text[], $3::text[]) as wanted (name, value)) as set`,
    [processID, names, values],
  )
  if (readWrite && rows[0]!.is_read_only) throw new ReadOnlyServerError()
  if (rows[0]!.direct) return { named: true, begin: 'begin', wrap: false }
  const found = await client.query<{ same: boolean }>(
    `select coalesce(bool_and(setting = value), true) as same
     from unnest($1::text[], $2::text[]) as wanted (name, value)
     left join pg_settings using (name)`,
    [names, values],
  )
  return { named: false, begin: `begin${toSetLocal(settings)}`, wrap: !found.rows[0]!.same }
}

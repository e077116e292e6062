/**
 * Prepares a new connection to PostgreSQL. On a direct connection settings are set once and hot
 * statements are prepared by name. Behind a pooler such as PgBouncer each transaction may run on
 * another server connection, so settings are set within each transaction and statements have no
 * name. A pooler is detected by its process id, which differs from that of the server process.
 */
import type pg from 'pg'
import { UnfitServerError } from '#shared/io/process/connect-faults.ts'
import {
  describeUnfit,
  type ServerFacts,
  type SessionSettings,
  serverFactsSql,
} from './session-settings.ts'

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

/** Read committed is what every transaction of ours counts on. */
const begin = 'begin isolation level read committed'

/** Names and values are constants of this code: there is nothing to escape. */
const toSetLocal = (settings: readonly { name: string; value: string }[]): string =>
  settings.map(({ name, value }) => `; set local ${name} = '${value}'`).join('')

type ConnectionNeeds = {
  settings: SessionSettings
  /** Whether the server must take writes. */
  readWrite: boolean
  /** Whether the database is ours, not one that ours is created from. */
  own: boolean
}

/**
 * Detects a pooler and sets lasting settings: one round trip, two behind a pooler. There a role
 * with the same settings (`alter role ... set`) saves a single statement its transaction.
 * @throws ReadOnlyServerError with `readWrite`, when the server takes no writes; UnfitServerError
 *   with `own`, when the database is not as the service needs it
 */
export async function prepareConnection(
  client: pg.ClientBase,
  { settings, readWrite, own }: ConnectionNeeds,
): Promise<ConnectionMode> {
  const names = Object.keys(settings)
  const values = Object.values(settings)
  // Announced by the server; missing in the types of pg.
  const { processID } = client as pg.ClientBase & { processID: number | null }
  const { rows } = await client.query<{ direct: boolean; is_read_only: boolean } & ServerFacts>(
    `select pg_backend_pid() = $1 as direct,
       current_setting('transaction_read_only') = 'on' as is_read_only,
       (select count(case when pg_backend_pid() = $1 then set_config(name, value, false) end)
        from unnest($2::text[], $3::text[]) as wanted (name, value)
        where current_setting(name, true) is not null) as set,
       ${serverFactsSql}`,
    [processID, names, values],
  )
  const [found] = rows
  if (readWrite && found!.is_read_only) throw new ReadOnlyServerError()
  const unfit = own ? describeUnfit(found!) : null
  if (unfit !== null) throw new UnfitServerError(unfit)
  if (found!.direct) return { named: true, begin, wrap: false }
  const { rows: known } = await client.query<{ name: string; value: string; lasts: boolean }>(
    // What comes from the server's configuration can change while the connection lives.
    `select name, value, setting = value and source in
         ('database', 'user', 'database user', 'client', 'session') as lasts
     from unnest($1::text[], $2::text[]) as wanted (name, value) join pg_settings using (name)`,
    [names, values],
  )
  const wrap = known.some(({ lasts }) => !lasts)
  return { named: false, begin: `${begin}${toSetLocal(known)}`, wrap }
}

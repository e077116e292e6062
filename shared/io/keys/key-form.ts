/**
 * Which form of sealed texts and directory entries is in force: one fact of the installation, in
 * Postgres. A console reads it every second, and writes nothing that depends on it before it knows
 * it. The switch from `old` to `new` is part of `di secrets rewrap`.
 */
import { unavailable } from '#shared/core/http/problem.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import type { KeyForm } from './console-keys.ts'

/** How often a console looks before the switch, which waits twice as long for the others. */
export const keyFormPollMs = 1_000
/** How often it looks once the present form is in force: only a restored Postgres changes that. */
const settledPollMs = 60_000

export async function readKeyForm(db: Queryable): Promise<KeyForm> {
  const { rows } = await db.query<{ form: KeyForm }>('select form from key_form')
  return rows[0]!.form
}

/** @returns false when the form was another one */
export async function changeKeyForm(
  db: Queryable,
  { from, to }: { from: KeyForm; to: KeyForm },
): Promise<boolean> {
  const { rowCount } = await db.query('update key_form set form = $2 where form = $1', [from, to])
  return rowCount === 1
}

export type KnownForm = {
  /** @throws Problem unavailable before Postgres has answered once */
  read: () => KeyForm
  /** Reads it now. @throws when Postgres is away */
  refresh: () => Promise<KeyForm>
  /** Follows changes until it is stopped. */
  start: (log: Log) => Poller
}

export function createKnownForm(db: Queryable): KnownForm {
  let known: KeyForm | null = null
  const refresh = async () => {
    known = await readKeyForm(db)
    return known
  }
  return {
    read: () => {
      if (known === null) throw unavailable('Postgres has not answered yet.')
      return known
    },
    refresh,
    start: (log) =>
      startPolling(
        async () => {
          await refresh()
        },
        {
          log,
          everyMs: () => (known === 'new' ? settledPollMs : keyFormPollMs),
          failure: 'the form of keys cannot be read',
        },
      ),
  }
}

/** What the name of a connection to Postgres ends with when its process reads the new form. */
export const readsNewForm = ' keys/2'

/**
 * @returns processes of an older release that would read neither the new sealed texts nor the
 *   signed directory, by the names of their connections
 */
export async function listOlderProcesses(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct split_part(application_name, ' ', 2) as name from pg_stat_activity
     where datname = current_database()
       and application_name ~ '^device-intelligence (delivery|console)( |$)'
       and right(application_name, ${readsNewForm.length}) <> '${readsNewForm}'
     order by name`,
  )
  return rows.map(({ name }) => name)
}

/**
 * Stops one of two consoles with SIGSTOP in the middle of a job, and sees the other one go on with
 * it. A trigger on the table of leases tells of each that is taken, at once.
 */
import pg from 'pg'
import { until } from '../../support/process/until.ts'

type Taken = { name: string; holder: string }

export type LeaseWatch = {
  /**
   * Stops the process that has the lease of this name, in the middle of its work.
   * @param begin makes the work begin, again each time that it ended before its process stopped
   */
  stopHolder: (name: string, begin?: () => Promise<unknown>) => Promise<StoppedHolder>
  close: () => Promise<void>
}

type StoppedHolder = {
  pid: number
  /** Waits until another process has the lease. @returns the seconds since the stop */
  awaitTakeover: () => Promise<number>
  resume: () => void
}

const traceSql = `
  create or replace function tell_lease() returns trigger language plpgsql as $$
  begin
    perform pg_notify('leases', json_build_object('name', new.name, 'holder', new.holder)::text);
    return null;
  end $$;
  create or replace trigger tell_taken after insert or update of token on leases
    for each row execute function tell_lease();`

/** @param postgresUrl of the owner of the tables */
export async function watchLeases(postgresUrl: string): Promise<LeaseWatch> {
  const client = new pg.Client({ connectionString: postgresUrl })
  await client.connect()
  await client.query(traceSql)
  await client.query('listen leases')
  let onTaken: (taken: Taken) => void = () => undefined
  client.on('notification', ({ payload }) => onTaken(JSON.parse(payload!) as Taken))
  const findHolder = async (name: string): Promise<string | undefined> => {
    const { rows } = await client.query<Taken>('select holder from leases where name = $1', [name])
    return rows[0]?.holder
  }
  const stopOnce = async (name: string, begin: () => Promise<unknown>): Promise<number | null> => {
    const { promise: taken, resolve: stop } = Promise.withResolvers<string>()
    const stopHolder = (holder: string) => {
      process.kill(toPid(holder), 'SIGSTOP')
      stop(holder)
    }
    onTaken = (found) => {
      if (found.name !== name) return
      onTaken = () => undefined
      stopHolder(found.holder)
    }
    await begin()
    const present = await findHolder(name)
    if (present !== undefined) onTaken({ name, holder: present })
    const holder = await taken
    if ((await findHolder(name)) === holder) return toPid(holder)
    // It had ended its work already.
    process.kill(toPid(holder), 'SIGCONT')
    return null
  }
  return {
    stopHolder: async (name, begin = async () => undefined) => {
      const pid = await until(`${name} is stopped`, () => stopOnce(name, begin))
      const sinceMs = performance.now()
      let takenMs: number | null = null
      onTaken = (found) => {
        if (found.name === name && toPid(found.holder) !== pid) takenMs ??= performance.now()
      }
      return {
        pid,
        awaitTakeover: async () => {
          const endMs = await until(`another process goes on with ${name}`, () => takenMs)
          return (endMs - sinceMs) / 1000
        },
        resume: () => process.kill(pid, 'SIGCONT'),
      }
    },
    close: () => client.end(),
  }
}

/** A holder is named by its host and process. */
const toPid = (holder: string): number => Number(holder.split(' ').at(-1))

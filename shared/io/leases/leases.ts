/**
 * Leases of named work in Postgres: one of any number of processes does it at a time. A lease ends
 * by itself when its holder does not renew it, so a process that crashed or hangs keeps nothing.
 * Whoever was away for longer than a lease must not write on: each write of the work goes through
 * the lease, which refuses it once another process may have taken over.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { workLeaseMs } from '#shared/core/base/limits/tenants.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  isSqlState,
  type Postgres,
  PostgresUnavailableError,
  type Session,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { checkWrites } from './check-writes.ts'

export type Leases = {
  /** For taking and renewing: work that uses all connections of its own must not delay it. */
  renewals: Postgres
  /** For the work. */
  work: Postgres
  /** How long a lease lasts that is not renewed; 8 s by default. */
  leaseMs?: number
}

/**
 * The right to do a work. What it says of Postgres is exact: a transaction and a lease's change of
 * hands wait for each other. A write in ClickHouse or NATS begins only while half of the lease is
 * left, so what is written there must do no harm when a process that hung sends it late.
 */
export type Lease = Session & {
  /** Aborts when another process has the work. */
  signal: AbortSignal
  /**
   * Call it before a write that is neither a transaction of this lease nor of its `fence`.
   * @throws PostgresUnavailableError when the lease is lost, or cannot be renewed in time
   */
  check: () => Promise<void>
  /** @returns a client whose writes check this lease first */
  fence: (clickhouse: Clickhouse) => Clickhouse
}

/** Pause between two attempts to get a lease. */
const retryMs = 50

/**
 * Runs `work` under the lease of this name.
 * @param waitMs how long to wait while another holder has it
 * @returns null when another holder has it
 */
export async function withLease<T>(
  leases: Leases,
  name: string,
  work: (lease: Lease) => Promise<T>,
  waitMs = 0,
): Promise<T | null> {
  const deadlineMs = performance.now() + waitMs
  for (;;) {
    const held = await takeLease(leases, name)
    if (held !== null) {
      try {
        return await work(held.lease)
      } finally {
        await held.end()
      }
    }
    if (performance.now() >= deadlineMs) return null
    await pause(retryMs)
  }
}

type Held = { lease: Lease; end: () => Promise<void> }

async function takeLease(leases: Leases, name: string): Promise<Held | null> {
  const { renewals, leaseMs = workLeaseMs } = leases
  const token = randomUUID()
  const takenMs = performance.now()
  try {
    const { rowCount } = await renewals.query(
      // The first condition spares a lease that is held every lock; the second one decides.
      `insert into leases as held (name, token, holder, expires_at)
       select $1, $2, $3, clock_timestamp() + $4 * interval '1 ms'
       where not exists (select from leases where name = $1 and expires_at > clock_timestamp())
       on conflict (name) do update
         set token = excluded.token, holder = excluded.holder, expires_at = excluded.expires_at
         where held.expires_at <= clock_timestamp()`,
      [name, token, `${hostname()} ${process.pid}`, leaseMs],
    )
    return rowCount === 0 ? null : hold(leases, { name, token, takenMs })
  } catch (error) {
    // A transaction of the holder before has not ended.
    if (isSqlState(error, sqlStates.lockNotAvailable)) return null
    throw error
  }
}

type Holding = { name: string; token: string; takenMs: number }

function hold(leases: Leases, { name, token, takenMs }: Holding): Held {
  const { renewals, work, leaseMs = workLeaseMs } = leases
  const lost = new AbortController()
  const requireHeld = (rowCount: number) => {
    if (rowCount > 0) return
    lost.abort()
    throw new PostgresUnavailableError(new Error(`the lease ${name} was lost`))
  }
  let renewedMs = takenMs
  let renewing: Promise<void> | null = null
  const sendRenewal = async () => {
    const sentMs = performance.now()
    const { rowCount } = await renewals.query(
      `update leases set expires_at = clock_timestamp() + $3 * interval '1 ms'
       where name = $1 and token = $2`,
      [name, token, leaseMs],
    )
    requireHeld(rowCount)
    renewedMs = sentMs
  }
  const renew = (): Promise<void> => {
    renewing ??= sendRenewal().finally(() => {
      renewing = null
    })
    return renewing
  }
  // A failure shows itself at the next write. A loss ends the renewals.
  const timer = setInterval(() => void renew().catch(stopWhenLost), leaseMs / 4)
  const stopWhenLost = () => {
    if (lost.signal.aborted) clearInterval(timer)
  }
  const check = async () => {
    if (lost.signal.aborted) requireHeld(0)
    if (performance.now() - renewedMs > leaseMs / 2) await renew()
  }
  const transaction: Session['transaction'] = (write) =>
    work.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        'select from leases where name = $1 and token = $2 for key share',
        [name, token],
      )
      requireHeld(rowCount)
      return write(tx)
    })
  const end = async () => {
    clearInterval(timer)
    await renewing?.catch(() => undefined)
    if (lost.signal.aborted) return
    // One that cannot be released expires.
    await renewals
      .query('delete from leases where name = $1 and token = $2', [name, token])
      .catch(() => undefined)
  }
  const lease: Lease = {
    transaction,
    query: (sql, values) => transaction((tx) => tx.query(sql, values)),
    signal: lost.signal,
    check,
    fence: (clickhouse) => checkWrites(clickhouse, check),
  }
  return { lease, end }
}

/**
 * The lease of a webhook secret: how long after a read the secret may sign. A delivery process
 * counts it on its monotonic clock from before the read. A rotation waits for the lease before it
 * returns, so nothing signed with the old secret is sent afterwards, even if processes stop or
 * crash. If Postgres is too slow for the lease, a delivery process extends it and reads again.
 */
import {
  webhookSecretLeaseExtendedMs,
  webhookSecretLeaseMaxMs,
  webhookSecretLeaseMs,
} from '#shared/core/base/limits/deliveries.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** SQL over `webhook_secret_lease`: the lease in ms of secrets read by this statement. */
export const secretLeaseMs = `case when webhook_secret_lease.extended_until > now()
  then webhook_secret_lease.lease_ms else ${webhookSecretLeaseMs} end`

/** SQL: whether secrets with the extended lease may still sign. */
const isExtended = `extended_until + lease_ms * interval '1 millisecond' > now()`

/**
 * Extends the lease of secrets read in the next five minutes. It never shortens a lease that is in
 * use.
 */
export async function extendSecretLease(db: Queryable, leaseMs: number): Promise<void> {
  const { rowCount } = await db.query(
    `update webhook_secret_lease
     set lease_ms = greatest($1, case when ${isExtended} then lease_ms else 0 end),
       extended_until = now() + ${webhookSecretLeaseExtendedMs} * interval '1 millisecond'`,
    [Math.min(Math.ceil(leaseMs), webhookSecretLeaseMaxMs)],
  )
  if (rowCount !== 1) throw new Error('the lease of webhook secrets has no row')
}

/**
 * Reads the longest lease that the old secret can have and locks it until the transaction ends.
 * Call it in the transaction that replaces a webhook secret, before it does.
 * @returns ms to wait after the commit
 */
export async function lockSecretLease(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ lease_ms: number }>(
    `select case when ${isExtended} then lease_ms else ${webhookSecretLeaseMs} end as lease_ms
     from webhook_secret_lease for share`,
  )
  return rows[0]!.lease_ms
}

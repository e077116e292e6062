/**
 * How old a reading of a webhook secret may be when it signs: its lease. A delivery process counts
 * it on its own monotonic clock from before it asked, and a rotation waits as long before it
 * returns, so nothing signed with the old secret is sent afterwards, whatever stops, crashes or is
 * cut off meanwhile. Where Postgres answers too slowly for the lease, a delivery process extends it
 * first and reads again.
 */
import {
  webhookSecretLeaseExtendedMs,
  webhookSecretLeaseMaxMs,
  webhookSecretLeaseMs,
} from '#shared/core/deliveries/delivery-limits.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** SQL over `webhook_secret_lease`: the lease, in ms, of what this statement reads. */
export const secretLeaseMs = `case when webhook_secret_lease.extended_until > now()
  then webhook_secret_lease.lease_ms else ${webhookSecretLeaseMs} end`

/** SQL: readings with the extended lease may still sign. */
const isExtended = `extended_until + lease_ms * interval '1 millisecond' > now()`

/**
 * Extends the lease of what is read from now on, for five minutes. It never shortens a lease that a
 * reading may still have.
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
 * For the transaction that replaces a webhook secret, before it does: the longest lease that a
 * reading of the old secret can have. Nobody extends it until the transaction ends.
 * @returns ms to wait after the commit
 */
export async function lockSecretLease(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ lease_ms: number }>(
    `select case when ${isExtended} then lease_ms else ${webhookSecretLeaseMs} end as lease_ms
     from webhook_secret_lease for share`,
  )
  return rows[0]!.lease_ms
}

/**
 * Takes over what an operator has confirmed after Postgres had been put back: tenants from the
 * directory, retired API keys, replaced webhook secrets and erasures from the list of removals.
 */
import { Problem } from '#shared/core/http/problem.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import { endRevivedSessions, recoverTenant } from '#shared/io/recovery/recover-tenant.ts'
import { openDirectory } from '#shared/io/tenants/directory/directory-entries.ts'
import {
  pauseRevivedWebhook,
  recoverErasure,
  retireRevivedKey,
} from '#shared/io/tenants/removal-store.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import {
  findLast4,
  findPolicyText,
  type RecoveryParts,
  readRecovery,
  rejectUnread,
} from './read-recovery.ts'

export type ApplyParts = RecoveryParts & { leases: Leases; log: Log }

/** How many of each were taken over. */
export type Recovered = { tenants: number; api_keys: number; webhooks: number; erasures: number }

/**
 * Applies everything that was listed, each part under its own transaction; a repeated call goes on
 * with what is left. All operators are signed out, because sessions that had ended are there again.
 * @param digest of the list that the operator has seen
 * @throws Problem recovery_changed when the list is another one by now
 */
export async function applyRecovery(
  parts: ApplyParts,
  { digest, actor }: { digest: string; actor: string },
): Promise<Recovered> {
  const { postgres, nats, sealer, log } = parts
  const recovery = await readRecovery(parts)
  if (recovery.digest !== digest) {
    throw new Problem(
      'recovery_changed',
      'What is to be recovered is no longer what you have seen. Look again. Nothing was changed.',
    )
  }
  const done: Recovered = { tenants: 0, api_keys: 0, webhooks: 0, erasures: 0 }
  const directory = await openDirectory(nats, sealer).catch(rejectUnread)
  for (const entry of recovery.entries) {
    const policyText = await findPolicyText(directory, entry).catch(rejectUnread)
    const state = { entry, policyText, hmacLast4: findLast4(sealer, entry), actor }
    const isDone = await withTenantLease(parts.leases, entry.tenant_id, (session) =>
      session.transaction((tx) => recoverTenant(tx, state)),
    )
    if (isDone) done.tenants++
    else log.error({ tenantId: entry.tenant_id }, 'a tenant could not be recovered')
  }
  for (const key of recovery.api_keys) {
    if (await retireRevivedKey(postgres, key, actor)) done.api_keys++
  }
  for (const { tenant_id: tenantId } of recovery.webhooks) {
    if (await pauseRevivedWebhook(postgres, tenantId, actor)) done.webhooks++
  }
  for (const erased of recovery.erasures) {
    if (await recoverErasure(postgres, erased, actor)) done.erasures++
  }
  await postgres.transaction(async (tx) => {
    await insertAudit(tx, {
      actor,
      tenantId: null,
      action: 'recovery.applied',
      after: { ...done, digest },
    })
    if (done.tenants > 0) await endRevivedSessions(tx, actor)
  })
  log.warn({ ...done, actor }, 'Postgres took over what it had forgotten')
  return done
}

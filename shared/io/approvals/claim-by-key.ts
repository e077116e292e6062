/**
 * The effects that API keys bring about. No key proposes or approves: one that two persons made
 * acts by their approval, and any other one is held to what one person may do.
 */
import { needsApproval } from '#shared/core/approvals/four-eyes.ts'
import { keyChangesWindowHours } from '#shared/core/base/limits/policies.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { findFourEyes } from './four-eyes-store.ts'

/**
 * Lets a change by a key pass, or not. Call it in the transaction of the change, after the lock of
 * what changes: of two calls the second one counts the first.
 * @param change.alerts how many it means; those that the key changed within a day are added
 * @throws Problem approval_required
 */
export async function claimByKey(
  tx: Queryable,
  change: { tenantId: string; keyHash: Buffer; actor: string } & (
    | { kind: 'bulk'; alerts: number }
    | { kind: 'wide_list_entry' }
  ),
): Promise<void> {
  const { tenantId, keyHash, actor } = change
  const fourEyes = await findFourEyes(tx, tenantId)
  if (!fourEyes.enabled) return
  const { rows } = await tx.query<{ approved: boolean; changed: number }>(
    `select approved_by is not null as approved, (
       select count(*) from (
         select from alert_dispositions
         where tenant_id = $2 and actor = $3 and actor like 'api-key:%'
           and at > clock_timestamp() - $4 * interval '1 hour'
         limit $5 + 1) as counted) as changed
     from api_keys where key_hash = $1`,
    [keyHash, tenantId, actor, keyChangesWindowHours, fourEyes.bulkAbove],
  )
  const { approved = false, changed = 0 } = rows[0] ?? {}
  const alerts = change.kind === 'bulk' ? change.alerts + changed : 0
  if (approved || !needsApproval(fourEyes, { kind: change.kind, alerts })) return
  throw new Problem(
    'approval_required',
    `Tenant ${tenantId} wants four eyes. Nothing was changed. A key that one person made changes at ` +
      `most ${fourEyes.bulkAbove} alerts within ${keyChangesWindowHours} hours, and lists no ` +
      'country, operator or wide network. Let two administrators make a key.',
  )
}

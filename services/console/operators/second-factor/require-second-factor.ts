/** Asks operators for a second factor: those of a tenant, or all of the console. */
import { toIso } from '#shared/core/base/instants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  findSecondFactorRule,
  insertSecondFactorRule,
  removeSecondFactorRule,
} from '#shared/io/operators/second-factor-rule-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { actorOf, type Principal } from '../../http/admin-app.ts'
import { requireTenant } from '../../tenants/manage-tenants.ts'
import type { OperatorParts } from '../operator-deps.ts'

/** Whose rule: of a tenant by its slug, or of all operators. */
type RuleOf = string | null

/**
 * A rule as routes answer it.
 * @throws Problem tenant_not_found
 */
export async function showSecondFactorRule(db: Queryable, tenantId: RuleOf) {
  if (tenantId !== null) await requireTenant(db, tenantId)
  const rule = await findSecondFactorRule(db, tenantId)
  const ofAll = tenantId === null ? rule : await findSecondFactorRule(db, null)
  return {
    tenant_id: tenantId,
    required: rule !== null,
    since: rule === null ? null : toIso(rule.sinceMs),
    required_of_all: ofAll !== null,
  }
}

/**
 * Makes or removes a rule; what is so already stays as it is. Nobody is locked out: whoever has no
 * second factor is asked to set it up, and who makes the rule has shown that it can be done here.
 * @throws Problem tenant_not_found; conflict when the caller has no second factor
 */
export async function requireSecondFactor(
  { postgres, wallMs }: Pick<OperatorParts, 'postgres' | 'wallMs'>,
  change: { tenantId: RuleOf; required: boolean; principal: Principal | null },
) {
  const { tenantId, required, principal } = change
  if (required) requireOwnFactor(principal)
  return postgres.transaction(async (tx) => {
    if (tenantId !== null) await requireTenant(tx, tenantId)
    const isChanged = required
      ? await insertSecondFactorRule(tx, { tenantId, sinceMs: wallMs() })
      : await removeSecondFactorRule(tx, tenantId)
    if (isChanged) {
      await insertAudit(tx, {
        actor: actorOf(principal),
        tenantId,
        action: 'second_factor.set',
        before: { required: !required },
        after: { required },
      })
    }
    return showSecondFactorRule(tx, tenantId)
  })
}

function requireOwnFactor(principal: Principal | null): void {
  if (principal?.kind !== 'operator') return
  if (principal.operator.totp || principal.session.signedInBy === 'oidc') return
  const detail = 'Set up your own second factor first, on the page Account.'
  throw new Problem('conflict', detail)
}

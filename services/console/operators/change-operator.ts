/** What an administrator changes of an operator. */
import { Problem } from '#shared/core/http/problem.ts'
import type { Role, TenantScope } from '#shared/core/operators/roles.ts'
import {
  findOperator,
  listOperators,
  lockWithActiveAdmins,
  type Operator,
  updateOperator,
} from '#shared/io/operators/operator-store.ts'
import { endSessionsOf } from '#shared/io/operators/session-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { operatorNotFound, requireTenants } from './invitations.ts'
import type { OperatorParts } from './operator-deps.ts'
import { toListedOperator } from './operator-views.ts'

export type OperatorChange = {
  operatorId: string
  role?: Role | undefined
  tenants?: TenantScope | undefined
  disabled?: boolean | undefined
  name?: string | undefined
  actor: string
}

/**
 * Changes an operator; disabling one ends all their sessions.
 * @throws Problem operator_not_found, tenant_not_found; last_admin when no active administrator of
 *   all tenants would be left
 */
export async function changeOperator(
  { postgres, wallMs }: OperatorParts,
  { operatorId, actor, ...change }: OperatorChange,
): Promise<ReturnType<typeof toListedOperator>> {
  await postgres.transaction(async (tx) => {
    const admins = await lockWithActiveAdmins(tx, operatorId)
    const before = await findOperator(tx, operatorId)
    if (before === null) throw operatorNotFound(operatorId)
    const after: Operator = {
      ...before,
      role: change.role ?? before.role,
      tenants: change.tenants ?? before.tenants,
      disabled: change.disabled ?? before.disabled,
      name: change.name ?? before.name,
    }
    if (admins.length === 1 && admins[0] === operatorId && !isActiveAdmin(after)) {
      const detail = `${before.email} is the last active administrator of all tenants.`
      throw new Problem('last_admin', detail)
    }
    await requireTenants(tx, after.tenants)
    await updateOperator(tx, after, wallMs())
    const ended = after.disabled ? await endSessionsOf(tx, operatorId) : 0
    await insertAudit(tx, {
      actor,
      tenantId: null,
      action: 'operator.changed',
      before: toAudited(before),
      after: { ...toAudited(after), sessions_ended: ended },
    })
  })
  const changed = (await listOperators(postgres)).find((one) => one.operatorId === operatorId)
  return toListedOperator(changed!)
}

const isActiveAdmin = ({ role, tenants, disabled }: Operator): boolean =>
  role === 'admin' && tenants === 'all' && !disabled

const toAudited = ({ email, name, role, tenants, disabled }: Operator) => ({
  email,
  name,
  role,
  tenants,
  disabled,
})

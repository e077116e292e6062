/** A tenant's rules of cases. */
import type { CaseRules } from '#shared/core/cases/case-rules.ts'
import type { CaseRulesView } from '#shared/core/cases/case-schemas.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { readCaseRules } from '#shared/io/alerts/cases/present-cases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { tellCases } from './case-changes.ts'

const toView = (rules: CaseRules): CaseRulesView => ({
  group_by: rules.groupBy,
  reopen_days: rules.reopenDays,
  block_due_hours: rules.blockDueHours,
  review_due_hours: rules.reviewDueHours,
})

export const showCaseRules = async (db: Queryable, tenantId: string): Promise<CaseRulesView> =>
  toView(await readCaseRules(db, tenantId))

/**
 * Sets the rules. Due times of open cases follow; how alerts are grouped and when cases open again
 * is of alerts that are raised from now on.
 */
export function setCaseRules(
  db: Session,
  { tenantId, actor, rules }: { tenantId: string; actor: string; rules: CaseRulesView },
): Promise<CaseRulesView> {
  return db.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    const before = await showCaseRules(tx, tenantId)
    await tx.query(
      `insert into case_rules (tenant_id, group_by, reopen_days, block_due_hours, review_due_hours)
       values ($1, $2, $3, $4, $5)
       on conflict (tenant_id) do update set group_by = excluded.group_by,
         reopen_days = excluded.reopen_days, block_due_hours = excluded.block_due_hours,
         review_due_hours = excluded.review_due_hours`,
      [tenantId, rules.group_by, rules.reopen_days, rules.block_due_hours, rules.review_due_hours],
    )
    await tx.query(
      `update cases as c set block_due_hours = $2, review_due_hours = $3, due_at = (
         select min(a.created_at + case a.action when 'BLOCK' then $2 else $3 end
           * interval '1 hour')
         from alerts as a
         where a.tenant_id = $1 and a.case_id = c.case_id and a.disposition = 'OPEN')
       where c.tenant_id = $1 and c.closed_at is null
         and (c.block_due_hours, c.review_due_hours) <> ($2, $3)`,
      [tenantId, rules.block_due_hours, rules.review_due_hours],
    )
    await tellCases(tx, tenantId, null)
    await insertAudit(tx, { actor, tenantId, action: 'case_rules.set', before, after: rules })
    return rules
  })
}

/** What labels say was lost by the devices, users, sessions and events of cases. */
import { retractedLabel } from '#shared/core/outcomes/labels.ts'
import { formatAmount } from '#shared/core/outcomes/money.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type Money = { currency: string; amount: string }

// The latest label of a subject and external id counts, and a loss with one external id once, even
// when it is said of a device and of its session. A tenant without labels costs one look.
const moneySql = `
with subjects as (
  select distinct a.case_id, one.kind, one.id
  from alerts as a
  cross join lateral (values ('device', a.device_id), ('user', a.user_id),
    ('session', a.session_id), ('event', a.event_id)) as one (kind, id)
  where a.tenant_id = $1 and a.case_id = any($2) and one.id is not null
    and exists (select from label_totals where tenant_id = $1 and labels > 0)
), latest as (
  select distinct on (s.case_id, l.subject_kind, l.subject_id, l.external_id)
    s.case_id, l.label_id, l.external_id, l.seq, l.label, l.amount, l.currency
  from subjects as s
  join labels as l on l.tenant_id = $1 and l.subject_kind = s.kind and l.subject_id = s.id
  order by s.case_id, l.subject_kind, l.subject_id, l.external_id, l.seq desc
), losses as (
  select distinct on (case_id, case when external_id = '' then label_id else external_id end)
    case_id, amount, currency
  from latest where label <> '${retractedLabel}' and amount is not null
  order by case_id, case when external_id = '' then label_id else external_id end, seq desc
)
select case_id, currency, sum(amount)::text as amount
from losses group by case_id, currency order by case_id, currency`

/** @returns by case, by currency; a case without losses has no entry */
export async function readCaseMoney(
  db: Queryable,
  tenantId: string,
  caseIds: readonly string[],
): Promise<Map<string, Money[]>> {
  const money = new Map<string, Money[]>()
  if (caseIds.length === 0) return money
  const { rows } = await db.query<Money & { case_id: string }>(moneySql, [tenantId, caseIds])
  for (const { case_id: caseId, currency, amount } of rows) {
    const present = money.get(caseId) ?? []
    money.set(caseId, [...present, { currency, amount: formatAmount(amount, currency) }])
  }
  return money
}

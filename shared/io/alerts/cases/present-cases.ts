/** The rules of tenants, and the cases that the next alerts of subjects fall into. */
import { randomBytes } from 'node:crypto'
import type { CaseSubjectKind, FlagCounts } from '#shared/core/cases/case.ts'
import {
  type CaseRules,
  defaultCaseRules,
  type PresentCase,
} from '#shared/core/cases/case-rules.ts'
import { type TenantSubject, toSubjectKey } from '#shared/core/cases/raised-cases.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export const newCaseId = (): string => `cas_${randomBytes(16).toString('base64url')}`

/** The columns of a tenant's rules; all are null when it has none of its own. */
export type CaseRulesRow = {
  group_by: CaseSubjectKind | null
  reopen_days: number | null
  block_due_hours: number | null
  review_due_hours: number | null
}

export const caseRulesColumns = 'group_by, reopen_days, block_due_hours, review_due_hours'

/** A tenant's own rules, or the product's. */
export const toCaseRules = (row: CaseRulesRow | undefined): CaseRules =>
  row === undefined || row.group_by === null
    ? defaultCaseRules
    : {
        groupBy: row.group_by,
        reopenDays: row.reopen_days!,
        blockDueHours: row.block_due_hours!,
        reviewDueHours: row.review_due_hours!,
      }

export async function readCaseRules(db: Queryable, tenantId: string): Promise<CaseRules> {
  const { rows } = await db.query<CaseRulesRow>(
    `select ${caseRulesColumns} from case_rules where tenant_id = $1`,
    [tenantId],
  )
  return toCaseRules(rows[0])
}

/** SQL: the phone that the install of a row of `phone_corrections` is on by it. */
const correctedPhone = 'case when undone_at is null then phone_id else from_phone_id end'
// Of an install whose corrections are all undone the service's decision counts.
const latestFirst = '(undone_at is null) desc, at desc'

/** SQL: the phone that the install of an alert is on now; without corrections the alert's own. */
export const presentPhoneSql = (alert: string): string => `coalesce((
  select ${correctedPhone} from phone_corrections as p
  where p.tenant_id = ${alert}.tenant_id and p.device_id = ${alert}.device_id collate "C"
  order by ${latestFirst} limit 1), ${alert}.phone_id)`

/**
 * The phones of installs that analysts corrected, undone corrections included: an alert may be
 * raised after a correction of its event's phone. Call it under the lock of the tenants' alerts.
 * @returns by tenant and device id, with a space between them
 */
export async function findCorrectedPhones(
  tx: Queryable,
  installs: readonly { tenantId: string; deviceId: string }[],
): Promise<Map<string, string>> {
  const { rows } = await tx.query<{ tenant_id: string; device_id: string; phone_id: string }>({
    name: 'find-corrected-phones',
    text: `select distinct on (tenant_id, device_id) tenant_id, device_id,
             ${correctedPhone} as phone_id
           from unnest($1::text[], $2::text[]) as wanted (tenant_id, device_id)
           join phone_corrections using (tenant_id, device_id)
           order by tenant_id, device_id, ${latestFirst}`,
    values: [installs.map(({ tenantId }) => tenantId), installs.map(({ deviceId }) => deviceId)],
  })
  return new Map(rows.map((row) => [`${row.tenant_id} ${row.device_id}`, row.phone_id]))
}

/**
 * The case that the alerts of each subject fall into: an open one before a closed one, then the one
 * that began last; of a merged one the case that has its alerts. Call it under the lock of the
 * tenants' alerts.
 * @returns by `toSubjectKey`; a subject without a case has no entry
 */
export async function findPresentCases(
  tx: Queryable,
  wanted: readonly TenantSubject[],
): Promise<Map<string, PresentCase>> {
  const distinct = [...new Map(wanted.map((one) => [toSubjectKey(one), one])).values()]
  const { rows } = await tx.query<{
    place: number
    case_id: string
    closed_ms: number | null
    flags: FlagCounts
  }>({
    name: 'find-present-cases',
    // The fence keeps the planner from reading all cases of the tenant, by an index that begins with
    // it: without statistics it takes a tenant to have as few cases as a subject.
    text: `select place, found.case_id, flags, (extract(epoch from closed_at) * 1000)::float8 as closed_ms
           from unnest($1::text[], $2::text[], $3::text[]) with ordinality
             as wanted (tenant_id, kind, id, place)
           cross join lateral (
             select coalesce(target.case_id, c.case_id) as case_id,
               coalesce(target.flags, c.flags) as flags,
               case when target.case_id is null then c.closed_at else target.closed_at end
                 as closed_at
             from cases as c left join cases as target on target.case_id = c.merged_into
             where c.subject_id = wanted.id and c.subject_kind = wanted.kind
               and c.tenant_id || '' = wanted.tenant_id and c.takes_alerts
             order by (coalesce(target.open_count, c.open_count) > 0) desc,
               c.first_alert_at desc, c.case_id
             limit 1
           ) as found`,
    values: [
      distinct.map(({ tenantId }) => tenantId),
      distinct.map(({ subject }) => subject.kind),
      distinct.map(({ subject }) => subject.id),
    ],
  })
  return new Map(
    rows.map(({ place, case_id: caseId, closed_ms: closedAtMs, flags }) => [
      toSubjectKey(distinct[place - 1]!),
      { caseId, closedAtMs, flags },
    ]),
  )
}

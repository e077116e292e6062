/**
 * Moves alerts between cases: merges a case into another one, splits alerts off, and puts alerts
 * that have no case into one. What cases count follows by triggers.
 */
import { caseChangedAlertsMax, caseStepAlerts } from '#shared/core/base/limits/alerts.ts'
import type { CaseSubject, CaseSubjectKind, ShownCase } from '#shared/core/cases/case.ts'
import { type CaseRules, toCaseSubject } from '#shared/core/cases/case-rules.ts'
import { toSubjectKey } from '#shared/core/cases/raised-cases.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import {
  findPresentCases,
  newCaseId,
  presentPhoneSql,
  readCaseRules,
} from '#shared/io/alerts/cases/present-cases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { type CaseOfScope, lockCase, moveNotes, recordCaseEvent } from './change-case.ts'
import { readCase } from './list-cases.ts'

/**
 * Moves all alerts and notes of a case into another one, which also gets new alerts of its subject.
 * @throws Problem case_not_found, conflict when one is merged already, has too many alerts, or
 *   both together too many notes
 */
export function mergeCases(
  db: Session,
  wanted: CaseOfScope & { into: string },
): Promise<ShownCase> {
  const { caseId, into, actor } = wanted
  return db.transaction(async (tx) => {
    const from = await lockCase(tx, wanted)
    const { tenant_id: tenantId, alert_count: alerts } = from
    if (into === caseId) throw new Problem('conflict', 'A case cannot be merged into itself.')
    await lockCase(tx, { ...wanted, caseId: into, scope: [tenantId] })
    requireFewAlerts(alerts)
    await tx.query('update cases set merged_into = $2 where case_id = $1 or merged_into = $1', [
      caseId,
      into,
    ])
    await tx.query('update alerts set case_id = $3 where tenant_id = $1 and case_id = $2', [
      tenantId,
      caseId,
      into,
    ])
    await moveNotes(tx, { from: caseId, into, path: '$.into' })
    const details = { from: caseId, into, alerts }
    for (const one of [caseId, into]) {
      await recordCaseEvent(tx, { caseId: one, kind: 'merged', actor, details })
    }
    await insertAudit(tx, { actor, tenantId, action: 'case.merged', after: details })
    return readCase(tx, into)
  })
}

function requireFewAlerts(alerts: number): void {
  if (alerts <= caseChangedAlertsMax) return
  const detail = `A case with more than ${caseChangedAlertsMax} alerts cannot be merged into another one.`
  throw new Problem('conflict', detail)
}

type AlertOfCase = {
  alert_id: string
  device_id: string
  user_id: string | null
  phone_id: string | null
}

const toSubject = (alert: AlertOfCase, rules: CaseRules): CaseSubject =>
  toCaseSubject(
    { deviceId: alert.device_id, userId: alert.user_id, phoneId: alert.phone_id },
    rules,
  )

/**
 * Splits alerts of a case off into a new one. It is about their subject when they have one of their
 * own, and then gets new alerts of it; else it is about the subject of the case, which goes on to
 * get them.
 * @throws Problem case_not_found; conflict when some are not of the case, or when all are
 */
export function splitCase(
  db: Session,
  wanted: CaseOfScope & { alertIds: readonly string[] },
): Promise<{ case: ShownCase; from: ShownCase }> {
  const { caseId, actor } = wanted
  const alertIds = [...new Set(wanted.alertIds)]
  return db.transaction(async (tx) => {
    const from = await lockCase(tx, wanted)
    const { tenant_id: tenantId } = from
    const { rows } = await tx.query<AlertOfCase>(
      `select alert_id, device_id, user_id, ${presentPhoneSql('a')} as phone_id from alerts as a
       where tenant_id = $1 and case_id = $2 and alert_id = any($3) order by alert_id`,
      [tenantId, caseId, alertIds],
    )
    if (rows.length < alertIds.length) {
      throw new Problem('conflict', 'Some of the alerts are not of this case.')
    }
    if (rows.length === from.alert_count) {
      throw new Problem('conflict', 'A case keeps one alert at least.')
    }
    const rules = await readCaseRules(tx, tenantId)
    const old: CaseSubject = { kind: from.subject_kind, id: from.subject_id }
    const subject = toOnlySubject(rows, rules) ?? old
    const isOwn = subject.kind !== old.kind || subject.id !== old.id
    const into = newCaseId()
    await insertEmptyCases(tx, tenantId, rules, [{ caseId: into, subject, takesAlerts: isOwn }])
    // New alerts of the subject came here by a merge until now.
    if (isOwn) {
      await tx.query(
        `update cases set takes_alerts = false
         where merged_into = $1 and subject_kind = $2 and subject_id = $3`,
        [caseId, subject.kind, subject.id],
      )
    }
    await tx.query('update alerts set case_id = $3 where tenant_id = $1 and alert_id = any($2)', [
      tenantId,
      alertIds,
      into,
    ])
    const details = { from: caseId, into, alerts: alertIds.length }
    for (const one of [caseId, into]) {
      await recordCaseEvent(tx, { caseId: one, kind: 'split', actor, details })
    }
    await insertAudit(tx, { actor, tenantId, action: 'case.split', after: details })
    return { case: await readCase(tx, into), from: await readCase(tx, caseId) }
  })
}

function toOnlySubject(alerts: readonly AlertOfCase[], rules: CaseRules): CaseSubject | null {
  const [first, ...rest] = alerts.map((alert) => toSubject(alert, rules))
  const isSame = (one: CaseSubject) => one.kind === first!.kind && one.id === first!.id
  return first !== undefined && rest.every(isSame) ? first : null
}

export type EmptyCase = { caseId: string; subject: CaseSubject; takesAlerts: boolean }

/** Cases that get their alerts in the same transaction; until then they count nothing. */
export async function insertEmptyCases(
  tx: Queryable,
  tenantId: string,
  rules: CaseRules,
  cases: readonly EmptyCase[],
): Promise<void> {
  await tx.query(
    `insert into cases (tenant_id, case_id, subject_kind, subject_id, takes_alerts,
       first_alert_at, latest_alert_at, closed_at, block_due_hours, review_due_hours)
     select $1, case_id, kind, id, takes_alerts, now(), now(), '-infinity', $6, $7
     from unnest($2::text[], $3::text[], $4::text[], $5::boolean[])
       as begun (case_id, kind, id, takes_alerts)`,
    [
      tenantId,
      cases.map(({ caseId }) => caseId),
      cases.map(({ subject }): CaseSubjectKind => subject.kind),
      cases.map(({ subject }) => subject.id),
      cases.map(({ takesAlerts }) => takesAlerts),
      rules.blockDueHours,
      rules.reviewDueHours,
    ],
  )
}

/** A tenant with alerts that have no case, raised by a release before cases; null without one. */
export async function findCaseless(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from tenants as t
     where exists (select from alerts as a where a.tenant_id = t.tenant_id and a.case_id is null)
     limit 1`,
  )
  return rows[0]?.tenant_id ?? null
}

/**
 * Puts the newest alerts of a tenant that have no case into the case of their subject: the one that
 * is there, whatever its state, else a new one, so older alerts of a subject are one case.
 * @returns how many; 0 when every alert has a case
 */
export function placeAlerts(db: Session, tenantId: string): Promise<number> {
  return db.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    const { rows } = await tx.query<AlertOfCase>(
      `select alert_id, device_id, user_id, ${presentPhoneSql('a')} as phone_id from alerts as a
       where tenant_id = $1 and case_id is null
       order by created_at desc, alert_id desc limit ${caseStepAlerts}`,
      [tenantId],
    )
    if (rows.length === 0) return 0
    const rules = await readCaseRules(tx, tenantId)
    const placed = rows.map((alert) => ({ tenantId, subject: toSubject(alert, rules) }))
    const found = await findPresentCases(tx, placed)
    const caseOf = new Map([...found].map(([key, { caseId }]) => [key, caseId]))
    const begun: EmptyCase[] = []
    for (const one of placed) {
      if (caseOf.has(toSubjectKey(one))) continue
      const caseId = newCaseId()
      caseOf.set(toSubjectKey(one), caseId)
      begun.push({ caseId, subject: one.subject, takesAlerts: true })
    }
    await insertEmptyCases(tx, tenantId, rules, begun)
    await tx.query(
      `update alerts as a set case_id = placed.case_id
       from unnest($2::text[], $3::text[]) as placed (alert_id, case_id)
       where a.tenant_id = $1 and a.alert_id = placed.alert_id`,
      [
        tenantId,
        rows.map((row) => row.alert_id),
        placed.map((one) => caseOf.get(toSubjectKey(one))!),
      ],
    )
    return rows.length
  })
}

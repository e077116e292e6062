/**
 * Lets open cases follow a correction of a phone. The install's alerts that are in an open case
 * about the phone it leaves go to the case that an alert of the phone it comes to would fall into
 * now. A case that has no other alerts moves as a whole: it becomes the case of the other phone, or
 * is merged into that phone's case with its notes. Closed cases, and what analysts merged into a
 * case about another subject or split off, stay where they are.
 */
import { caseChangedAlertsMax } from '#shared/core/base/limits/alerts.ts'
import type { CaseSubject } from '#shared/core/cases/case.ts'
import { type CaseRules, decideCase, decideRegroup } from '#shared/core/cases/case-rules.ts'
import { toSubjectKey } from '#shared/core/cases/raised-cases.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  findPresentCases,
  newCaseId,
  readCaseRules,
} from '#shared/io/alerts/cases/present-cases.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { tellCases } from './case-changes.ts'
import { moveNotes, recordCaseEvent } from './change-case.ts'
import { insertEmptyCases } from './move-alerts.ts'

/** An install that is on another phone from now on. */
export type MovedInstall = {
  tenantId: string
  deviceId: string
  fromPhoneId: string
  phoneId: string
  actor: string
}

/** An open case about the phone that an install leaves, with how many of its alerts are its own. */
type LeftCase = {
  case_id: string
  takes_alerts: boolean
  alert_count: number
  own_alerts: number
}

/**
 * Call it under the lock of the tenant's alerts, after the correction is written: an alert that is
 * raised later falls into the case of the phone that the install is on.
 * @throws Problem conflict when a case would lose or gain more alerts than one change may move, or
 *   get more notes than it may have
 */
export async function regroupCases(tx: Queryable, moved: MovedInstall): Promise<void> {
  if (moved.fromPhoneId === moved.phoneId) return
  const { rows: left } = await tx.query<LeftCase>(
    `select c.case_id, c.takes_alerts, c.alert_count, own.alerts as own_alerts
     from cases as c cross join lateral (
       select count(*) as alerts from alerts as a
       where a.tenant_id = c.tenant_id and a.case_id = c.case_id and a.device_id = $3) as own
     where c.subject_id = $2 and c.subject_kind = 'phone' and c.tenant_id = $1
       and c.closed_at is null and own.alerts > 0
     order by c.first_alert_at, c.case_id`,
    [moved.tenantId, moved.fromPhoneId, moved.deviceId],
  )
  if (left.length === 0) return
  const rules = await readCaseRules(tx, moved.tenantId)
  // One after the other: the first may become what the next one goes into.
  for (const one of left) await regroupCase(tx, { ...moved, left: one, rules })
}

type Regroup = MovedInstall & { left: LeftCase; rules: CaseRules }

async function regroupCase(tx: Queryable, wanted: Regroup): Promise<void> {
  const { tenantId, left, rules, phoneId } = wanted
  const subject: CaseSubject = { kind: 'phone', id: phoneId }
  const found = await findPresentCases(tx, [{ tenantId, subject }])
  const present = found.get(toSubjectKey({ tenantId, subject })) ?? null
  const { rows } = await tx.query<{ now_ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms',
  )
  const isNew = decideCase(present, rules, rows[0]!.now_ms) === 'begin'
  const targetId = isNew ? null : present!.caseId
  const step = decideRegroup({
    takesAlerts: left.takes_alerts,
    isWhole: left.own_alerts === left.alert_count,
    isThere: targetId === left.case_id,
    hasTarget: targetId !== null,
  })
  if (step === 'stay') return
  if (step === 'rename') return renameCase(tx, wanted)
  if (left.own_alerts > caseChangedAlertsMax) throw tooManyAlerts()
  const into = targetId ?? newCaseId()
  if (targetId === null) {
    await insertEmptyCases(tx, tenantId, rules, [{ caseId: into, subject, takesAlerts: true }])
  }
  if (step === 'merge') await mergeInto(tx, left.case_id, into)
  await tx.query(
    `update alerts set case_id = $4 where tenant_id = $1 and case_id = $2 and device_id = $3`,
    [tenantId, left.case_id, wanted.deviceId, into],
  )
  await recordRegroup(tx, wanted, into)
}

const tooManyAlerts = () =>
  new Problem(
    'conflict',
    `An open case has more than ${caseChangedAlertsMax} alerts of the install: judge them first.`,
  )

/** The case becomes the other phone's, with its id, notes, assignee and history. */
async function renameCase(tx: Queryable, wanted: Regroup): Promise<void> {
  const { tenantId, left, phoneId } = wanted
  await tellCases(tx, tenantId, [left.case_id])
  await tx.query('update cases set subject_id = $2 where case_id = $1', [left.case_id, phoneId])
  await recordRegroup(tx, wanted, left.case_id)
}

/** The case leads to the other one; new alerts of the phone that it was about begin a new case. */
async function mergeInto(tx: Queryable, caseId: string, into: string): Promise<void> {
  await tx.query(
    `update cases set merged_into = $2,
       takes_alerts = case when case_id = $1 then false else takes_alerts end
     where case_id = $1 or merged_into = $1`,
    [caseId, into],
  )
  await moveNotes(tx, { from: caseId, into, path: '$.phone_id' })
}

async function recordRegroup(tx: Queryable, wanted: Regroup, into: string): Promise<void> {
  const { actor, left, phoneId, fromPhoneId } = wanted
  const details = {
    from: left.case_id,
    into,
    alerts: left.own_alerts,
    from_phone_id: fromPhoneId,
    phone_id: phoneId,
  }
  for (const caseId of new Set([left.case_id, into])) {
    await recordCaseEvent(tx, { caseId, kind: 'regrouped', actor, details })
  }
}

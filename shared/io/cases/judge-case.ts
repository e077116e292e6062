/**
 * Judges a case: sets the disposition of its open alerts, each with its own history and webhook,
 * and may label its devices or users and put them on a list. All of it is one transaction.
 */
import { caseChangedAlertsMax, caseSubjectsMax } from '#shared/core/base/limits/alerts.ts'
import type { CaseSubjectKind } from '#shared/core/cases/case.ts'
import type { Judged, JudgementBody } from '#shared/core/cases/case-schemas.ts'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type LabelBody, labelBody } from '#shared/core/outcomes/label-schemas.ts'
import { setDispositions } from '#shared/io/alerts/set-dispositions.ts'
import { claimChange } from '#shared/io/approvals/claim-change.ts'
import { addListEntry } from '#shared/io/lists/change-lists.ts'
import { addLabels } from '#shared/io/outcomes/change-labels.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import type { FoundCase } from './case-columns.ts'
import { type CaseOfScope, lockCase, recordCaseEvent } from './change-case.ts'
import { readCase, readEntities } from './list-cases.ts'

export type Judgement = CaseOfScope & {
  judgement: JudgementBody
  /** The wall clock. */
  nowMs: number
}

/**
 * @throws Problem case_not_found; approval_required for more alerts than the tenant lets one person
 *   judge at once; case_changed when its alerts changed since `expected_version`;
 *   conflict when it was merged, has too many open alerts, or is about too many devices or users
 *   to label or list; invalid_body for a label or an entry that cannot be
 */
export function judgeCase(db: Session, wanted: Judgement): Promise<Judged> {
  const { caseId, actor, judgement, nowMs } = wanted
  const { disposition, note = null, label, list } = judgement
  return db.transaction(async (tx) => {
    const row = await lockCase(tx, wanted)
    requireUnchanged(row, judgement.expected_version)
    const alertIds = await findOpenAlerts(tx, row)
    const { tenant_id: tenantId } = row
    await claimChange(tx, { tenantId, kind: 'bulk', alerts: alertIds.length, actor })
    const changed = await setDispositions(tx, {
      tenantId,
      alerts: alertIds.map((alertId) => ({ alertId, disposition })),
      actor,
      note,
      jobId: null,
      undoOf: null,
    })
    const by = { tenantId, actor, nowMs }
    const labelIds = label === undefined ? [] : await addCaseLabels(tx, row, { ...by, label })
    const entryIds = list === undefined ? [] : await addCaseEntries(tx, row, { ...by, list })
    // What was judged is done, also where an alert of it is still open.
    await tx.query(
      `update cases set leased_by = null, leased_until = null where case_id = $1 and leased_by = $2`,
      [caseId, actor],
    )
    const details = {
      disposition,
      alerts: changed.length,
      note,
      ...(label === undefined ? {} : { label: label.label, labels: labelIds.length }),
      ...(list === undefined ? {} : { list: list.list, entries: entryIds.length }),
    }
    await recordCaseEvent(tx, { caseId, kind: 'judged', actor, details })
    const after = { case_id: caseId, ...details }
    await insertAudit(tx, { actor, tenantId, action: 'case.judged', after })
    return {
      case: await readCase(tx, caseId),
      judged: changed.length,
      label_ids: labelIds,
      entry_ids: entryIds,
    }
  })
}

/** An alert that came since, or one that was judged since, was not seen. */
function requireUnchanged(row: FoundCase, expected: number | undefined): void {
  if (expected === undefined || expected === row.version) return
  const { version, state, alert_count, open_count, judged_by } = row
  throw new Problem('case_changed', 'The alerts of the case have changed since you saw them.', {
    presentCase: { version, state, alerts: alert_count, open_alerts: open_count, judged_by },
  })
}

async function findOpenAlerts(
  tx: Queryable,
  { tenant_id: tenantId, case_id: caseId }: FoundCase,
): Promise<string[]> {
  const { rows } = await tx.query<{ alert_id: string }>(
    `select alert_id from alerts where tenant_id = $1 and case_id = $2 and disposition = 'OPEN'
     order by alert_id limit ${caseChangedAlertsMax + 1}`,
    [tenantId, caseId],
  )
  if (rows.length > caseChangedAlertsMax) {
    throw new Problem(
      'conflict',
      `The case has more than ${caseChangedAlertsMax} open alerts: judge them by a bulk change ` +
        'with its case_id as the filter.',
    )
  }
  return rows.map((row) => row.alert_id)
}

type By = { tenantId: string; actor: string; nowMs: number }

/** Whom a label or an entry is for: users of a case about a user, else devices. */
async function findSubjects(
  tx: Queryable,
  row: FoundCase,
  on: 'device' | 'user' = defaultKinds[row.subject_kind],
): Promise<{ kind: 'device' | 'user'; ids: string[] }> {
  const found = await readEntities(tx, row.tenant_id, row.case_id, caseSubjectsMax + 1)
  const ids = on === 'device' ? found.devices : found.users
  if (ids.length === 0) throw new Problem('conflict', 'The alerts of the case name no user.')
  if (ids.length <= caseSubjectsMax) return { kind: on, ids }
  throw new Problem(
    'conflict',
    `The case is about more than ${caseSubjectsMax} ${on}s: label or list them one by one.`,
  )
}

const defaultKinds: Record<CaseSubjectKind, 'device' | 'user'> = {
  phone: 'device',
  device: 'device',
  user: 'user',
}

/** The writers' own transactions are parts of this one. */
const toSession = (tx: Queryable): Session => ({
  query: tx.query,
  transaction: (work) => work(tx),
})

async function addCaseLabels(
  tx: Queryable,
  row: FoundCase,
  { label, ...by }: By & { label: NonNullable<JudgementBody['label']> },
): Promise<string[]> {
  const { on, ...rest } = label
  const { kind, ids } = await findSubjects(tx, row, on)
  const body = ids.map((id) =>
    toLabel(rest, kind === 'device' ? { device_id: id } : { user_id: id }),
  )
  const { data } = await addLabels(toSession(tx), { ...by, body })
  return data.map((one) => one.label_id)
}

/** Placeholder ids, and an amount without currency, are refused as in a label of its own. */
function toLabel(
  { occurred_at: atMs, ...rest }: Omit<LabelBody, 'subject'>,
  subject: LabelBody['subject'],
): LabelBody {
  const parsed = labelBody.safeParse({ ...rest, subject }, { error: describeFault })
  if (parsed.success)
    return { ...parsed.data, ...(atMs === undefined ? {} : { occurred_at: atMs }) }
  const errors = parsed.error.issues.map(({ path, message }) => ({
    path: ['$.label', ...path].join('.'),
    message,
  }))
  throw new Problem('invalid_body', 'The case cannot be labelled so.', { errors })
}

async function addCaseEntries(
  tx: Queryable,
  row: FoundCase,
  { list, ...by }: By & { list: NonNullable<JudgementBody['list']> },
): Promise<string[]> {
  const { on, ...rest } = list
  const { kind, ids } = await findSubjects(tx, row, on)
  const entryIds: string[] = []
  for (const id of ids) {
    const entry = await addListEntry(toSession(tx), { ...by, entry: { ...rest, kind, id } })
    entryIds.push(entry.entry_id)
  }
  return entryIds
}

/**
 * Into which case an alert falls. Alerts are grouped by phone (of an alert without one by device),
 * by device, or by user (of an alert without one by device), as the tenant has it. New alerts join
 * the subject's case while it is open; a closed one is opened again by an alert within some days
 * of its end; later a new case begins. The phone of an alert is the one that its install is on by
 * the corrections of analysts: when one moves an install to another phone, its alerts in the open
 * case of the phone that it leaves follow it.
 */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import type { Decision } from '#shared/core/alerts/dispositions.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  blockDueHoursDefault,
  reopenDaysDefault,
  reviewDueHoursDefault,
} from '#shared/core/base/limits/alerts.ts'
import type { CaseSubject, CaseSubjectKind, FlagCounts } from './case.ts'

/** A tenant's rules. */
export type CaseRules = {
  groupBy: CaseSubjectKind
  /** Days after its end in which a new alert opens a closed case again; 0: never. */
  reopenDays: number
  /** Hours after which an open alert is overdue, by its action. */
  blockDueHours: number
  reviewDueHours: number
}

export const defaultCaseRules: CaseRules = {
  groupBy: 'phone',
  reopenDays: reopenDaysDefault,
  blockDueHours: blockDueHoursDefault,
  reviewDueHours: reviewDueHoursDefault,
}

/** What the rule reads of an alert. */
export type GroupedAlert = Pick<AlertCandidate, 'deviceId' | 'userId'> & {
  phoneId: string | null
}

/** Whom the case of an alert is about. */
export function toCaseSubject(
  { deviceId, userId, phoneId }: GroupedAlert,
  { groupBy }: Pick<CaseRules, 'groupBy'>,
): CaseSubject {
  const own = { phone: phoneId, user: userId, device: deviceId }[groupBy]
  return own === null ? { kind: 'device', id: deviceId } : { kind: groupBy, id: own }
}

/** The case of a subject that its next alert may fall into. */
export type PresentCase = {
  caseId: string
  /** When the last of its alerts was judged; null while it is open. */
  closedAtMs: number | null
  flags: FlagCounts
}

/** What a new alert does to the case of its subject. */
export type CaseStep = 'join' | 'reopen' | 'begin'

/**
 * @param present the case that the subject's alerts fall into now; null without one
 * @param atMs when the alert is raised
 */
export function decideCase(
  present: Pick<PresentCase, 'closedAtMs'> | null,
  { reopenDays }: Pick<CaseRules, 'reopenDays'>,
  atMs: number,
): CaseStep {
  if (present === null) return 'begin'
  if (present.closedAtMs === null) return 'join'
  return atMs - present.closedAtMs < reopenDays * dayMs ? 'reopen' : 'begin'
}

/** What a correction of a phone does to an open case about the phone that an install leaves. */
export type RegroupStep = 'stay' | 'rename' | 'merge' | 'move'

/**
 * What analysts split off keeps its alerts, and is renamed when all are of the install.
 * @param left.isWhole whether all alerts of the case are of the install
 * @param left.isThere whether alerts of the phone that it comes to fall into this case already
 * @param left.hasTarget whether they fall into a case that there is
 */
export function decideRegroup(left: {
  takesAlerts: boolean
  isWhole: boolean
  isThere: boolean
  hasTarget: boolean
}): RegroupStep {
  if (left.isThere) return 'stay'
  if (!left.takesAlerts) return left.isWhole ? 'rename' : 'stay'
  if (!left.isWhole) return 'move'
  return left.hasTarget ? 'merge' : 'rename'
}

/** When an alert that stays OPEN is overdue. */
export const toDueMs = (
  alert: { action: Decision; createdAtMs: number },
  rules: Pick<CaseRules, 'blockDueHours' | 'reviewDueHours'>,
): number =>
  alert.createdAtMs +
  (alert.action === 'BLOCK' ? rules.blockDueHours : rules.reviewDueHours) * 3_600_000

/** The cases of alerts that are raised together: which case each falls into, and what cases gain. */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import type { Decision } from '#shared/core/alerts/dispositions.ts'
import { addFlags, type CaseSubject, countFlags, type FlagCounts } from './case.ts'
import {
  type CaseRules,
  decideCase,
  type PresentCase,
  toCaseSubject,
  toDueMs,
} from './case-rules.ts'

/** An alert that is raised, with its date. */
export type DatedAlert = {
  candidate: AlertCandidate
  createdAtMs: number
  /** Where analysts put its install; without, the phone that was decided counts. */
  correctedPhoneId?: string | undefined
}

/** A case as far as alerts that are raised together change it. */
export type RaisedCase = {
  caseId: string
  tenantId: string
  subject: CaseSubject
  /** Whether the alerts open it again. */
  reopened: boolean
  alerts: number
  riskScore: number
  action: Decision
  /** Of all alerts of the case. */
  flags: FlagCounts
  firstMs: number
  latestMs: number
  /** When the first of these alerts is overdue. */
  dueMs: number
  rules: CaseRules
}

/** The subject of the case of an alert, with the alert's tenant. */
export type TenantSubject = { tenantId: string; subject: CaseSubject }

/** Names a subject among all tenants. */
export const toSubjectKey = ({ tenantId, subject }: TenantSubject): string =>
  JSON.stringify([tenantId, subject.kind, subject.id])

/** Whom the case of a raised alert is about. */
export function toRaisedSubject(
  { candidate, correctedPhoneId }: Omit<DatedAlert, 'createdAtMs'>,
  rules: CaseRules,
): TenantSubject {
  const { tenantId, deviceId, userId, phone } = candidate
  const phoneId = correctedPhoneId ?? phone?.phoneId ?? null
  return { tenantId, subject: toCaseSubject({ deviceId, userId, phoneId }, rules) }
}

/**
 * Puts alerts into cases.
 * @param alerts in the order of their dates within a tenant
 * @param found the present cases of their subjects, by `toSubjectKey`
 * @param newCaseId the id of a case that begins
 * @returns the case of each alert, in their order, and what the cases gain
 */
export function raiseIntoCases(
  alerts: readonly DatedAlert[],
  {
    rulesOf,
    found,
    newCaseId,
  }: {
    rulesOf: (tenantId: string) => CaseRules
    found: ReadonlyMap<string, PresentCase>
    newCaseId: () => string
  },
): { caseIds: string[]; cases: RaisedCase[] } {
  const bySubject = new Map<string, string>()
  const groups = new Map<string, Group>()
  const caseIds = alerts.map((alert) => {
    const rules = rulesOf(alert.candidate.tenantId)
    const about = toRaisedSubject(alert, rules)
    const key = toSubjectKey(about)
    // Alerts that are raised together are a moment apart: later ones join what the first is in.
    const caseId = bySubject.get(key) ?? place(alert, about, rules)
    bySubject.set(key, caseId)
    groups.get(caseId)!.alerts.push(alert)
    return caseId
  })
  return { caseIds, cases: [...groups.values()].map(toRaised) }

  function place({ createdAtMs }: DatedAlert, about: TenantSubject, rules: CaseRules): string {
    const present = found.get(toSubjectKey(about)) ?? null
    const step = decideCase(present, rules, createdAtMs)
    const caseId = step === 'begin' ? newCaseId() : present!.caseId
    const reopened = step === 'reopen'
    const flags = step === 'begin' ? {} : present!.flags
    // Two subjects fall into one case when their cases were merged.
    if (!groups.has(caseId)) {
      groups.set(caseId, { of: { caseId, ...about, reopened, rules }, flags, alerts: [] })
    }
    return caseId
  }
}

type CountedField = 'alerts' | 'riskScore' | 'action' | 'flags' | 'firstMs' | 'latestMs' | 'dueMs'

/** Alerts of one case that are raised together, and the flags of those that are there. */
type Group = { of: Omit<RaisedCase, CountedField>; flags: FlagCounts; alerts: DatedAlert[] }

function toRaised({ of, flags, alerts }: Group): RaisedCase {
  const times = alerts.map(({ createdAtMs }) => createdAtMs)
  return {
    ...of,
    alerts: alerts.length,
    riskScore: Math.max(...alerts.map(({ candidate }) => candidate.riskScore)),
    action: alerts.some(({ candidate }) => candidate.action === 'BLOCK') ? 'BLOCK' : 'REVIEW',
    flags: addFlags(flags, countFlags(alerts.map(({ candidate }) => candidate.reasons))),
    firstMs: Math.min(...times),
    latestMs: Math.max(...times),
    dueMs: Math.min(
      ...alerts.map(({ candidate: { action }, createdAtMs }) =>
        toDueMs({ action, createdAtMs }, of.rules),
      ),
    ),
  }
}

/**
 * Compares the alert list with the model: no expected alert is missing, an event of the fleet
 * explains every alert and its exact risk score, and the list is consistent.
 */
import { isDeepStrictEqual } from 'node:util'
import { toAlertId } from '#shared/core/base/ids.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { type Action, toSeverity } from '#shared/core/scoring/score.ts'
import { countKey, toWindowText } from '#shared/core/velocity/correlation.ts'
import { isAccepted, type Mismatch } from '../send/sent-events.ts'
import {
  boundAlerts,
  canBeFirst,
  canLeadTo,
  type DeviceBounds,
  type EventBounds,
  requiredActions,
  type SessionBounds,
  toRisk,
} from './alert-model.ts'
import type { DeviceModel } from './device-model.ts'
import type { AlertList, ListedAlert } from './read-back.ts'

/** Bounds by session id, which are unique in a fleet. */
export type AlertModel = Map<string, KnownSession>
type KnownSession = Pick<DeviceBounds, 'deviceId' | 'countsOf'> & { session: SessionBounds }

export function toAlertModel(models: readonly DeviceModel[], policy: Policy): AlertModel {
  const model: AlertModel = new Map()
  for (const { deviceId, sessions, countsOf } of boundAlerts(models, policy)) {
    for (const session of sessions) model.set(session.sessionId, { deviceId, countsOf, session })
  }
  return model
}

/** The minimum number of alerts. */
export function countRequired(model: AlertModel): number {
  let count = 0
  for (const { session } of model.values()) count += requiredActions(session).size
  return count
}

type AlertChecking = {
  tenantId: string
  model: AlertModel
  policy: Policy
  list: AlertList
  /** Whether all data of the tenant is of this run and must be explained. */
  ownTenant: boolean
}

/** Finds every mismatch of the alerts. */
export function checkAlerts(checking: AlertChecking): Mismatch[] {
  const { model, list, ownTenant } = checking
  const ours = list.alerts.filter((alert) => model.has(alert.entity.session.session_id))
  const found = [...checkList(list, ownTenant), ...checkRequired(checking, ours)]
  for (const alert of ours) found.push(...checkAlert(checking, alert))
  if (ownTenant) {
    for (const alert of list.alerts) {
      if (!model.has(alert.entity.session.session_id)) found.push(at(alert, 'alert_foreign'))
    }
  }
  return found
}

function at(alert: ListedAlert, what: string, expected?: unknown, got?: unknown): Mismatch {
  return {
    what,
    alert_id: alert.alert_id,
    device_id: alert.entity.device.device_id,
    session_id: alert.entity.session.session_id,
    ...(expected === undefined ? {} : { expected, got }),
  }
}

/** Checks the list: its total, its order, `seq` without a gap, no duplicates. */
export function checkList({ alerts, total }: AlertList, ownTenant: boolean): Mismatch[] {
  const found: Mismatch[] = []
  if (new Set(alerts.map((alert) => alert.alert_id)).size !== alerts.length) {
    found.push({ what: 'alerts_listed_twice', expected: 0, got: listedTwice(alerts) })
  }
  alerts.forEach((alert, index) => {
    const newer = alerts[index - 1]
    if (newer !== undefined && !isNewer(newer, alert)) {
      found.push(at(alert, 'alerts_order', 'newest first', [newer.created_at, alert.created_at]))
    }
  })
  if (!ownTenant) return found
  if (total !== alerts.length) {
    found.push({ what: 'alerts_total', expected: alerts.length, got: total })
  }
  const seqs = alerts.map((alert) => alert.seq).sort((a, b) => a - b)
  const gap = seqs.findIndex((seq, index) => seq !== index + 1)
  if (gap >= 0) found.push({ what: 'alert_seq_gap', expected: gap + 1, got: seqs[gap] })
  return found
}

function isNewer(newer: ListedAlert, alert: ListedAlert): boolean {
  const apartMs = Date.parse(newer.created_at) - Date.parse(alert.created_at)
  return apartMs > 0 || (apartMs === 0 && newer.alert_id > alert.alert_id)
}

function listedTwice(alerts: ListedAlert[]): string[] {
  const seen = new Set<string>()
  return alerts.map((alert) => alert.alert_id).filter((id) => seen.size === seen.add(id).size)
}

/** Checks that every event that certainly raises an alert has one. */
function checkRequired({ model }: AlertChecking, ours: ListedAlert[]): Mismatch[] {
  const raised = new Map<string, string[]>()
  for (const { entity, decision } of ours) {
    const key = entity.session.session_id
    raised.set(key, [...(raised.get(key) ?? []), decision.action])
  }
  const found: Mismatch[] = []
  for (const [session_id, { deviceId: device_id, session }] of model) {
    const actions = raised.get(session_id) ?? []
    if (new Set(actions).size !== actions.length) {
      found.push({ what: 'alert_twice', device_id, session_id, expected: 'once', got: actions })
    }
    const missing = session.events.find(
      (event) =>
        isAccepted(event.fact) &&
        event.low !== 'ALLOW' &&
        !actions.some((action) => canLeadTo(event, action as Action)),
    )
    if (missing === undefined) continue
    const expected = [...new Set([missing.low, missing.high])]
    found.push({ what: 'alert_missing', device_id, session_id, expected, got: actions })
  }
  return found
}

/** Checks one alert: its sum, its id, and an event of its session that explains it. */
function checkAlert(checking: AlertChecking, alert: ListedAlert): Mismatch[] {
  const { tenantId, model } = checking
  const found: Mismatch[] = []
  const deviceId = alert.entity.device.device_id
  const sessionId = alert.entity.session.session_id
  const { action, risk_score, severity } = alert.decision
  const expect = (what: string, expected: unknown, got: unknown) => {
    if (!isDeepStrictEqual(expected, got)) found.push(at(alert, what, expected, got))
  }
  const known = model.get(sessionId)!
  expect('alert_device', known.deviceId, deviceId)
  expect('alert_id', toAlertId({ tenantId, deviceId, sessionId, action }), alert.alert_id)
  expect('alert_severity', toSeverity(risk_score), severity)
  expect('alert_disposition', 'OPEN', alert.disposition)
  const codes = alert.reasons.map((reason) => reason.code)
  expect('alert_flags', codes, alert.flags)
  const sum = alert.reasons.reduce((total, reason) => total + reason.weight, 0)
  expect('alert_reasons_sum', risk_score, sum)
  if (!known.session.events.some((event) => explains(event, known, alert, checking.policy))) {
    const got = { ...alert.decision, rasp_score: alert.rasp_score, reasons: alert.reasons }
    const expected = known.session.events.map(({ fact, low, high }) => ({
      rasp_score: fact.scored.score,
      actions: [...new Set([low, high])],
    }))
    found.push(at(alert, 'alert_unexplained', expected.slice(0, 5), got))
  }
  return found
}

/**
 * Whether an event explains an alert: it can be the first of its session with this action, the
 * counts in the alert's evidence are possible, and its risk with these counts is the alert's. A
 * count without evidence is taken as the least possible, so a missing reason is found.
 */
function explains(
  event: EventBounds,
  { session, countsOf }: KnownSession,
  alert: ListedAlert,
  policy: Policy,
): boolean {
  const { fact } = event
  const action = alert.decision.action as Action
  if (fact.scored.score !== alert.rasp_score) return false
  if ((fact.userIds[0] ?? null) !== (alert.entity.user?.user_id ?? null)) return false
  if (!canBeFirst(event, session, action)) return false
  const bounds = countsOf(fact)
  const counts = new Map([...bounds].map(([key, { low }]) => [key, low]))
  const details = new Map<string, Record<string, unknown>>()
  for (const { evidence } of alert.reasons) {
    const key = findRule(evidence, policy)
    if (key === null) continue
    const { low, high, signals } = bounds.get(key)!
    const count = Number(evidence.count)
    if (!(Number.isInteger(count) && count >= low && count <= high)) return false
    counts.set(key, count)
    if (signals === undefined) continue
    const signal = String(evidence.signal)
    if (!signals.includes(signal)) return false
    details.set(key, { signal })
  }
  const risk = toRisk(fact, counts, policy, details)
  return (
    risk.action === action &&
    risk.riskScore === alert.decision.risk_score &&
    isDeepStrictEqual(
      risk.reasons,
      alert.reasons.filter(({ code }) => !ofPhones.has(code)),
    )
  )
}

/** They weigh nothing, and depend on which event of all phones came first. */
const ofPhones: ReadonlySet<string> = new Set(['REINSTALLED', 'IDENTIFIERS_SHARED'])

/** The key of the rule in a reason's evidence, or null when it is not of velocity. */
function findRule(evidence: Record<string, unknown>, { velocity }: Policy): string | null {
  const rule = velocity.find(
    ({ metric, threshold, windowSeconds }) =>
      metric === evidence.metric &&
      threshold === evidence.threshold &&
      toWindowText(windowSeconds) === evidence.window,
  )
  return rule === undefined ? null : countKey(rule)
}

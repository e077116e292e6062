/**
 * Everything about one alert. What is in Postgres is always there; the explanation is left out,
 * with the reason, when its event cannot be read or explained.
 */
import { Problem } from '#shared/core/http/problem.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import {
  type AlertWork,
  findAlertPolicyVersion,
  listDispositions,
  listNotes,
  readAlertWork,
} from '#shared/io/alerts/alert-work-store.ts'
import { listDeliveries } from '#shared/io/deliveries/list-deliveries.ts'
import type { RiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { findShadowPolicy } from '#shared/io/policies/shadow-policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import {
  type ExplainDeps,
  explainEvent,
  findEventOfScope,
  readBody,
} from '../events/explain-event.ts'
import type { AlertDetail } from './alert-schemas.ts'
import { scoreWithCurrentPolicy } from './score-with-current-policy.ts'

export type ShowAlertDeps = ExplainDeps & {
  findAlert: AlertStore['findAlert']
  findPercentile: RiskPercentiles['find']
}

/** Deliveries of one alert that are shown, the newest: as it was raised, and its updates. */
const deliveriesMax = 50

/** @throws Problem alert_not_found */
export async function showAlert(
  deps: ShowAlertDeps,
  target: { alertId: string; scope: TenantScope },
): Promise<AlertDetail> {
  const alert = await deps.findAlert(target)
  if (alert === null) throw alertNotFound(target.alertId)
  const { tenant_id: tenantId, alert_id: alertId, event_id: eventId } = alert
  const { postgres } = deps
  const [work, notes, history, { deliveries }, policyVersion, explained, percentile] =
    await Promise.all([
      readAlertWork(postgres, tenantId, [alertId]),
      listNotes(postgres, tenantId, alertId),
      listDispositions(postgres, tenantId, alertId),
      listDeliveries(postgres, { tenantId, alertId, limit: deliveriesMax }),
      findAlertPolicyVersion(postgres, tenantId, alertId),
      explain(deps, { tenantId, eventId }),
      deps.findPercentile({ tenantId, score: alert.decision.risk_score }),
    ])
  return {
    alert: withWork(alert, work.get(alertId)),
    ...percentile,
    policy_version: policyVersion,
    notes,
    history,
    deliveries,
    ...explained,
  }
}

export const alertNotFound = (alertId: string) =>
  new Problem('alert_not_found', `There is no alert ${alertId}.`)

/** An alert with its assignee, number of notes and case. */
export const withWork = <Alert>(alert: Alert, work: AlertWork | undefined) => ({
  ...alert,
  assignee: work?.assignee ?? null,
  notes: work?.notes ?? 0,
  case_id: work?.case_id ?? null,
})

type Explained = Pick<AlertDetail, 'explanation' | 'unexplained' | 'now'>

async function explain(
  deps: ShowAlertDeps,
  { tenantId, eventId }: { tenantId: string; eventId: string },
): Promise<Explained> {
  const now: AlertDetail['now'] = { active: null, shadow: null }
  try {
    const explanation = await explainEvent(deps, { eventId, scope: [tenantId] })
    const event = await findEventOfScope(deps, { eventId, scope: [tenantId] })
    const judged = { event, body: readBody(event) }
    const [active, shadow] = await Promise.all([
      createCurrentPolicyStore(deps.postgres).findCurrentPolicy(tenantId),
      findShadow(deps.postgres, tenantId),
    ])
    if (active !== null) now.active = await scoreWithCurrentPolicy(deps, judged, active)
    if (shadow !== null) now.shadow = await scoreWithCurrentPolicy(deps, judged, shadow)
    return { explanation, unexplained: null, now }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { explanation: null, unexplained: error.code, now }
  }
}

/** The shadow policy that decides at present, or null. */
async function findShadow(db: Queryable, tenantId: string) {
  const shadow = await findShadowPolicy(db, { tenantId })
  if (shadow === null || shadow.policy_hash === null) return null
  const policy = await createPolicyDocuments(db).findPolicy(shadow.policy_hash)
  return policy && { policy, version: shadow.version, policyHash: shadow.policy_hash }
}

/**
 * Alerts in Postgres, the truth of what somebody must be told: raised by the scorer, listed by the
 * api, judged by operators. Each verb has a file of its own beside this one.
 */
import type { Alert, AlertCandidate } from '#shared/core/alerts/alert-rules.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { type AlertPage, type AlertQuery, findAlert, listAlerts } from './list-alerts.ts'
import { type RaiseOutcome, raiseAlerts } from './raise-alerts.ts'
import { type DispositionChange, setDisposition } from './set-disposition.ts'

export type AlertStore = {
  raiseAlerts: (candidates: readonly AlertCandidate[], nowMs: () => number) => Promise<RaiseOutcome>
  listAlerts: (query: AlertQuery) => Promise<AlertPage>
  /** One alert by its id; of any tenant when none is named. */
  findAlert: (of: { alertId: string; tenantId?: string | undefined }) => Promise<Alert | null>
  setDisposition: (change: DispositionChange) => Promise<Alert | null>
}

/** The alerts of one Postgres. Every verb throws PostgresUnavailableError when it is away. */
export function createAlertStore(postgres: Postgres): AlertStore {
  return {
    raiseAlerts: (candidates, nowMs) => raiseAlerts(postgres, candidates, nowMs),
    listAlerts: (query) => listAlerts(postgres, query),
    findAlert: (of) => findAlert(postgres, of),
    setDisposition: (change) => setDisposition(postgres, change),
  }
}

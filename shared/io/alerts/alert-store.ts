/**
 * The operations on alerts in Postgres: the scorer raises them, the api lists them, operators set
 * dispositions. Each operation has its own file in this folder.
 */
import type { Alert, AlertDetail, ListedOutcome } from '#shared/core/alerts/alert-schema.ts'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { AlertQuery } from './alert-query.ts'
import { type AlertId, findAlert } from './find-alert.ts'
import { findAlertDetail } from './find-alert-detail.ts'
import { type AlertPage, listAlerts, listUncounted, type UncountedPage } from './list-alerts.ts'
import { type RaiseOutcome, raiseAlerts } from './raise-alerts.ts'
import {
  type DispositionChange,
  type ListedChange,
  setDisposition,
  setListedDispositions,
} from './set-disposition.ts'

export type AlertStore = {
  raiseAlerts: (candidates: readonly AlertCandidate[], nowMs: () => number) => Promise<RaiseOutcome>
  listAlerts: (query: AlertQuery) => Promise<AlertPage>
  /** A page without its total. */
  listUncounted: (query: AlertQuery) => Promise<UncountedPage>
  /** Finds one alert by its id, of any tenant when none is given. */
  findAlert: (id: AlertId) => Promise<Alert | null>
  /** One alert of a tenant, with what people did to it. */
  findAlertDetail: (id: { tenantId: string; alertId: string }) => Promise<AlertDetail | null>
  setDisposition: (change: DispositionChange) => Promise<Alert | null>
  /** Sets the disposition of many alerts. @returns what happened to each, in their order */
  setListedDispositions: (change: ListedChange) => Promise<ListedOutcome[]>
}

/** Every operation throws PostgresUnavailableError when Postgres is away. */
export function createAlertStore(postgres: Postgres): AlertStore {
  return {
    raiseAlerts: (candidates, nowMs) => raiseAlerts(postgres, candidates, nowMs),
    listAlerts: (query) => listAlerts(postgres, query),
    listUncounted: (query) => listUncounted(postgres, query),
    findAlert: (id) => findAlert(postgres, id),
    findAlertDetail: (id) => findAlertDetail(postgres, id),
    setDisposition: (change) => setDisposition(postgres, change),
    setListedDispositions: (change) => setListedDispositions(postgres, change),
  }
}

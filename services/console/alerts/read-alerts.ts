/**
 * What the console reads of alerts beyond counters and a page: bounded, so that the others of its
 * 10 connections to Postgres stay free.
 */
import type { AlertFilter, CountedBy } from '#shared/core/alerts/alert-filters.ts'
import {
  alertExportLimits,
  alertListLimits,
  bulkCountLimits,
} from '#shared/core/base/limits/alerts.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { countMatching, type Matching } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { isFiltered } from '#shared/io/alerts/filtered-alerts-sql.ts'
import { countAlertsBy, type ValueCount } from '#shared/io/alerts/list-alerts.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'

type BulkFilter = { tenantId: string; filter: AlertFilter }

export type AlertReads = Pick<AlertStore, 'listAlerts' | 'listUncounted'> & {
  countMatching: (filter: BulkFilter) => Promise<Matching>
  countAlertsBy: (query: BulkFilter & { by: CountedBy }) => Promise<ValueCount[]>
}

/** Each throws Problem unavailable when the tenant's reads wait too long. */
export function createAlertReads(postgres: Postgres, limited: QueryLimiter): AlertReads {
  const { listAlerts, listUncounted } = createAlertStore(postgres)
  type Read = { tenantId: string; read: () => Promise<unknown> }
  const takeTurn = limited('filtered_alerts', alertListLimits, ({ read }: Read) => read())
  const inTurn = <T>(tenantId: string, read: () => Promise<T>) =>
    takeTurn({ tenantId, read }) as Promise<T>
  return {
    listAlerts: (query) =>
      isFiltered(query) ? inTurn(query.tenantId, () => listAlerts(query)) : listAlerts(query),
    countAlertsBy: (query) => inTurn(query.tenantId, () => countAlertsBy(postgres, query)),
    listUncounted: limited('alert_export', alertExportLimits, listUncounted),
    countMatching: limited('bulk_count', bulkCountLimits, (filter: BulkFilter) =>
      countMatching(postgres, filter),
    ),
  }
}

/**
 * What the console reads of alerts beyond counters and a page: bounded, so that the others of its
 * 10 connections to Postgres stay free.
 */
import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import {
  alertExportLimits,
  alertListLimits,
  bulkCountLimits,
} from '#shared/core/base/limits/alerts.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { countMatching, type Matching } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { isFiltered } from '#shared/io/alerts/filtered-alerts-sql.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'

type BulkFilter = { tenantId: string; filter: AlertFilter }

export type AlertReads = Pick<AlertStore, 'listAlerts' | 'listUncounted'> & {
  countMatching: (filter: BulkFilter) => Promise<Matching>
}

/** Each throws Problem unavailable when the tenant's reads wait too long. */
export function createAlertReads(postgres: Postgres, limited: QueryLimiter): AlertReads {
  const { listAlerts, listUncounted } = createAlertStore(postgres)
  const listFiltered = limited('filtered_alerts', alertListLimits, listAlerts)
  return {
    listAlerts: (query) => (isFiltered(query) ? listFiltered(query) : listAlerts(query)),
    listUncounted: limited('alert_export', alertExportLimits, listUncounted),
    countMatching: limited('bulk_count', bulkCountLimits, (filter: BulkFilter) =>
      countMatching(postgres, filter),
    ),
  }
}

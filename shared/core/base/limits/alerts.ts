/** Bounds of the work of operators on alerts: notes, changes of many alerts, exports, streams. */

/** Notes of one alert, of up to 2,000 characters each: at most 1.2 MB in one answer. */
export const notesPerAlertMax = 200

/**
 * Alerts that one step of a bulk change moves: its transaction holds the lock of the tenant's
 * alerts for some tens of milliseconds, in which the scorer waits.
 */
export const bulkStepAlerts = 100
/** A job whose console died in a step is continued by another one after this. */
export const bulkLeaseMs = 15_000
/** Bulk changes of one tenant in progress. */
export const bulkJobsRunningMax = 5
/** Alerts of a selection: ten pages of a list. Their ids are 32 kB in a request and in a row. */
export const bulkSelectionMax = 1_000
/** Bulk changes in one answer. */
export const bulkJobsListedMax = 100

/** Other alerts of a device, or a user, whose verdicts an alert shows: an index has 10,000 in 5 ms. */
export const verdictsCountedMax = 10_000

/** Streams of one console, and of one operator: each holds a connection, and a query a second. */
export const alertStreamsMax = 200
export const alertStreamsPerOperatorMax = 10
/**
 * How often a stream says that it is alive, and how long it may be silent until a page takes it for
 * lost: two of them may be late, and a frozen process is shown within 10 s.
 */
export const streamHeartbeatMs = 3_000
export const streamSilenceMs = 8_000

/**
 * Queries of the console at once, by tenant: of its 10 connections to Postgres 3 list by filters
 * that no counter answers, 2 export, 2 search and 1 counts for a bulk change, so 2 are free for
 * what is short. An export waits longer than a list, since its answer has begun.
 */
export const alertListLimits = { perTenant: 2, total: 3, queuePerTenant: 100, waitMs: 2_000 }
export const alertExportLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 10_000 }
export const bulkCountLimits = { perTenant: 1, total: 1, queuePerTenant: 20, waitMs: 2_000 }
/** Searches without a tenant share the bounds of one. */
export const searchLimits = { perTenant: 2, total: 2, queuePerTenant: 100, waitMs: 2_000 }

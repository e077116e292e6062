/** Bounds of the work of operators on alerts: notes, changes of many alerts, exports, streams. */

/** Notes of one alert, of up to 2,000 characters each: at most 1.2 MB in one answer. */
export const notesPerAlertMax = 200

/**
 * Alerts that one step of a bulk change moves: its transaction holds the lock of the tenant's
 * alerts for some tens of milliseconds, in which the scorer waits.
 */
export const bulkStepAlerts = 100
/** A job whose console died is continued by another one after this. */
export const bulkLeaseMs = 15_000
/** Bulk changes of one tenant in progress. */
export const bulkJobsRunningMax = 5

/** Streams of one console, and of one operator: each holds a connection, and a query a second. */
export const alertStreamsMax = 200
export const alertStreamsPerOperatorMax = 10

/** Bounds of the work of operators on alerts and cases, and of saved views. */

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

/**
 * Newest alerts of a device or a user in a list of links whose verdicts are counted: 200 linked ones
 * and as many in common read 40,000 rows at most, in some 50 ms.
 */
export const nodeVerdictsCountedMax = 100

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
/** Values in a count by flag or by version: there are 70 flags, and clients may invent versions. */
export const alertValuesMax = 200
/** Searches without a tenant share the bounds of one. */
export const searchLimits = { perTenant: 2, total: 2, queuePerTenant: 100, waitMs: 2_000 }

/** Cases in a page of the queue: at about 1 kB each half a megabyte at most. */
export const casesPageDefault = 50
export const casesPageMax = 500

/**
 * Alerts that one judgement or merge changes: its transaction holds the lock of the tenant's alerts
 * for about a second, in which the scorer waits. More are judged by bulk changes of its alerts.
 */
export const caseChangedAlertsMax = 2_000

/**
 * Devices or users that a judgement labels or puts on a list: each is a row, and a lock of one of
 * 64 parts of the lists. A phone has some installs, a shared user some devices.
 */
export const caseSubjectsMax = 50

/** Alerts that are split off at once: their ids are 32 kB in a request and in an audit row. */
export const caseSplitAlertsMax = 1_000

/** Notes of a case, of up to 2,000 characters each: at most 1.2 MB in one answer. */
export const notesPerCaseMax = 200
/**
 * Entries of a case's history that are kept, the newest, about 300 bytes each: 60 kB. Notes of
 * judgements are up to 2,000 characters more. The audit log has all changes.
 */
export const caseHistoryMax = 200

/** How long a case that `next` handed out is nobody else's; presence renews it. */
export const caseLeaseMs = 10 * 60_000

/** Whoever has told it in so long has a case open; pages tell it every 10 s. */
export const casePresenceMs = 30_000

/** Snoozed at most so long: a case that comes back after a year is of no use to anyone. */
export const caseSnoozeDaysMax = 365

/** Of a tenant's rules: days in which a new alert opens a closed case again. */
export const reopenDaysDefault = 7
export const reopenDaysMax = 365

/** Of a tenant's rules: hours after which an open alert is overdue, by its action. */
export const blockDueHoursDefault = 4
export const reviewDueHoursDefault = 24
export const dueHoursMax = 24 * 365

/** Changed cases that one event of a stream names, about 20 kB; of more the page reads its list. */
export const caseChangesAnnouncedMax = 500

/**
 * Alerts without a case that one step puts into cases: its transaction holds the lock of the
 * tenant's alerts for some tens of milliseconds, in which the scorer waits.
 */
export const caseStepAlerts = 200

/**
 * Saved views of a tenant, own and shared: each is up to 8 kB of JSON, so all are 8 MB. An owner
 * has at most a tenth of them, 25 for each of the four pages, so that it takes ten people to fill
 * those of a tenant.
 */
export const savedViewsMax = 1_000
export const savedViewsPerOwnerMax = 100
export const savedViewCharactersMax = 8_192
export const savedViewNameCharactersMax = 80

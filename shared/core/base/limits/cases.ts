/** Bounds of cases: their pages, their leases, and what one judgement may change. */

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

/** Notes of a case, of up to 2,000 characters each, and the newest entries of its history. */
export const notesPerCaseMax = 200
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

/** Saved views of a tenant, own and shared: each is up to 8 kB of JSON, so all are 8 MB. */
export const savedViewsMax = 1_000
export const savedViewCharactersMax = 8_192
export const savedViewNameCharactersMax = 80

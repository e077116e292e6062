/** Bounds of labels and of what is computed from them. */
import { dayMs } from '#shared/core/base/instants.ts'

/**
 * Labels of one call. Of the longest, with a note of 500 characters and ids of 256, they are half a
 * megabyte of ASCII and 0.9 MB in other scripts; more is a 413. One transaction of some 50 ms. The
 * answer has 65 KB, which an idempotency key keeps for a day.
 */
export const labelsPerCallMax = 500
export const labelsBodyBytesMax = 1024 * 1024

/**
 * A call counts as this many calls of the tenant's rate for each label, and as `callsPerChange`
 * beside: at the default rate a tenant adds 1,800 a second, some 1 MB.
 */
export const callsPerLabel = 0.5

/** Labels in a page of the list. */
export const labelsPageDefault = 50
export const labelsPageMax = 500

/** Codes that a tenant may declare: a case tool has some dozens, and a call reads all of them. */
export const labelCodesMax = 200

/** A code that differs in so few characters from one of every tenant is a slip of the pen. */
export const labelSlipMax = 2

/** Longest `external_id`: ids of card schemes and case tools have up to 64 characters. */
export const externalIdCharactersMax = 128

/** Longest note of a label. 500 of them are a quarter of a megabyte. */
export const labelNoteCharactersMax = 500

/**
 * Labels that a tenant may have, superseded ones included: at half a kilobyte each 1 GB. A fleet of
 * ten million sessions a month with 1 % fraud has 1.2 million in a year.
 */
export const labelsMax = 2_000_000

/**
 * Days before `occurred_at` in which a label of a device or user covers sessions, when it names
 * none. Fraudsters prepare an account for weeks; an honest user before them is months away.
 */
export const coveredDaysDefault = 30
export const coveredDaysMax = 365

/** Before 2000 an `occurred_at` is the zero of an exporter without a date. */
export const labelOccurredMsMin = Date.UTC(2000, 0, 1)

/** A date counts to its end, and the east is 14 hours ahead: today's ends 38 hours from now. */
export const labelAheadMsMax = 2 * dayMs

/** Digits before the point of an amount. With four behind it 18 digits, which a Decimal(18, 4) has. */
export const amountDigitsMax = 12

/** Below so many cases a rate is too uncertain to be given: one of one is not 100 %. */
export const casesMin = 10

/** A file of labels that `di` reads at once: 300,000 rows of 200 bytes, some 600 MB as objects. */
export const labelFileBytesMax = 64 * 1024 * 1024

/** Faults of a file that are printed; all are counted. */
export const labelFaultsShown = 50

/**
 * Days of which the threshold picker shows scores, and the longest a query of scores may take:
 * 10 million sessions are counted in some 2 s, with their labels in 5 s.
 */
export const scoreDaysDefault = 30
export const scoreDaysMax = 400
export const scoreQueryMaxSeconds = 25

/** Distributions of scores that are read at once: each is two queries, one after the other. */
export const scoreReadLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 10_000 }

/**
 * Percentiles of risk scores are among the sessions of so many days. A distribution is 303 numbers,
 * so 2,000 tenants have 5 MB. A reader waits for the first one less than a person notices; after a
 * failure the next try is a minute later.
 */
export const percentileDays = 30
export const percentileTenantsMax = 2_000
export const percentileWaitMs = 250
export const percentileRetryMs = 60_000

/** One query of some 2 s a tenant and hour, one after the other: the largest 1,800 fit an hour. */
export const percentileReadLimits = { perTenant: 1, total: 1, queuePerTenant: 1, waitMs: 10_000 }

/** Bounds of the analytics pages of the console: queries in SQL, and the fleet over time. */

/** Longest query, in characters. The longest of the cookbook has 2,000. */
export const sqlCharactersMax = 20_000

/** Parameters of a query, and the characters of a value. The cookbook's have at most six. */
export const sqlParametersMax = 32
export const sqlParameterCharactersMax = 1_000
/** Bytes of all parameters in the URL: half of the 16 KiB that Node accepts as a request's head. */
export const sqlParametersBytesMax = 8 * 1024

/**
 * Rows and bytes of a query that a page shows: 10,000 rows of 800 bytes. A CSV has all rows, within
 * the limits of analysts.
 */
export const sqlRowsMax = 10_000
export const sqlRowsBytesMax = 8 * 1024 * 1024

/**
 * Bytes of one row of a CSV, which is kept as bytes, text and values at once: four times as much.
 * With the queries of `sqlQueries` at once that is some hundred MB; a submission has 64 KiB.
 */
export const sqlCsvRowBytesMax = 4 * 1024 * 1024

/**
 * Queries of one console at once, until their last byte is sent: 16 answers of 8 MiB are 128 MiB. A
 * tenant has the four that its analyst may run at once; eight more wait.
 */
export const sqlQueries = { perTenant: 4, total: 16, queuePerTenant: 8, waitMs: 5_000 } as const

/** An analyst's query ends after 30 s, and 60 s at most, so 100 s is late. */
export const sqlQueryMaxMs = 100_000

/** Days of the fleet page. A day is one point of its charts, so a chart has at most 93. */
export const fleetDaysMax = 92

/** SDK versions of a fleet with a row each, and those with a line of their own in charts. */
export const fleetVersionsMax = 50
export const fleetLinesMax = 6

/** Platforms of a fleet with a line of their own: clients choose the text. */
export const fleetPlatformsMax = 50

/**
 * Points of a fleet that are read by platform, by version, and of versions, those of most devices:
 * 93 days of 100 versions. Clients choose the texts, so there can be one for each event. Three
 * times 10,000 rows of 100 bytes are 3 MB.
 */
export const fleetPointsMax = 10_000

/** Signals of a fleet: more than the catalog has, 150, with some that it does not know. */
export const fleetSignalsMax = 200

/**
 * Days of the overview's period: with the one before it, two months of telemetry are read. Then the
 * flags and the SDK versions that it shows.
 */
export const overviewDaysMax = 31
export const overviewFlagsMax = 10
export const overviewVersionsMax = 10

/** Queues of cases on the overview: four that every tenant has, and six that were saved first. */
export const overviewQueuesMax = 10

/** Signals whose share changed most: more than one bad release has. */
export const overviewMoversMax = 5

/**
 * Devices that each of two periods has before shares are compared: one device is then a point of a
 * percent at most, and chance alone moves a share by five points (1.0 / sqrt(4 * 100)).
 */
export const overviewMoverDevicesMin = 100

/**
 * Days of the attestation coverage: a week has every version in use, and a busy tenant, whose week
 * cannot be read in time, asks for fewer.
 */
export const coverageDaysMax = 7

/** SDK versions of the coverage with a row each, as of the fleet: clients choose the texts. */
export const coverageVersionsMax = fleetVersionsMax

/** Reasons of rejected registrations: three providers have each a part of the 45 codes. */
export const coverageReasonsMax = 100

/** Shared keys and certificates, those on most devices. A leak is one; hundreds are one attack. */
export const sharedKeysShownMax = 50

/**
 * Coverages that are read at once: each has three queries of one thread side by side, and a fourth
 * where keys are shared. Each ends after 20 s, and a tenant's page asks for one coverage.
 */
export const coverageLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 } as const
export const coverageQuerySeconds = 20

/**
 * Days back in which hours are counted for the overview and the fleet page, which go back 62 and 92
 * days: 2,280 hours. The rows stay 100 days, so none goes while its hour is read.
 */
export const hourlyCountDays = 95

/** A finished hour is counted this long after it: edges publish an event within seconds. */
export const hourlyCountDelayMs = 120_000

/**
 * An hour is counted again when a row of it was inserted later than this before its counting, which
 * may not have seen the row: an insert takes seconds, and clocks of servers differ less.
 */
export const hourlyQuietMs = 60_000

/** Spans of a page's period that are read from events: with more, all of it is. */
export const hourlyGapsMax = 32

/**
 * Flags, and signals of a version, that are counted of a tenant in an hour, those of most events.
 * The catalog has some 150 signals and a fleet a dozen versions; clients choose other texts.
 */
export const hourlyNamesMax = 5_000

/**
 * Counts of events by a column: values in an answer, 50 of some 300 bytes are 15 kB; and values
 * that are told apart while counting, with a sketch of devices each, which are 40 kB where devices
 * are thousands. A device sends any version, so a query of more is refused.
 */
export const eventCountValuesMax = 50
export const eventCountGroupsMax = 10_000
/** Memory of one such query: its sketches, and the decisions of some million raised events. */
export const eventCountBytesMax = 1024 * 1024 * 1024
/**
 * How long one may take. It reads each event of the time, 0.2 to 0.5 µs of CPU each by column on
 * two threads: 40 million events at most. Of more a query names a device, a user or less time.
 */
export const eventCountMaxMs = 10_000
/**
 * Such queries at once, each of two threads. A page has one for each column that is open: the
 * others wait.
 */
export const eventCountLimits = {
  perTenant: 1,
  total: 2,
  queuePerTenant: 20,
  waitMs: 10_000,
} as const

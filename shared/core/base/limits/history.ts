/**
 * Bounds of queries of ClickHouse: events of sessions, activity for velocity, SDK baselines, and
 * what the order of registrations and events tells: shared keys, counters, replays.
 */

/** Bytes of one query parameter: ClickHouse takes 128 KiB. */
export const parameterBytesMax = 120 * 1024

/** Earlier events of one session that are read to find the first one of an alert. */
export const sessionEventsMax = 1_000

/** Sessions, or devices, whose events one query reads. */
export const sessionQueryMax = 100

/**
 * Events of one activity query: as many as a full batch has of 1 KB each. A query reads most of the
 * recent rows however few events it is for, so a few large ones cost half of many small ones. With
 * five hashes for each event it is 1.7 MB of text.
 */
export const activityQueryMax = 16_384

/**
 * Latest events of one device, user or session that velocity counts. It bounds the cost of a device
 * that floods: 20,000 are some three megabytes.
 */
export const activityRowsMax = 20_000

/**
 * Rows of activity in memory at once, of all devices, users and sessions: some hundred bytes each
 * as text, three times that once parsed.
 */
export const activityRowsInMemoryMax = 100_000

/**
 * Rows that one query of `activity` may read: one million, and for each key a granule or two of 256
 * rows in every part, of which there may be a hundred. A key with more rows, such as a user id that
 * a whole app shares, gets a query of its own. The maximum takes some ten seconds, as long as a
 * request may.
 */
export const activityReadMin = 1_000_000
export const activityReadPerKey = 50_000
export const activityReadMax = 200_000_000

/**
 * A batch of at most this many devices, users and sessions is not screened: all rows of those with
 * fewer than `activityFewRows` are read, which takes the engine a third of the time. At 200 bytes a
 * row that is 1.6 MB of text at most, and 128 keys are some 40 events.
 */
export const activityFewKeys = 128
export const activityFewRows = 64

/** Devices of one tenant that are remembered as hot, at 300 bytes each. */
export const hotDevicesMax = 1_000

/** Keys of `activity` that are remembered as hot, of all tenants, and for how long. */
export const hotKeysMax = 10_000
export const hotKeyMs = 3_600_000

/**
 * Sightings that an event of a user is compared with for impossible travel: the sessions of a day
 * and their places are fewer. An account that thousands share costs 64 comparisons an event, of
 * some 100 ns where cities are known.
 */
export const travelSightingsMax = 64

/**
 * SDK versions of one baseline query. Each is up to 128 characters of three bytes, or of four with
 * their escapes: 100 KB of the 128 KiB that a parameter may have.
 */
export const sdkBaselinesPerQueryMax = 200

/** Cached baselines of one tenant, at up to 1 KB each: 32 versions in use, for two hours. */
export const sdkBaselinesCachedMax = 64

/**
 * How long reconciliation compares alerts: a month, and some days to investigate. ClickHouse keeps
 * expected alerts for 40 days, so no alert is compared with one that has expired.
 */
export const reconciliationKeptMs = 35 * 24 * 60 * 60 * 1_000

/**
 * Models of phones that one factory certificate may be on. Android's rules allow one certificate
 * for up to 100,000 phones of one product, and a product has some names: by carrier, region and
 * memory, up to eight. Small makers use one certificate for two or three products at a time. Some
 * owners change the name of their phone's model, which is one more name each, and is rare. A
 * certificate that leaked is published and is on whatever phones its users have: a bank sees dozens
 * of models within days.
 */
export const issuerModelsMax = 24

/**
 * Devices or models of one key that a query returns: evidence counts up to here. It is above every
 * limit, and 64 offsets of 17 characters are 1.2 KB.
 */
export const keySightingsMax = 64
/** Phones with a shared key that a reason names, the first ones: 26 characters each. */
export const sharedPhonesMax = 5

/**
 * How long after its first copy an event that comes again is a retry: clients try again for some
 * minutes when an answer is lost. After that it is a replay.
 */
export const retryMaxMs = 10 * 60_000

/**
 * How long before an event its device's counters and replays are looked at: as the longest window
 * of velocity, so that the same rows are read.
 */
export const orderWindowMs = 30 * 24 * 60 * 60_000

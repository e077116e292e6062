/** Bounds of the REST API: pages, large answers, look-ups of keys, and the rate of a tenant. */

/** Default and largest page of the alert list. */
export const alertsPageDefault = 50
export const alertsPageMax = 500

/**
 * Changes of the disposition, and of the assignee, that one alert shows. With notes of 2,000
 * characters, of three bytes at most, the changes are 1.2 MB, and 200 notes as much.
 */
export const alertHistoryMax = 200

/** Sessions in one answer of the device history. `sessions_cursor` continues with older ones. */
export const sessionsPageMax = 10_000

/** Users in one answer of the device history. `users_cursor` continues with the next ones. */
export const usersPageMax = 10_000

/** Devices in one answer of the user history. `devices_cursor` continues with older ones. */
export const userDevicesPageMax = 10_000

/**
 * Longest cursor: a session id of 256 characters of three bytes, an instant and a digest are
 * 0.8 KB, which is 1.1 KB in base64.
 */
export const cursorCharactersMax = 2_048

/**
 * Large answers in progress at once, from the first query to the last byte sent: at most 15 MB
 * each, 60 MB in all. A tenant has half of them, further ones queue. A client that needs more than
 * half a minute, which is 500 KB a second, is disconnected.
 */
export const largeResponses = {
  perTenant: 2,
  total: 4,
  queuePerTenant: 100,
  waitMs: 5_000,
} as const
export const largeResponseMs = 30_000

/**
 * Rows that cost a tenant one call of its rate. The first 50 rows of an answer cost one call, each
 * further 50 one more. The default rate allows 5 histories of 10,000 sessions a second.
 */
export const rowsPerCall = 50

/**
 * Calls that a change of a disposition counts as. Its note of 2,000 characters is stored with the
 * alert and in the audit log, 12 KB at most: the default rate allows 50 a second, 0.6 MB.
 */
export const callsPerChange = 20

/**
 * Alerts of one call that sets many dispositions. Its transaction holds the lock of the tenant's
 * alerts five times as long as a step of a bulk change (0.2 to 0.45 s on two busy cores), in which
 * the scorer waits. The answer has 35 KB, which an idempotency key keeps for a day. The call counts
 * as half as many changes; the tenant owes at most its burst, so at the default rate it makes one
 * such call in two seconds.
 */
export const listedDispositionsMax = 500
export const callsPerListedChange = callsPerChange / 2

/**
 * Changes of dispositions in progress: 4 of the api's connections to Postgres, 2 for one tenant.
 * They wait there for the lock of the tenant's alerts, in which the scorer works as well.
 */
export const dispositionChanges = {
  perTenant: 2,
  total: 4,
  queuePerTenant: 100,
  waitMs: 1_000,
} as const

/** Answers from this size on are compressed for clients that accept it. */
export const compressedBytesMin = 32 * 1024

/**
 * Cache of keys that exist: how many, at 200 bytes each, and for how long. It holds one key of each
 * of ten thousand tenants. Any other key may be a guess.
 */
export const keyCacheMax = 10_000
export const keyCacheMs = 600_000

/**
 * Cache of keys that do not exist, at 200 bytes each. A key that is created just after a client
 * tried it can stay unknown for this second.
 */
export const unknownKeyCacheMax = 10_000
export const unknownKeyCacheMs = 1_000

/** REST rate per tenant: requests per second and burst. */
export const restRatePerSecond = 1_000
export const restBurst = 2_000

/** Default and largest page of the event list: 500 events with reasons are some 400 KB. */
export const eventsPageDefault = 50
export const eventsPageMax = 500

/**
 * The event list reads the times of a tenant's events from the newest backwards, span by span: an
 * hour, a day, 31 days, and 31 more each. Rows lie by device, so a span reads all parts that have
 * one of its events: a span of the last hour reads little, one of 31 days the tenant's month. A
 * span reads this many rows at most, 8 bytes of each and what the filters compare, some 30 million
 * rows a second. Beyond it a query has to name a device, a user or a session, or a shorter time.
 */
export const eventSpansMs = [3_600_000, 86_400_000, 31 * 86_400_000] as const
export const eventRowsReadMax = 100_000_000

/**
 * How far the clock of an edge may be from another's: a decision is looked for among those of
 * events that were received so much later.
 */
export const clockSkewMs = 3_600_000

/** How long one query of a span may take; the answer is a 503 beyond it. */
export const eventQueryMaxMs = 4_000

/** No further span begins after this time: the page ends early, and its cursor continues. */
export const eventSearchMs = 1_500

/** Lists of events in progress, of the connections to ClickHouse: a scan uses two threads. */
export const eventListLimits = {
  perTenant: 2,
  total: 3,
  queuePerTenant: 100,
  waitMs: 2_000,
} as const

/**
 * How long an api process answers for the verdict keys from memory: a thousand verifiers cost one
 * query a second. A key signs minutes after it was published, so a second delays nothing.
 */
export const verdictKeysReadEveryMs = 1_000

/**
 * How long a request waits for Postgres while it could have the last answer: a query takes some
 * milliseconds, and a key that was withdrawn is gone at once where Postgres answers.
 */
export const verdictKeysWaitMs = 500

/**
 * How long it answers so while Postgres is away: no longer than a verifier keeps them, so a key
 * that was withdrawn is forgotten after twice that, and a new one signs later by as much.
 */
export const verdictKeysStaleMsMax = 5 * 60_000

/**
 * Requests for the verdict keys of one source address, which needs no API key: a verifier asks
 * twelve times an hour, and once more for an unknown key. A thousand of them behind one address
 * that restart together have their keys within 30 s.
 */
export const verdictKeyCallsPerSecond = 20
export const verdictKeyCallsBurst = 400
/** Addresses that are counted at once, of 100 bytes; the one not seen for longest goes. */
export const verdictKeyAddressesMax = 10_000

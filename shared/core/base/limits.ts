/**
 * The bounds of the public interface and those that several files share, with the arithmetic behind
 * them. A bound that clients can meet is fixed by the public contract; the others are ours to tune.
 * What bounds one file alone stands in that file.
 */

/** Largest ingest body. Real SDK batches are 1 to 4 KB, so 64 KiB is sixteen times the largest. */
export const bodyBytesMax = 64 * 1024

/**
 * Bytes of a refused body that are read and thrown away so that its sender can read the answer;
 * then the connection is cut. A mistake is a few megabytes, more is an attack.
 */
export const refusedBodyBytesMax = 16 * 1024 * 1024

/** Connections of one process, idle ones included, at about 10 KB each. */
export const connectionsMax = 8_192

/**
 * Headers of a request. A submission has eight and a proxy adds some ten; each costs Node about a
 * tenth of a microsecond, so a head of any shape costs some ten.
 */
export const headersCountMax = 100

/**
 * How long a connection may stay that has shown no valid signature, key or token, unless a request
 * is under way on it: a request takes ten seconds at most, so it is gone within twenty. A head that
 * is not complete is answered 408 after five to six seconds, before this.
 */
export const strangerMs = 7_000

/**
 * Connections of one source address (an IPv4 address, 64 bits of IPv6) that have shown nothing
 * valid: an eighth of all, so that eight addresses are needed to fill a process, and as many as a
 * balancer opens at once that is not listed in `TRUSTED_PROXIES`.
 */
export const strangersPerSourceMax = 1_024

/** Connections of one source address in all: half, so that no single client fills a process. */
export const connectionsPerSourceMax = 4_096

/**
 * Bytes of bodies that are not complete, over all connections: 256 of the largest. At 2,000
 * submissions/s of 2 KB that each take 100 ms to arrive it is 0.4 MB.
 */
export const incompleteBodiesBytesMax = 16 * 1024 * 1024

/**
 * Connections of an internal listener. Health checks, readiness checks and scrapes of ten machines
 * need some 30.
 */
export const internalConnectionsMax = 128

/** Deepest JSON nesting of an ingest body: the body itself is level 1. Checked before any parse. */
export const jsonDepthMax = 16

/** Most keys in one category of `signals`. The catalog's largest category has under 50. */
export const categoryKeysMax = 512

/** Most object members of an ingest body at all levels: six full categories have 3,072. */
export const membersMax = 4_096

/**
 * Paths that the `signals` column has for a tenant's names beyond the catalog: of the 256 that a
 * part holds apart the catalog has 148. The longest, in bytes. When an unused one makes room.
 */
export const signalPathsPerTenantMax = 64
export const signalPathBytesMax = 128
export const signalPathIdleMs = 60 * 60 * 1000

/** Longest device, session, user and account id, in characters. */
export const idCharactersMax = 256

/** Longest part of a path that stands for an id, decoded; beyond it a request is a 414. */
export const pathPartCharactersMax = 2_048

/** Longest of the free strings we keep (SDK version, platform, batch type, client action). */
export const metaCharactersMax = 128

/** Most client flags kept of one submission's advisory `scorer` section. */
export const clientFlagsMax = 256

/**
 * Events in one JetStream message. 256 events of 4 KB are 1 MiB, the server's default
 * `max_payload`; the byte bound below is what usually ends a batch.
 */
export const batchEventsMax = 256

/** Bytes of one batch message: below NATS' default `max_payload` of 1 MiB with room for headers. */
export const batchBytesMax = 960 * 1024

/**
 * Events that may wait for their ack at an edge: twice the messages under way, so that the next
 * ones are full. More of them would only be decided sooner than they can be stored.
 */
export const waitingEventsMax = 1_024

/** Bytes of events that may wait for their ack at an edge, whatever their number. */
export const waitingBytesMax = 8 * 1024 * 1024

/**
 * Submissions an edge may have read without having decided on them: one of each connection. At
 * 20,000 events/s that is 0.4 s; past it the edge answers 503 rather than queue.
 */
export const queuedRequestsMax = 8_192

/** Bytes of submissions that may wait to be decided on, whatever their number. */
export const queuedBytesMax = 64 * 1024 * 1024

/**
 * A submission that has waited this long to be decided on is not accepted any more, but a 503: the
 * time to store it counts from when it was read.
 */
export const queuedMsMax = 1_000

/**
 * How long an edge decides before it looks for acknowledgements, due timers and new requests; one
 * submission takes some 20 µs.
 */
export const decidingMs = 10

/** Batches in flight to JetStream at once: two hide the fsync behind the next publish. */
export const publishesInFlightMax = 2

/**
 * How long a publish of less than `lingerUntilEvents` may wait for more events, from the beginning
 * of the one before; one of less than twice as many half as long. A message costs the broker some
 * 0.5 ms of CPU for its sync, however little it holds, and edge and scorers their part of that. The
 * wait adds some milliseconds to an answer far from the broker's limit; at 2,000 events/s on two
 * cores it shortens the time until an event is visible by a hundred, because so much more of them
 * is left for that.
 */
export const lingerMs = 10
export const lingerUntilEvents = 16

/** How long an edge waits for a publish ack before it answers 503. */
export const publishTimeoutMs = 2_000

/**
 * One try of a publish. A broker that answers at all does so in milliseconds; three tries fit into
 * the whole time, so that one lost acknowledgement costs a client nothing but the wait.
 */
export const publishAttemptMs = 700

/** `Retry-After` of a 503, in seconds. */
export const retryAfterSeconds = 1

/**
 * A credential lease: how long an edge may trust its copy after the last round trip that proved it
 * current. A rotation waits at most this long (plus a margin) for an edge that does not answer.
 */
export const leaseMs = 2_000

/** How often an edge renews its lease: four tries within one lease. */
export const leaseRenewMs = 500

/** What a rotation waits beyond a lease, for timers that fire late. */
export const leaseMarginMs = 250

/**
 * A watch that has not brought back an edge's own announcement for this long is taken for dead and
 * begun anew: a hundred times what it takes when all is well, half of a lease.
 */
export const leaseStallMs = 1_000

/**
 * SDK versions told apart per tenant among requests signed with a retired secret: a report of them
 * is 32 times 170 bytes at most, and a thief of the secret cannot make us keep more.
 */
export const retiredVersionsMax = 32

/** An edge that has announced nothing for five leases is gone; what it announced is removed. */
export const deadEdgeMs = 10_000

/** Default and largest page of the alert list. */
export const alertsPageDefault = 50
export const alertsPageMax = 500

/** Sessions in one answer of the device history; older ones follow by `sessions_cursor`. */
export const sessionsPageMax = 10_000

/** Users in one answer of the device history; the next ones follow by `users_cursor`. */
export const usersPageMax = 10_000

/**
 * Answers with many rows at once, from the first query to the last byte sent: at most 15 MB each,
 * 60 MB in all. A tenant has half of them, the others wait. A client that reads slowly is cut off
 * after half a minute, which is 500 KB a second.
 */
export const largeAnswers = { perTenant: 2, total: 4, queuePerTenant: 100, waitMs: 5_000 } as const
export const largeAnswerMs = 30_000

/**
 * What an answer costs a tenant's rate: one call, and one more for each 50 rows beyond the first
 * 50. At the default rate that is 5 histories of 10,000 sessions a second.
 */
export const rowsPerCall = 50

/** Answers of this many bytes are compressed where the client takes that. */
export const compressedBytesMin = 32 * 1024

/**
 * Longest cursor. The longest holds a session id of 256 characters of three bytes each, an instant
 * and a digest: 0.8 KB, 1.1 KB in base64.
 */
export const cursorCharactersMax = 2_048

/**
 * API keys that were found within the last ten minutes, 200 bytes each: those of ten thousand
 * tenants. Any other key may be a guess.
 */
export const foundKeysMax = 10_000
export const foundKeyMs = 600_000

/**
 * A key that was not found is not looked up again for a second, which is also how long a key may
 * stay unknown that is created just after it was tried. 200 bytes each.
 */
export const unknownKeysMax = 10_000
export const unknownKeyMs = 1_000

/**
 * Look-ups of keys that may be guesses: 4 of the api's 20 connections to Postgres. At a millisecond
 * each they answer 4,000 guesses a second; of the others a hundred wait, and the rest get a 503.
 */
export const strangerLookups = {
  perTenant: 4,
  total: 4,
  queuePerTenant: 100,
  waitMs: 1_000,
} as const

/**
 * Ingest rate per tenant and edge in bytes, and burst. 4 MiB/s are 2,800 events/s of 1.5 KB: less
 * than half of what an edge takes on one core and what a scorer decides on two, so one tenant at
 * full speed leaves others the larger half of both. A submission counts as `ingestBytesMin` at
 * least, since its cost hardly depends on its size below that: 4,096 events/s at most.
 */
export const ingestBytesPerSecond = 4 * 1024 ** 2
export const ingestBytesBurst = 8 * 1024 ** 2
export const ingestBytesMin = 1024

/**
 * What a tenant may have waiting undecided in the telemetry stream: this share of the room while no
 * other waits. It is bounded by the room that is left: with share s a tenant may hold s / (1 - s)
 * of what is free, so one tenant comes to s of the room, and n tenants that all flood to
 * n / (n + 3) with a quarter each: four leave three sevenths, sixteen leave a sixth. It never gets
 * full of them, not even where a restarted edge counts from zero. 16 GiB are 4 GiB for one tenant:
 * 95 minutes of 500 events/s of 1.5 KB while nothing is decided.
 *
 * Each edge counts what it has stored itself and grants its part: the bound divided by the number
 * of live edges. `tenantUndecidedBytesMin`, or the 1,024th part of the stream, is granted always:
 * some 200 events or a second of most tenants.
 */
export const undecidedShare = 0.25
export const undecidedShareMax = 0.9
export const tenantUndecidedBytesMin = 256 * 1024

/** `Retry-After` of a 429 for what waits undecided, in seconds. */
export const undecidedRetryAfterSeconds = 5

/**
 * How long an edge holds the answer to a tenant over a limit, and how many it holds. Clients that
 * send again at once over 64 connections get 64 refusals a second, not the 5,000 that would take
 * half a core. Held answers take an eighth of the connections at most.
 */
export const refusalDelayMs = 1_000
export const delayedRefusalsMax = connectionsMax / 8

/** How often an edge looks at the stream's fill and low watermark: at small streams more often. */
export const roomLookMinMs = 100

/** REST rate per tenant: requests per second and burst. */
export const restRatePerSecond = 1_000
export const restBurst = 2_000

/** Longest webhook URL, note and tenant name an operator may save, in characters. */
export const urlCharactersMax = 2_048
export const noteCharactersMax = 2_000
export const nameCharactersMax = 200

/**
 * Events that one activity query asks about: as many as a full batch has of 1 KB each. Such a query
 * reads most of the recent rows however many it asks for, so a few large ones cost half of many
 * small ones. It is 1.7 MB of text with five hashes for each.
 */
export const activityQueryMax = 16_384

/** Bytes of one parameter of a query: ClickHouse takes 128 KiB of it. */
export const parameterBytesMax = 120 * 1024

/** Earlier events of one session that are read to find the first one of an alert. */
export const sessionEventsMax = 1_000

/** Sessions, or devices, that one query reads the events of. */
export const sessionQueryMax = 100

/**
 * Events of one device, user or session that velocity looks at, the latest first. It bounds what a
 * device that floods can cost: 20,000 are some three megabytes.
 */
export const activityRowsMax = 20_000

/**
 * Rows that velocity takes from ClickHouse at once, of however many devices, users and sessions:
 * some hundred bytes each as text, three times that once they are read.
 */
export const activityRowsAtOnceMax = 100_000

/**
 * Rows that one query of `activity` may have to look at: what a batch needs for each key, which is
 * a granule or two of 256 rows in every part and there may be a hundred, and a million. A key of
 * which there are more, such as a user id that a whole app shares, is asked about alone. The most
 * takes some ten seconds, and no longer than a request may.
 */
export const activityReadMin = 1_000_000
export const activityReadPerKey = 50_000
export const activityReadMax = 200_000_000

/** Tenants that a cache keeps entries of: past ten thousand, the ones used least recently go. */
export const cachedTenantsMax = 10_000

/** Devices of one tenant with very many rows that are remembered as such: 300 bytes each. */
export const hotDevicesMax = 1_000

/** The same of keys of `activity`, whatever their tenant, and how long either is remembered. */
export const hotKeysMax = 10_000
export const hotKeyMs = 3_600_000

/**
 * Bytes of a policy document. The default has 8 KB with every signal of the catalog; a message of
 * NATS, which carries it to the edges, may have 1 MiB.
 */
export const policyBytesMax = 256 * 1024

/**
 * How long a change of a tenant waits for another one: four times what a rotation takes at most.
 */
export const tenantLockWaitMs = 10_000

/**
 * Connections of one console that hold locks. Changes of tenants have their own, each for some
 * seconds, so that none of the long ones can take theirs: two erasures with two locks each, two
 * backtests, and retention, the replica, prevalence and reconciliation with one each.
 */
export const changeLocksMax = 10
export const jobLocksMax = 2 * 2 + 2 + 4

/**
 * For how long reconciliation compares alerts: a month is shown and looked at. ClickHouse keeps
 * what is due for 40 days, so that no alert is compared with what has already gone.
 */
export const reconciliationKeptMs = 35 * 24 * 60 * 60 * 1_000

/**
 * How long a policy document stays in the tenant directory that no tenant uses any more: events and
 * edges that are under way take seconds. Later ones find it in Postgres.
 */
export const unusedPolicyMs = 60_000

/**
 * SDK versions that one query asks about. Each is up to 128 characters of three bytes, or of four
 * with their escapes: 100 KB of the 128 KiB that ClickHouse takes in one parameter.
 */
export const sdkBaselinesPerQueryMax = 200

/**
 * Baselines of one tenant kept in memory, at up to 1 KB each: 32 versions in use, for two hours.
 */
export const sdkBaselinesCachedMax = 64

/** Bytes of policy documents kept in memory, as JSON: a thousand of the default's size. */
export const policyCopiesBytesMax = 8 * 1024 * 1024

/**
 * Room of the telemetry stream where nothing else is set: 11 million events of 1.5 KB. A server
 * that has less is asked for half as much until it agrees, down to the least.
 */
export const telemetryStreamBytes = 16 * 1024 ** 3
export const telemetryStreamBytesMin = 1024 ** 2

/**
 * Decided messages are removed once the stream is this full, until it is only this full. Between
 * them lies a fifth of the stream: at 2,000 events/s of 1.5 KB a stream of 16 GiB is trimmed every
 * 19 minutes, one of 64 MB every four seconds. What is kept serves replay and erasure.
 */
export const trimFromShare = 0.75
export const trimToShare = 0.55

/**
 * How often the fill is looked at. The quarter of the stream above `trimFromShare` must not be
 * filled between two looks, and edges store 50 MB/s at most: 16 GiB could be looked at every 80 s
 * and are every second, 64 MB every 320 ms, 4 MB every 20 ms, in which 1 MB comes.
 */
export const streamBytesPerSecondMax = 50 * 1024 ** 2
export const trimLookMaxMs = 1_000
export const trimLookMinMs = 20

/** From this share of undecided events on `/readyz` and an alert rule give warning. */
export const undecidedWarnShare = 0.6

/**
 * What a tenant may have stored as dead letters, in bytes per second and burst: 4 MiB at once and
 * 260 MB in the 30 days that a letter is kept, a quarter of the stream's 1 GiB. More of a tenant's
 * poison shows nothing new, and would leave no room for that of others.
 */
export const deadLetterBytes = { perSecond: 100, burst: 4 * 1024 ** 2 } as const

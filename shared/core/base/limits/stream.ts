/** Bounds of the telemetry stream: its size, a tenant's share of it, trimming and dead letters. */

/**
 * Size of the telemetry stream unless configured: 11 million events of 1.5 KB. Where the server has
 * less, half as much is requested until it accepts, down to the minimum.
 */
export const telemetryStreamBytes = 16 * 1024 ** 3
export const telemetryStreamBytesMin = 1024 ** 2

/**
 * Telemetry streams that there can be. Each publishes, stores and decides for itself: eight take
 * more than the largest cluster of three servers can sync.
 */
export const telemetryStreamsMax = 8

/**
 * Share of the stream that one tenant's undecided events may take while no other tenant has any.
 * The bound depends on the free space: with share s a tenant may have s / (1 - s) of what is free.
 * One tenant alone reaches s of the stream. With three quarters, n tenants that all flood reach
 * 3n / (3n + 1) of it: one leaves a quarter free, four a thirteenth, sixteen a forty-ninth. So they
 * never fill the stream, even where a restarted edge counts from zero. A tenant that comes while
 * another one has its three quarters may use three quarters of the rest at once; the first may send
 * again when it has no more than the other. Of 16 GiB one tenant gets 12 GiB: 4.7 hours of 500
 * events/s of 1.5 KB while nothing is decided.
 *
 * Each edge counts what it has stored itself and grants its part: the bound divided by the number
 * of live edges. It always grants `tenantUndecidedBytesMin`, or the 1,024th part of the stream:
 * some 200 events, which is a second of most tenants.
 */
export const undecidedShare = 0.75
export const undecidedShareMax = 0.9
export const tenantUndecidedBytesMin = 256 * 1024

/** `Retry-After` of a 429 for a tenant's undecided events, in seconds. */
export const undecidedRetryAfterSeconds = 5

/** From this undecided share on, `/readyz` and an alert rule warn. */
export const undecidedWarnShare = 0.6

/**
 * Decided messages are trimmed once the stream is this full, down to the second share. Between them
 * is a fifth of the stream: at 2,000 events/s of 1.5 KB a stream of 16 GiB is trimmed every
 * 19 minutes, one of 64 MB every four seconds. What is kept serves replay and erasure.
 */
export const trimFromShare = 0.75
export const trimToShare = 0.55

/**
 * How often the fill level is checked. The quarter of the stream above `trimFromShare` must not
 * fill up between two checks, and edges store 50 MB/s at most: 16 GiB need a check every 80 s and
 * get one every second, 64 MB every 320 ms, 4 MB every 20 ms, in which 1 MB arrives.
 */
export const streamBytesPerSecondMax = 50 * 1024 ** 2
export const trimCheckMaxMs = 1_000
export const trimCheckMinMs = 20

/** Shortest interval at which an edge checks the stream's fill level and low watermark. */
export const capacityCheckMinMs = 100

/**
 * What one tenant may store as dead letters, in bytes per second and burst: 4 MiB at once and
 * 260 MB in the 30 days that a dead letter is kept, a quarter of the stream's 1 GiB. More poison of
 * one tenant adds no insight and would displace that of others.
 */
export const deadLetterBytes = { perSecond: 100, burst: 4 * 1024 ** 2 } as const

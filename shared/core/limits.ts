/**
 * Every bound of the service, with the arithmetic behind it. A bound that clients can meet is fixed
 * by the public contract; the others are ours to tune. Nothing else in the code names a bare limit.
 */

/** Largest ingest body. Real SDK batches are 1 to 4 KB, so 64 KiB is sixteen times the largest. */
export const bodyBytesMax = 64 * 1024

/** Deepest JSON nesting of an ingest body: the body itself is level 1. Checked before any parse. */
export const jsonDepthMax = 16

/** Most keys in one category of `signals`. The catalog's largest category has under 50. */
export const categoryKeysMax = 512

/** Longest device, session, user and account id, in characters. */
export const idCharactersMax = 256

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
 * Events an edge may hold while they wait for their ack: 4,096 events of 2 KB are 8 MiB. At 10,000
 * events/s that is 0.4 s of publishing; past it the edge answers 503 rather than queue.
 */
export const waitingEventsMax = 4_096

/** Bytes an edge may hold while they wait for their ack, whatever their number. */
export const waitingBytesMax = 64 * 1024 * 1024

/** Batches in flight to JetStream at once: two hide the fsync behind the next publish. */
export const publishesInFlightMax = 2

/** How long an edge waits for a publish ack before it answers 503. */
export const publishTimeoutMs = 2_000

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

/** Default and largest page of the alert list. */
export const alertsPageDefault = 50
export const alertsPageMax = 500

/** Sessions in one answer of the device history; older ones follow by `sessions_cursor`. */
export const sessionsPageMax = 10_000

/** REST rate per tenant: requests per second and burst. Ingest is unlimited unless set. */
export const restRatePerSecond = 1_000
export const restBurst = 2_000

/** Webhook attempt: all in all, and to connect. */
export const webhookTimeoutMs = 15_000
export const webhookConnectTimeoutMs = 5_000

/** Bytes of a receiver's answer that are read before its socket is closed, and that are kept. */
export const webhookAnswerBytesMax = 64 * 1024
export const webhookAnswerKeptBytesMax = 4 * 1024

/** Longest delay a receiver's `Retry-After` can ask for. */
export const retryAfterDelayMaxMs = 10 * 60 * 60 * 1000

/** Longest webhook URL, note and tenant name an operator may save, in characters. */
export const urlCharactersMax = 2_048
export const noteCharactersMax = 2_000
export const nameCharactersMax = 200

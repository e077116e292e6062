/**
 * Bounds of webhook deliveries: attempts, answers, concurrency, circuit breaker, leases, replay.
 */

/** Time limits of a webhook attempt: in all, and to connect. */
export const webhookTimeoutMs = 15_000
export const webhookConnectTimeoutMs = 5_000

/**
 * What is read of a receiver's answer before its socket is closed: bytes of the head including all
 * 1xx answers, bytes and chunks of the body, and bytes of its framing: chunk sizes, extensions and
 * trailers. A complete head decides the outcome even if the body is cut off. The head may have
 * three times what servers send by default at most. 200 hostile answers at once, at some four times
 * the bytes of their heads, are 20 MB.
 */
export const webhookAnswerHeadBytesMax = 24 * 1024
export const webhookAnswerBytesMax = 64 * 1024
export const webhookAnswerPiecesMax = 128
export const webhookAnswerFramingBytesMax = 4 * 1024
/** Headers and body bytes of the answer that are kept. */
export const webhookAnswerHeadersMax = 128
export const webhookAnswerKeptBytesMax = 4 * 1024

/** Characters of a redirect's `Location` that an attempt records. */
export const locationCharactersMax = 500

/** Longest delay that a receiver's `Retry-After` can request. */
export const retryAfterDelayMaxMs = 10 * 60 * 60 * 1000

/**
 * Webhook requests in flight in one delivery process, and of one tenant. Eight tenants whose
 * receivers all hang would have to use their full share to fill it, and their shares shrink first.
 */
export const deliveriesInFlightMax = 512
export const deliveriesInFlightPerTenantMax = 64

/**
 * Tenants in the caches of a delivery process. For each webhook it caches the URL, the opened
 * secret and the latest attempts of a failing one: 4 KB at most, 40 MB in all. For each tenant it
 * caches the concurrency limit: 200 bytes. Both are far more than it sends to at once; the least
 * recently used are evicted.
 */
export const webhooksCachedMax = 10_000
export const tenantLimitsCachedMax = 100_000

/**
 * How long a claim on a delivery lasts: twice the time limit of an attempt, so that an attempt and
 * its record fit even with a slow database. After it another process can claim the delivery.
 */
export const deliveryClaimMs = 2 * webhookTimeoutMs

/**
 * When a webhook's circuit opens: of its last fifty attempts within five minutes, at least twenty,
 * seven in ten failed. It never opens for a receiver that fails one request in three.
 */
export const breakerAttemptsMin = 20
export const breakerAttemptsMax = 50
export const breakerWindowMs = 5 * 60 * 1000
export const breakerFailedShare = 0.7

/** How long a circuit is open before its first half-open probe, its second, and so on. */
export const circuitOpenMs: readonly number[] = [5_000, 10_000, 20_000, 30_000]

/** A webhook is switched off after this long without a success and at least so many attempts. */
export const webhookFailingMaxMs = 5 * 24 * 60 * 60 * 1000
export const webhookFailedAttemptsMin = 10

/** Failing webhooks that the metrics name: one series each, in every delivery process. */
export const failingWebhooksShownMax = 100

/** Interval of the sweep for due retries and for deliveries whose hint was lost. */
export const deliverySweepMs = 1_000

/**
 * How old the read of a webhook secret may be when it signs. A rotation waits this long, and a
 * margin of 50 ms, after it removed the old secret, so it takes a quarter of a second in all. A
 * read for many senders takes a few milliseconds, signing for all of them some twenty.
 */
export const webhookSecretLeaseMs = 100
/**
 * Longest lease while Postgres is slow: twice the 15 s after which a read fails, of which 3 s are
 * for a connection and 12 s for the answer.
 */
export const webhookSecretLeaseMaxMs = 30_000
/** How long an extension of the lease lasts. Rotations wait longer meanwhile. */
export const webhookSecretLeaseExtendedMs = 5 * 60 * 1000

/**
 * Deliveries that one statement of a replay makes due: about 10 MB of log with their index entries,
 * and half a second of locks.
 */
export const replayBatchMax = 5_000
/** Deliveries that the answer to a replay lists. */
export const replayListedMax = 50

/** Bounds of webhook deliveries, with the arithmetic behind them. All in ms and bytes. */

/** Webhook attempt: all in all, and to connect. */
export const webhookTimeoutMs = 15_000
export const webhookConnectTimeoutMs = 5_000

/**
 * Of a receiver's answer this is read before its socket is closed: bytes of the head with all 1xx
 * answers before it, bytes and pieces of the body, and bytes of what frames a body: chunk sizes,
 * extensions and trailers. Once the head is there its status counts, however much is cut off. The
 * head has three times what servers send by default at most; 200 hostile answers at once, at some
 * four times the bytes of their heads, are 20 MB.
 */
export const webhookAnswerHeadBytesMax = 24 * 1024
export const webhookAnswerBytesMax = 64 * 1024
export const webhookAnswerPiecesMax = 128
export const webhookAnswerFramingBytesMax = 4 * 1024
/** Headers of it that are kept, and bytes of its body. */
export const webhookAnswerHeadersMax = 128
export const webhookAnswerKeptBytesMax = 4 * 1024

/** Characters of a redirect's `Location` that an attempt records. */
export const locationCharactersMax = 500

/** Longest delay a receiver's `Retry-After` can ask for. */
export const retryAfterDelayMaxMs = 10 * 60 * 60 * 1000

/**
 * Webhook requests in flight in one delivery process, and of one tenant: eight tenants whose
 * receivers all hang at their full share would be needed to fill it, and those shares shrink first.
 */
export const deliveriesInFlightMax = 512
export const deliveriesInFlightPerTenantMax = 64

/**
 * Tenants of which a delivery process remembers the URL, the opened secret and the latest attempts
 * of a failing webhook (4 KB at most, 40 MB in all), and tenants whose room for requests it
 * remembers (200 bytes each). Far more than it sends to at once; the least recently used are
 * forgotten first.
 */
export const webhooksRememberedMax = 10_000
export const rememberedTenantLimitsMax = 100_000

/**
 * How long a claim on a delivery lasts: twice an attempt's time limit, so that an attempt and its
 * record fit with room for a slow database. After it another process takes the delivery over.
 */
export const deliveryClaimMs = 2 * webhookTimeoutMs

/**
 * When a webhook's deliveries are held: of its last fifty attempts within five minutes, twenty at
 * least, seven in ten failed. A receiver that fails one request in three is never held.
 */
export const breakerAttemptsMin = 20
export const breakerAttemptsMax = 50
export const breakerWindowMs = 5 * 60 * 1000
export const breakerFailedShare = 0.7

/** How long a webhook is held before its first probe, its second, ...; the last one stays. */
export const probeDelaysMs: readonly number[] = [5_000, 10_000, 20_000, 30_000]

/**
 * A webhook of which no attempt has succeeded for this long, with so many attempts made, is off.
 */
export const webhookFailingMaxMs = 5 * 24 * 60 * 60 * 1000
export const webhookFailedAttemptsMin = 10

/** How often deliveries are looked for whose hint was lost, and retries that have become due. */
export const deliverySweepMs = 1_000

/**
 * How old a reading of a webhook secret may be when it signs. A rotation of the secret waits this
 * long, and a margin of 50 ms, after the old one is gone, so it has a quarter of a second in all. A
 * reading for many senders takes a few milliseconds and signing for all of them some twenty.
 */
export const webhookSecretLeaseMs = 100
/**
 * Where Postgres is slow the lease is extended, at most to twice the 15 s after which a reading has
 * failed: 3 s for a connection and 12 s for the answer.
 */
export const webhookSecretLeaseMaxMs = 30_000
/** How long an extension lasts: rotations wait longer meanwhile. */
export const webhookSecretLeaseExtendedMs = 5 * 60 * 1000

/**
 * Deliveries that one statement of a replay makes due: with their index entries about 10 MB of log
 * and half a second of locks.
 */
export const replayedAtOnceMax = 5_000
/** Deliveries that the answer to a replay shows. */
export const replayedShownMax = 50

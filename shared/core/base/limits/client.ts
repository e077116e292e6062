/** Bounds of the client package: attempts of one submission, and how long it waits between them. */

/** Attempts of one submission. Four waits of the back-off are 0.2 to 7.5 s in all. */
export const sendAttemptsMax = 5

/** One attempt, the answer included. An edge answers within ten seconds or refuses. */
export const sendAttemptTimeoutMs = 15_000

/** All attempts and waits of one submission. A caller that waits longer is better off with a queue. */
export const sendDeadlineMs = 60_000

/**
 * The upper limit of the first wait; it doubles with each attempt. The wait is random below it.
 * After `Retry-After` the wait is that and a random part of the first one.
 */
export const sendBackoffFirstMs = 500
export const sendBackoffMaxMs = 8_000

/** How far the signed time of a webhook may be from the receiver's clock, in seconds. */
export const webhookToleranceSeconds = 300

/** A receiver needs two secrets during a rotation. Each costs two HMACs of an unverified body. */
export const webhookSecretsMax = 4

/** Signatures of one header that are compared, with one HMAC for all; a rotation lists two. */
export const webhookSignaturesMax = 16

/** Every secret of the service has at least as many characters. */
export const secretCharactersMin = 32

/** The longest time of a timer, 2^31 - 1 ms or 24 days. A longer one would end at once. */
export const sendTimeMaxMs = 2_147_483_647

/** Characters that an error shows of an answer that is not of the service. */
export const shownAnswerCharactersMax = 80

/** Characters that an error keeps of each text of an answer. */
export const answerTextCharactersMax = 1_000

/** HMAC-SHA256 in base64url: 32 bytes are 43 characters without padding. */
export const installKeyCharacters = 43

/**
 * Characters of `X-Service-Attestation`: all headers of a request are at most 16 KiB in Node. A Play
 * Integrity token has some 2,000, an assertion some 200.
 */
export const evidenceHeaderCharactersMax = 12_288

/**
 * An install registers again when its token ends within a day. Tokens live for 30 days, so a phone
 * that is used daily renews before the service would refuse it.
 */
export const installRenewBeforeMs = 86_400_000

/**
 * The shortest time between two renewals that a refusal or a failure caused: a tenant that refuses
 * every token gets one registration a minute of each install, not one for each event.
 */
export const installRenewPauseMs = 60_000
/** How far the clock of a verifier of verdicts may be behind that of the service, in seconds. */
export const verdictToleranceSeconds = 60

/**
 * How long the client keeps verdict keys that it fetched, and how soon after a fetch an unknown key
 * makes it fetch again: whoever sends forged tokens causes one request in ten seconds.
 */
export const verdictKeysKeptMs = 5 * 60_000
export const verdictKeysRefetchMs = 10_000
export const verdictKeysTimeoutMs = 5_000
/**
 * How long a key that is known verifies while the service does not answer: an outage of an hour
 * stops no checkout, and a withdrawn key counts no longer than that.
 */
export const verdictKeysStaleMsMax = 60 * 60_000

/** The service publishes three keys at most. Each of a set is looked at for every token. */
export const verdictKeysMax = 16

/** The longest verdict token that is read; the service's stay below 2 KiB. */
export const verdictTokenCharactersMax = 4_096

/** The longest key set that is read: three keys have 700 bytes. */
export const verdictKeysCharactersMax = 65_536

/** Bounds of installs: challenges, registrations and tokens. */

/** How long a challenge may be answered: a phone makes a key in seconds, a slow one in thirty. */
export const challengeMs = 2 * 60_000

/**
 * How far the clock of the edge that made a challenge may be ahead of the one that reads it. Edges
 * follow a time server; the clocks of two machines without one differ by seconds.
 */
export const challengeAheadMs = 10_000

/** How long a token counts: an app that is opened once a month renews it in time. */
export const installTokenMs = 30 * 24 * 60 * 60_000

/**
 * Characters of a token. Its payload has some 560 bytes with a long device, app and chain: 750 in
 * base64url, and 60 around it. Servers take headers of 8 KiB.
 */
export const installTokenCharactersMax = 1_024

/** Characters of the app's package or bundle id: Apple takes 155, Google 150. */
export const appIdCharactersMax = 155

/** Characters of the phone's model, as the app said it: the longest names on sale have 40. */
export const deviceModelCharactersMax = 64

/** Largest body of a registration: a chain of 8 certificates of 2 KB is 22 KB in base64. */
export const registrationBytesMax = 64 * 1024

/** Bytes of incomplete registrations: 64 of the largest. Counted apart from telemetry's. */
export const incompleteRegistrationsBytesMax = 4 * 1024 * 1024

/** Deepest JSON of a registration: the body is level 1, a chain level 3. Later members may nest. */
export const registrationDepthMax = 8

/** Members of a registration's body at all levels. It has ten; later releases may have more. */
export const registrationMembersMax = 64

/**
 * Registrations that an edge takes in a second, and at once after a pause: of one tenant, and of
 * all. An install registers once in 30 days: a million installs are 0.4 a second, and ten times as
 * many when a release makes them all renew within three days. Evidence takes 1 to 4 ms of a thread
 * of its own, so 100 a second are a third of a core. One tenant gets half of it.
 */
export const registrationsPerSecond = 100
export const registrationsBurst = 200
export const tenantRegistrationsPerSecond = 50
export const tenantRegistrationsBurst = 100

/**
 * Registrations whose evidence is verified at this moment: of one tenant, and of all. At 4 ms each
 * 128 wait half a second. Their bodies are 8 MiB at most.
 */
export const registrationsVerifyingMax = 128
export const tenantRegistrationsVerifyingMax = 64

/** How long a registration may wait for its evidence, before it is answered 503. */
export const evidenceTimeoutMs = 2_000

/** Install roots of a tenant that are valid at once: the present one, and one beside it. */
export const installRootsMax = 2

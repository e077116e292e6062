/**
 * Bounds of attestation. Whoever attacks the service writes these objects, so each bound is checked
 * before the work that it limits. Times are of one warm core; `npm run faults -- attestation`
 * measures them.
 */

/**
 * Certificates of one chain. Phones send four or five; Google's longest has six. They are counted
 * before any is read, so a chain of 10,000 costs as much as one of nine.
 */
export const chainCertificatesMax = 8

/**
 * Bytes of one certificate. The largest real one, a leaf with a key of ML-DSA-65 (1,952 bytes), has
 * 2,570; one with a key and a signature of ML-DSA-87 has 2,592 + 4,627 and its names.
 */
export const certificateBytesMax = 8_192

/**
 * ASN.1 values in one certificate, and in the attestation extension of Android. Real ones have up
 * to 120 and 90. The reader takes some 5 µs for each, so 300 are 1.5 ms, of one certificate: the
 * next is read after its signature held.
 */
export const asn1NodesMax = 300

/** Deepest ASN.1 nesting. Names in a certificate are at level 7, a root of trust at level 6. */
export const asn1DepthMax = 16

/** Bytes of a CBOR object. Apple's attestations have some 5,500, their receipt is most of it. */
export const cborBytesMax = 16_384

/**
 * CBOR values of one object. An attestation has 12, a COSE key with the map of iOS 27 has 16. They
 * are counted by a scan that stops at the bound: 64 values take 40 µs.
 */
export const cborValuesMax = 64

/** Deepest CBOR nesting: `attStmt`, and `x5c` in it, are levels 2 and 3. */
export const cborDepthMax = 4

/** Characters of a Play token. Google's have some 2,000; the JWS within is in base64 twice. */
export const playTokenCharactersMax = 16_384

/** Characters of a token's header: `{"alg":"A256KW","enc":"A256GCM"}` has 43 in base64. */
export const playHeaderCharactersMax = 512

/** A Play token is for one request: Google advises to refuse it after ten minutes. */
export const playTokenAgeMsMax = 10 * 60 * 1_000

/** A Play token can be from a clock that is this much ahead of ours. */
export const playTokenAheadMsMax = 60 * 1_000

/** Characters of a base64 text that `di attestation check` and evidence may have. */
export const evidenceCharactersMax = 65_536

/**
 * Bytes of Android's published status list. It has some 150 bytes for each of a few thousand
 * certificates: 64 MiB are 400,000, and one replaced file is read at a time.
 */
export const statusListBytesMax = 64 * 1024 * 1024

/** Bytes of a file with evidence that a person checks: a chain that is far too long is named so. */
export const evidenceFileBytesMax = 16 * 1024 * 1024

/**
 * Bytes of evidence that the console checks: eight certificates of 8 KiB in PEM have 90 KB, in JSON
 * with a challenge some more.
 */
export const checkedEvidenceBytesMax = 128 * 1024

/** Packages and signers of one Android application id. Apps that share a user id are few. */
export const applicationIdEntriesMax = 64

/** Characters of a package or a bundle id: the longest that Android and Apple take. */
export const appIdCharactersMax = 255

/**
 * Apps of one tenant, and signers of one app. They travel in the tenant's entry to every edge: 16
 * apps with 8 digests of 64 characters, an id and two sealed keys are at most 20 KB of the 1 MiB of
 * a message. An app has one signer, and others while its key is changed or where stores sign.
 */
export const tenantAppsMax = 16
export const appSignersMax = 8

/** Characters of a phone's model in a registration: the longest that Google lists has 40. */
export const deviceModelCharactersMax = 64

/**
 * Labels of one list in a Play verdict, and characters of one, as they become signals. Google has
 * five for a device and eight for apps that can read the screen, of up to 26 characters.
 */
export const playLabelsMax = 12
export const playLabelCharactersMax = 48

/**
 * How often the status list is looked at: four times in the minute in which a revoked serial must
 * stop counting, which leaves 45 s to read the largest one.
 */
export const statusListPollMs = 15_000
export const statusListReadMsMax = 40_000

/**
 * MiB of heap of the thread that reads it: the text of 64 MiB, and 400,000 entries that are parsed
 * and checked, at a kilobyte each.
 */
export const statusListReaderMiB = 1_024

/** Google replaces the list about daily: an age of a week is a job that has stopped. */
export const statusListAgeMsMax = 7 * 24 * 60 * 60 * 1_000

/** Bytes of a file with test roots: a root of RSA 4096 has some 800 in base64. */
export const testRootsBytesMax = 64 * 1024

/**
 * Registrations that wait for their verification at one edge. A genuine chain takes one thread some
 * 4 ms, so 200 wait 0.8 s at most; with bodies of 64 KiB they hold 13 MB. A tenant gets a quarter,
 * so that four are needed to fill it, and the thread takes tenants in turn.
 */
export const waitingEvidenceMax = 200
export const waitingEvidencePerTenantMax = 50

/**
 * Threads that verify: one, so that a flood of registrations leaves telemetry its core on a machine
 * with two. It verifies 250 chains a second, five times the 50 registrations that an edge is meant
 * for.
 */
export const evidenceThreads = 1

/**
 * Longest verification. The costliest known input takes 4 ms: one that needs seconds is stuck, and
 * its thread is replaced. A thread starts in some 0.3 s, and in seconds on a busy machine.
 */
export const evidenceMsMax = 2_000
export const evidenceStartMsMax = 30_000

/** Memory of a thread: its code takes some 20 MB, and one check less than one. */
export const evidenceThreadMegabytesMax = 128

/** What a sender waits who found the queue full: the time in which a full one is worked off. */
export const evidenceRetryAfterSeconds = 1

/**
 * Characters of `X-Service-Attestation`, checked before it is parsed. A signature has 96, an
 * assertion some 350, a Play token some 2,000; Node takes 16 KiB of headers in all.
 */
export const eventEvidenceCharactersMax = 8_192

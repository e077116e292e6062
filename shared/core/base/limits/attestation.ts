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

/** Packages and signers of one Android application id. Apps that share a user id are few. */
export const applicationIdEntriesMax = 64

/** Bounds of one submission and of the signal names that are stored from it. */

/** Deepest JSON nesting of an ingest body: the body itself is level 1. Checked before any parse. */
export const jsonDepthMax = 16

/** Most keys in one category of `signals`. The catalog's largest category has under 50. */
export const categoryKeysMax = 512

/** Most object members of an ingest body at all levels: six full categories have 3,072. */
export const membersMax = 4_096

/** Longest device, session, user and account id, in characters. */
export const idCharactersMax = 256

/** Longest of the free texts that are kept: SDK version, platform, batch type, client action. */
export const metaCharactersMax = 128

/**
 * Longest audience and nonce of a verdict that a body asks for. An audience is a word of the
 * integrator's, such as the name of a page; a nonce of 32 bytes has 64 characters in hex. Both
 * stand in the token: with an id of 256 characters it stays below 2 KiB, which fits into a header.
 */
export const verdictAudienceCharactersMax = 128
export const verdictNonceCharactersMax = 128

/**
 * Identifiers of a phone in one submission. Each is a row, as are the attested key, two users,
 * three levels of traits and the install: 15 rows of some 60 bytes at most, and 400 of the traits.
 */
export const identifiersMax = 8
/** Longest name and value of an identifier: a value is a UUID, a hash or a key in base64. */
export const identifierNameCharactersMax = 64
export const identifierCharactersMax = 256

/** Most client flags that are kept of the advisory `scorer` section. */
export const clientFlagsMax = 256

/**
 * Signal names beyond the catalog that get a path in the `signals` column, per tenant. ClickHouse
 * keeps 256 paths of a part as columns, of which the catalog uses 151.
 */
export const signalPathsPerTenantMax = 64
/** Longest such path, in bytes. */
export const signalPathBytesMax = 128
/** A path that is unused for this long can be replaced by a new one. */
export const signalPathIdleMs = 60 * 60 * 1000
/**
 * How often a scorer asks whether an operator freed such paths, while a tenant has the most: a
 * query by primary key, of a millisecond.
 */
export const signalNamesCheckMs = 5_000
/** Unknown signals of one submission that take a good part of the paths: a pasted payload. */
export const manyUnknownSignals = 16

/**
 * Warnings in the answer to a sandbox tenant, and the longest name that is looked up for one. Each
 * compares a name with some thirty of its category, five cells a letter: 16 warnings of 64 letters
 * are 150,000 cells, below a millisecond.
 */
export const warningsMax = 16
export const warningNameCharactersMax = 64
/** Those beside signals, so that both kinds are shown when there are many. */
export const envelopeWarningsMax = 8
/**
 * Unknown members beside signals that one submission has compared with eight optional ones: 64
 * names of 64 letters are 70,000 cells, a third of a millisecond.
 */
export const warningNamesMax = 64
/**
 * Texts of known signals that one submission has compared for warnings. Each is compared with some
 * ten values, as names are: 64 texts of 64 letters are 200,000 cells, a millisecond. A list may
 * have 4,000 texts, which would hold the edge for 20 ms.
 */
export const warningTextsMax = 64

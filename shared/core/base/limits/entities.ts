/**
 * Bounds of what the console reads of one device or user, links and changes of signals, and of how
 * phones are recognised.
 */

/** Linked devices or users in one answer; a graph shows at most as many nodes. */
export const linkedMax = 200
/** What a linked one shares, by id; the rest is a count. 200 of 10 ids of 256 bytes are 0.5 MB. */
export const sharedShownMax = 10
/**
 * Pairs of a device and a user, or of a session, that one query returns: some 100 bytes each, so
 * 5 MB of text and some 30 ms to parse.
 */
export const linkPairsMax = 50_000
/** Devices or users from which links are followed, the latest ones. */
export const linkSourcesMax = 10_000
/** Sessions that are looked for on other devices: hashes of 20 digits, 105 KB of one parameter. */
export const linkSessionsMax = 5_000

/**
 * Answers about links, and about changes of signals, that are read at once. Each query uses two
 * threads of ClickHouse. An answer about links has at most three of 3 s side by side, one about
 * changes has two of 5 s one after the other.
 */
export const linkLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }
export const signalChangeLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }

/** Other devices on a network in one answer: 200 rows of some 300 bytes are 60 KB. */
export const networkDevicesMax = 200
/** Countries, and networks, of a fleet in one answer: 200 of 250 bytes each are 100 KB. */
export const fleetNetworksMax = 200
/** A query of a network's devices, or of a fleet's networks, has two threads for at most 10 s. */
export const networkReadLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }

/** Changes of signals in one answer, the latest ones. */
export const signalChangesMax = 500
/** Signals in one answer; the catalog has some 150, and SDKs choose other names. */
export const signalsOfDeviceMax = 500
/**
 * Events that measured something else than the one before, the latest ones: 100 bytes each, 2 MB.
 * Only a device that changes with every event has more.
 */
export const changedEventsMax = 20_000
/**
 * Two starts of a system that are no further apart are the same one: SDKs compute it from the clock
 * and the time since, each of which is a second off at most.
 */
export const bootToleranceMs = 2_000

/**
 * Phones that share a value are compared up to this many. A value that more have in common is worth
 * less than a guess among them: of two phones in twenty at most one can be it.
 */
export const phonesOfKeyMax = 20

/**
 * Traits of devices that a scorer knows to be stored: 100,000 entries of some 200 bytes are 20 MB.
 * One that is not remembered is stored again, which changes nothing.
 */
export const rememberedTraitsMax = 100_000
/**
 * How long after they were last written the traits of a device that goes on are written again:
 * retention counts whole days since then.
 */
export const identityRefreshMs = 12 * 60 * 60 * 1000
/** How often a scorer asks whether an erasure has ended: an index of a few rows, below a ms. */
export const erasuresCheckMs = 5_000

/** A phone of more installs than this grows only by a strong identifier or an attested key. */
export const phoneInstallsMax = 20

/** Phones that may share an identifier which still names one of them. */
export const strongSharersMax = 2

/** Bounds of recognising phones. */

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

/** A phone of more installs than this grows only by a strong identifier or an attested key. */
export const phoneInstallsMax = 20

/** Phones that may share an identifier which still names one of them. */
export const strongSharersMax = 2

/**
 * Bounds of a policy document. An edge compiles each document once; a backtest turns it into one
 * expression, of some 200 characters for each signal that can score.
 */

/**
 * Signals that a tenant declares: a third of the catalog. Their names are also bound by the unknown
 * names that are stored of a tenant.
 */
export const declaredSignalsMax = 64

/** Characters of a declared signal's name: twice the longest of the catalog. */
export const declaredNameMax = 64

/** Signals or categories that every event must measure: each is a condition of a backtest's query. */
export const requiredSignalsMax = 32

/** Packages of installers: there are some twenty stores, and a company has a few of its own. */
export const trustedInstallersMax = 64

/** Signals that say where an app came from: the catalog has four. */
export const silencedSignalsMax = 8

/** Steps of a velocity rule: weights are whole points, and more than a few say nothing more. */
export const velocityStepsMax = 8

/**
 * Bounds of a policy document, of one that is suggested from outcomes, of drafts and of proposals.
 * An edge compiles each document once; a backtest turns it into one expression, of some 200
 * characters for each signal that can score.
 */
import { policyBytesMax } from './tenants.ts'

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

/**
 * Sessions of fraud, and of honest users, that a suggested policy needs. With 100 of each a rate of
 * one in two is known to 10 points, and of 30 signals each has some three sessions.
 */
export const outcomesMin = 100

/**
 * The cases that a signal must have, by chance alone, before it is called useless: with fewer than
 * ten, chance explains any share.
 */
export const expectedCasesMin = 10

/**
 * What leaving a signal out must cost, as twice the difference in log likelihood, for it to get
 * points. Chance exceeds 12.1 once in 4,000 (half of chi square with one degree of freedom, since
 * coefficients are at least 0), so of 200 useless signals none gets points in 19 of 20 runs.
 */
export const likelihoodRatioMin = 12.1

/** The same of a signal that has points today and too few cases: chance exceeds it in 5 of 100. */
export const knownRatioMin = 2.71

/**
 * The penalty: a coefficient is expected within 1 of 0 in log odds, a factor of 2.7. Where 50 cases
 * say what a signal is worth, it takes off 2 %.
 */
export const penaltyDefault = 1

/** Newton steps of a fit. It takes 6 to 12; separated classes without a penalty never end. */
export const newtonStepsMax = 60

/** Distinct sets of events of a session: 10 million events have some thousands. */
export const outcomeRowsMax = 100_000

/** Runs of a bootstrap: the ends of a 95 % range are the 5th value from either side of 200. */
export const bootstrapRuns = 200

/** Of labelled sessions, the share that is older and trains; the rest tests. */
export const trainingShare = 0.7

/** Rules of a report, and the signals that one has: more than three, nobody remembers. */
export const simpleRulesMax = 10
export const ruleSignalsMax = 3
/** Cases of fraud that a rule must have caught. */
export const ruleCasesMin = 10
/** Signals of which rules are made, those with most fraud first: 40 have 9,880 triples. */
export const ruleCandidatesMax = 40

/** Bytes of a draft: a policy document with its lines indented, which doubles it. */
export const draftBytesMax = 2 * policyBytesMax

/** Drafts of one tenant: 50 MB at most, and 2 MB of usual ones. */
export const draftsMax = 100

/** Characters of the comment of a draft, of the reason of a version and of a proposal. */
export const reasonCharactersMax = 500

/** How long the short result of a backtest is kept: longer than a proposal waits. */
export const backtestsKeptDays = 30

/** How long a proposal waits for its approval, in days: a working week and a weekend. */
export const proposalDays = 7
/** The longest that it may wait: a holiday. What nobody approves then is asked for again. */
export const proposalDaysMax = 30

/** Open proposals of one tenant: nobody reads more. */
export const proposalsOpenMax = 100

/**
 * Proposals of one tenant that ended and are kept, the newest: 500 policies of 256 kB are 128 MB at
 * most, 500 selections of 1,000 alerts 32 MB; of usual ones 5 MB. The audit log has all of them.
 */
export const proposalsEndedMax = 500

/** How long an ended proposal is kept; the audit log says who approved what for longer. */
export const proposalsKeptDays = 90

/** Alerts that a bulk change may mean without an approval, unless the tenant says otherwise. */
export const bulkAboveDefault = 100
/** More than a tenant has: bulk changes then need none. */
export const bulkAboveMax = 1_000_000_000

/**
 * How long a change by an API key counts towards that limit: a key that waits between changes
 * takes days for what a bulk change does at once.
 */
export const keyChangesWindowHours = 24

/**
 * How far the alerts of a proposed bulk change may differ from what its author saw: a twentieth,
 * and ten of a few. A queue of 500 that gained 25 overnight is still the one that was proposed.
 */
export const bulkMarginShare = 0.05
export const bulkMarginMin = 10

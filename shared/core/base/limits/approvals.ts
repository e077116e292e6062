/** Bounds of drafts of policies and of proposals. */

import { policyBytesMax } from './tenants.ts'

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

/** How long an ended proposal is kept; the audit log says who approved what for longer. */
export const proposalsKeptDays = 90

/** Alerts that a bulk change may mean without an approval, unless the tenant says otherwise. */
export const bulkAboveDefault = 100
/** More than a tenant has: bulk changes then need none. */
export const bulkAboveMax = 1_000_000_000

/**
 * How far the alerts of a proposed bulk change may differ from what its author saw: a twentieth,
 * and ten of a few. A queue of 500 that gained 25 overnight is still the one that was proposed.
 */
export const bulkMarginShare = 0.05
export const bulkMarginMin = 10

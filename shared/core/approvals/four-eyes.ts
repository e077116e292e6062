/**
 * Four eyes: which changes of a tenant need another administrator, and what may become of a
 * proposal. Pure; `claimChange` in `shared/io/approvals` asks it in the transaction of each change.
 */
import { bulkMarginMin, bulkMarginShare } from '../base/limits/policies.ts'

/** The kinds of changes that need an approval where a tenant wants it. */
export const guardedKinds = [
  'policy',
  'rotation',
  'install_root',
  'erasure',
  'bulk',
  'bulk_undo',
  'four_eyes',
] as const
export type GuardedKind = (typeof guardedKinds)[number]

/** What a tenant wants. */
export type FourEyes = {
  enabled: boolean
  /** A bulk change of more alerts than this needs an approval. */
  bulkAbove: number
}

/**
 * Whether a change needs an approval.
 * @param change.alerts how many alerts a bulk change means
 */
export function needsApproval(
  { enabled, bulkAbove }: FourEyes,
  { kind, alerts = 0 }: { kind: GuardedKind; alerts?: number | undefined },
): boolean {
  if (!enabled) return false
  return kind === 'bulk' || kind === 'bulk_undo' ? alerts > bulkAbove : true
}

/** Stored states. An open proposal whose time is over is `expired`. */
export const proposalStates = [
  'open',
  'approved',
  'rejected',
  'withdrawn',
  'void',
  'failed',
  'expired',
] as const
export type ProposalState = (typeof proposalStates)[number]

/** Whether an administrator may approve a proposal: never its author. */
export const mayApprove = (
  proposal: { state: ProposalState; author: string },
  actor: string,
): boolean => proposal.state === 'open' && proposal.author !== actor

/** Whether as many alerts are meant as the author of a bulk change saw, or nearly so. */
export const isWithinMargin = (proposed: number, now: number): boolean =>
  Math.abs(now - proposed) <= Math.max(bulkMarginMin, Math.floor(proposed * bulkMarginShare))

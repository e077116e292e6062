/**
 * Four eyes: which effects on a tenant need another administrator, and what may become of a
 * proposal. Pure; `claimChange` and `claimByKey` in `shared/io/approvals` ask it in the transaction
 * of each change, whatever call brings the effect about.
 */
import { wideListed } from '../base/limits/lists.ts'
import { bulkMarginMin, bulkMarginShare } from '../base/limits/policies.ts'
import type { ListKind } from '../lists/list-entry.ts'
import { type RetainedKind, type RetentionDays, retainedKinds } from '../tenants/retention.ts'

/** The effects that need an approval where a tenant wants it. */
export const effects = {
  policy: 'another policy scores and decides events',
  rotation: 'secrets or the API key are replaced',
  install_root: 'tokens of installs are made anew or end',
  erasure: 'a device or a user is erased',
  bulk: 'more alerts than `bulk_above` change at once, or by one key within a day',
  bulk_undo: 'more alerts than `bulk_above` change back',
  four_eyes: 'four eyes, or its limit, change',
  api_key: 'a key can change alerts, lists or labels',
  retention: 'data is kept for a shorter time, and older data removed',
  wide_list_entry: 'a country, a network operator or a wide network is denied or allowed',
  suspension: 'every request of the tenant is refused',
  shared_secret: 'telemetry that the HMAC secret signs is refused, or taken again',
} as const
export type GuardedKind = keyof typeof effects
export const guardedKinds = Object.keys(effects) as [GuardedKind, ...GuardedKind[]]

/** Whether a change of limits removes data that would have stayed. */
export const shortensRetention = (before: RetentionDays, after: RetentionDays): boolean =>
  retainedKinds.some((kind: RetainedKind) => toDays(after[kind]) < toDays(before[kind]))

const toDays = (days: number | null): number => days ?? Number.POSITIVE_INFINITY

/**
 * Whether an entry of a list decides on many people at once.
 * @param entry.id in its one spelling
 */
export function isWideEntry({ kind, id }: { kind: ListKind; id: string }): boolean {
  if (kind !== 'network') return kind === 'country' || kind === 'asn'
  const bits = Number(id.split('/')[1] ?? Number.POSITIVE_INFINITY)
  return bits < (id.includes(':') ? wideListed.v6 : wideListed.v4)
}

/** Whether a key with these scopes can change something. */
export const canChange = (scopes: readonly string[]): boolean =>
  scopes.some((scope) => scope !== 'read')

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

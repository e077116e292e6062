/**
 * Allow and deny lists of devices and users. An entry decides the action of an event at the edge
 * and the risk of its alert, whatever its signals are. The score of the signals, `rasp_score`, does
 * not change. The edge records its list decision as a reason of weight 0 in the event, so every
 * later stage sees the decision of that time and needs no list.
 */
import { hash } from 'node:crypto'
import type { Action, Reason, Score } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'

export const listNames = ['allow', 'deny'] as const
export type ListName = (typeof listNames)[number]

export const listKinds = ['device', 'user'] as const
export type ListKind = (typeof listKinds)[number]

/** An entry as an edge has it: without the id, which it knows as a hash. */
export type ListEntry = {
  entryId: string
  list: ListName
  kind: ListKind
  /** A code such as `chargeback`. */
  reason: string
  /** In ms since 1970; null never expires. */
  expiresAtMs: number | null
}

/** The entries of one tenant for an id. */
export type FindListEntries = (kind: ListKind, id: string) => readonly ListEntry[]

/** The ids of an event that lists can name. */
export type ListedIds = {
  device_id: string
  user_id?: string | undefined
  account_id?: string | undefined
}

const listFlags = { allow: 'ALLOW_LISTED', deny: 'DENY_LISTED' } as const satisfies Record<
  ListName,
  Flag
>
/** The flags of events that a list decided. */
export const listFlagCodes: readonly string[] = Object.values(listFlags)
export const isListFlag = (code: string): boolean => listFlagCodes.includes(code)

/** What a list makes of an event: its action and its risk score, under every policy. */
export const listOutcomes: Record<string, { action: Action; riskScore: number }> = {
  [listFlags.allow]: { action: 'ALLOW', riskScore: 0 },
  [listFlags.deny]: { action: 'BLOCK', riskScore: 100 },
}

/**
 * The key of an id within one tenant's lists.
 * @returns 132 bits of SHA-256 as 22 base64url characters
 */
export const toListHash = (kind: ListKind, id: string): string =>
  hash('sha256', `${kind}:${id}`, 'base64url').slice(0, 22)

/**
 * The entry that decides an event: an entry of the deny list before one of the allow list, and of
 * one list the device's before the user's. `user_id` and `account_id` are both users.
 * @param nowMs the server's wall clock; an entry is over at the instant of its expiry
 * @returns null when no entry is in force
 */
export function findListEntry(
  find: FindListEntries,
  { device_id: deviceId, user_id: userId, account_id: accountId }: ListedIds,
  nowMs: number,
): ListEntry | null {
  const isInForce = ({ expiresAtMs }: ListEntry) => expiresAtMs === null || nowMs < expiresAtMs
  const users = [userId, accountId].filter((id) => id !== undefined)
  const entries = [...find('device', deviceId), ...users.flatMap((id) => find('user', id))]
  const inForce = entries.filter(isInForce)
  return inForce.find(({ list }) => list === 'deny') ?? inForce[0] ?? null
}

/** The reason of an event that an entry decides: which entry and why, never who made it. */
export const toListReason = ({ entryId, list, kind, reason }: ListEntry): Reason => ({
  code: listFlags[list],
  weight: 0,
  evidence: { entry_id: entryId, kind, reason },
})

/** The reason that a list decision left in an event; undefined when no list decided it. */
export const findListReason = (reasons: readonly Reason[]): Reason | undefined =>
  reasons.find(({ code }) => isListFlag(code))

/**
 * The verdict on the signals under a list decision: its action and its flag. The score stays.
 * @param listed from `toListReason` or `findListReason`
 */
export function applyListReason(scored: Score, listed: Reason | undefined): Score {
  if (listed === undefined) return scored
  const reasons = [...scored.reasons, listed]
  return { score: scored.score, action: listOutcomes[listed.code]!.action, reasons }
}

/**
 * The risk of an event that a list decided: 0 when allowed, 100 when denied. The weight of the
 * list's reason is the difference, so the weights still add up to the risk score.
 */
export function applyListToRisk<T extends { riskScore: number; action: Action; reasons: Reason[] }>(
  risk: T,
  listed: Reason,
): T {
  const { action, riskScore } = listOutcomes[listed.code]!
  const reasons = risk.reasons.map((reason) =>
    reason.code === listed.code ? { ...reason, weight: riskScore - risk.riskScore } : reason,
  )
  reasons.sort((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
  return { ...risk, riskScore, action, reasons }
}

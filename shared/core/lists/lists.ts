/**
 * Allow and deny lists of devices and users, and of the networks, operators and countries that
 * events come from. An entry of the deny list, or of a device or a user, decides the action of an
 * event at the edge and the risk of its alert, whatever its signals are. The score of the signals,
 * `rasp_score`, does not change. An allowed network, operator or country decides nothing: it only
 * silences what the service saw of the connection, since many who share it are strangers.
 *
 * The edge records each as a reason of weight 0 in the event, and leaves silenced signals out of
 * what it scores and stores, so every later stage sees the decision of that time and needs no list.
 */
import { hash } from 'node:crypto'
import type { Action, Reason, Score } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import type { ServerSignals } from '#shared/core/signals/signal-definition.ts'
import type { IdKind, ListEntry, ListedConnection, ListName } from './list-entry.ts'

/** The entries of one tenant. */
export type ListSource = {
  /** Those for an id. */
  find: (kind: IdKind, id: string) => readonly ListEntry[]
  /** Those for a connection, the narrowest first. */
  findOfConnection: (connection: ListedConnection) => readonly ListEntry[]
}

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
/** The flag of events whose connection an entry allows; it decides nothing. */
const connectionAllowed: Flag = 'CONNECTION_ALLOWED'
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
export const toListHash = (kind: IdKind, id: string): string =>
  hash('sha256', `${kind}:${id}`, 'base64url').slice(0, 22)

/** What the lists make of one event. */
export type ListDecision = {
  /** The entry that decides its action. */
  decides: ListEntry | null
  /** The entry that silences the signals of its connection. */
  silences: ListEntry | null
}

export const noListDecision: ListDecision = { decides: null, silences: null }

/**
 * What lists make of an event. Any entry of the deny list decides before one of the allow list, and
 * of one list the device's before the user's, then the longest network's, the operator's and the
 * country's. `user_id` and `account_id` are both users. An entry that is over is none, so a wider
 * network can decide. What silences depends on no other entry.
 * @param nowMs the server's wall clock; an entry is over at the instant of its expiry
 * @param connection where the event came from; null where that was not measured
 */
export function findListDecision(
  lists: ListSource,
  { device_id: deviceId, user_id: userId, account_id: accountId }: ListedIds,
  nowMs: number,
  connection: ListedConnection | null = null,
): ListDecision {
  const isInForce = ({ expiresAtMs }: ListEntry) => expiresAtMs === null || nowMs < expiresAtMs
  const isDenied = ({ list }: ListEntry) => list === 'deny'
  const users = [userId, accountId].filter((id) => id !== undefined)
  const ofIds = [
    ...lists.find('device', deviceId),
    ...users.flatMap((id) => lists.find('user', id)),
  ]
  const ofConnection = connection === null ? [] : lists.findOfConnection(connection)
  const ids = ofIds.filter(isInForce)
  const connections = ofConnection.filter(isInForce)
  return {
    decides: ids.find(isDenied) ?? connections.find(isDenied) ?? ids[0] ?? null,
    silences: connections.find((entry) => !isDenied(entry)) ?? null,
  }
}

/** The server signals that are scored and stored: without those that an entry silences. */
export function withoutSilenced(signals: ServerSignals, { silences }: ListDecision): ServerSignals {
  if (silences === null) return signals
  const { connection: _, ...kept } = signals
  return kept
}

/** The reasons of an event by lists: which entries and why, never who made them. */
export const toListReasons = ({ decides, silences }: ListDecision): Reason[] => [
  ...(silences === null ? [] : [toReason(connectionAllowed, silences)]),
  ...(decides === null ? [] : [toReason(listFlags[decides.list], decides)]),
]

const toReason = (code: Flag, { entryId, kind, reason }: ListEntry): Reason => ({
  code,
  weight: 0,
  evidence: { entry_id: entryId, kind, reason },
})

/** The reason that a list decision left in an event; undefined when no list decided it. */
export const findListReason = (reasons: readonly Reason[]): Reason | undefined =>
  reasons.find(({ code }) => isListFlag(code))

/** All reasons that lists left in an event, in their order. */
export const findListReasons = (reasons: readonly Reason[]): Reason[] =>
  reasons.filter(({ code }) => isListFlag(code) || code === connectionAllowed)

/**
 * The verdict on the signals under lists: its action and its flags. The score stays.
 * @param listed from `toListReasons` or `findListReasons`
 */
export function applyListReasons(scored: Score, listed: readonly Reason[]): Score {
  if (listed.length === 0) return scored
  const decided = findListReason(listed)
  const action = decided === undefined ? scored.action : listOutcomes[decided.code]!.action
  return { score: scored.score, action, reasons: [...scored.reasons, ...listed] }
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

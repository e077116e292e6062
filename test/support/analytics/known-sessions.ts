/** What the sessions of the planned history turned out to be, by the pure functions. */
import {
  type CoverableSession,
  isCovered,
  toCoverage,
  toSessionOutcome,
} from '#shared/core/outcomes/coverage.ts'
import { type Outcome, toCountingLabels, toOutcome } from '#shared/core/outcomes/labels.ts'
import type { FleetHistory } from './fleet-history.ts'
import type { HistoryEvent } from './history-alerts.ts'
import type { HistoryLabel } from './history-labels.ts'

export type KnownSession = CoverableSession & {
  events: HistoryEvent[]
  outcome: Outcome
  /** Those that count and cover it. */
  labels: HistoryLabel[]
}

export const toSessionKey = (deviceId: string, sessionId: string): string =>
  JSON.stringify([deviceId, sessionId])

const sessionsOf = ({ events }: FleetHistory) =>
  [
    ...Map.groupBy(events, ({ event: { body } }) =>
      toSessionKey(body.device_id, body.session_id),
    ).values(),
  ].map((own) => ({
    deviceId: own[0]!.event.body.device_id,
    sessionId: own[0]!.event.body.session_id,
    users: own.flatMap(({ event: { body } }) =>
      [body.user_id, body.account_id].filter((id) => id !== undefined),
    ),
    eventIds: own.map(({ event }) => event.event_id),
    startedAtMs: Math.min(...own.map(({ event }) => event.received_at)),
    events: own,
  }))

/** The sessions of which something is known. */
export function findKnownSessions(history: FleetHistory): KnownSession[] {
  const counting = toCountingLabels(history.labels) as HistoryLabel[]
  const judged = Map.groupBy(
    history.alerts.filter(({ disposition }) => /^(CONFIRMED|FALSE_POSITIVE)$/.test(disposition)),
    ({ deviceId, sessionId }) => toSessionKey(deviceId, sessionId),
  )
  return sessionsOf(history).flatMap((session) => {
    const alerts = judged.get(toSessionKey(session.deviceId, session.sessionId)) ?? []
    const dispositions = alerts.map(({ disposition }) =>
      disposition === 'CONFIRMED' ? 'fraud' : 'legitimate',
    )
    const outcome = toSessionOutcome(session, counting, dispositions)
    const labels = counting.filter((label) => isCovered(session, toCoverage(label)))
    return outcome === null ? [] : [{ ...session, outcome, labels }]
  })
}

/** Cents of a decimal text. */
export const toCents = (amount: unknown): number => Math.round(Number(amount) * 100)

/** The cents that were lost, by currency: every loss once. */
export function sumLosses(known: readonly KnownSession[]): Record<string, number> {
  const losses = new Map<string, HistoryLabel>()
  for (const { labels, outcome } of known) {
    for (const label of labels) {
      if (outcome !== 'fraud' || toOutcome(label.label, label.codeMeans) !== 'fraud') continue
      const loss = label.externalId === '' ? label.labelId : `external ${label.externalId}`
      const present = losses.get(loss)
      if (present === undefined || present.seq < label.seq) losses.set(loss, label)
    }
  }
  const sums: Record<string, number> = {}
  for (const { amount, currency } of losses.values()) {
    if (currency !== null) sums[currency] = (sums[currency] ?? 0) + toCents(amount)
  }
  return sums
}

// Labelled sessions, and the questions of the cookbook about them: the views say of every session of
// the simulated fleet what the pure functions say.
import { describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  type CoverableSession,
  isCovered,
  toCoverage,
  toSessionOutcome,
} from '#shared/core/outcomes/coverage.ts'
import { type Outcome, toCountingLabels, toOutcome } from '#shared/core/outcomes/labels.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { fleetTenant } from '../../support/analytics/fleet-history.ts'
import type { HistoryEvent } from '../../support/analytics/history-alerts.ts'
import type { HistoryLabel } from '../../support/analytics/history-labels.ts'
import type { CookbookRig } from './cookbook-networks.ts'

type Known = CoverableSession & { events: HistoryEvent[]; outcome: Outcome; labels: HistoryLabel[] }

const toKey = (deviceId: string, sessionId: string) => JSON.stringify([deviceId, sessionId])
/** Cents of a decimal text. */
const toCents = (amount: unknown) => Math.round(Number(amount) * 100)

export function describeLabels({
  answer,
  findHistory,
  findClickhouse,
}: CookbookRig & { findClickhouse: () => Clickhouse }): void {
  const sessionsOf = () =>
    [
      ...Map.groupBy(findHistory().events, ({ event: { body } }) =>
        toKey(body.device_id, body.session_id),
      ).values(),
    ].map((events) => ({
      deviceId: events[0]!.event.body.device_id,
      sessionId: events[0]!.event.body.session_id,
      users: events.flatMap(({ event: { body } }) =>
        [body.user_id, body.account_id].filter((id) => id !== undefined),
      ),
      eventIds: events.map(({ event }) => event.event_id),
      startedAtMs: Math.min(...events.map(({ event }) => event.received_at)),
      events,
    }))
  const findKnown = (): Known[] => {
    const { alerts, labels } = findHistory()
    const counting = toCountingLabels(labels) as HistoryLabel[]
    const judged = Map.groupBy(
      alerts.filter(({ disposition }) => ['CONFIRMED', 'FALSE_POSITIVE'].includes(disposition)),
      ({ deviceId, sessionId }) => toKey(deviceId, sessionId),
    )
    return sessionsOf().flatMap((session) => {
      const dispositions = (judged.get(toKey(session.deviceId, session.sessionId)) ?? []).map(
        ({ disposition }) => (disposition === 'CONFIRMED' ? 'fraud' : 'legitimate'),
      )
      const outcome = toSessionOutcome(session, counting, dispositions)
      const covering = counting.filter((label) => isCovered(session, toCoverage(label)))
      return outcome === null ? [] : [{ ...session, outcome, labels: covering }]
    })
  }
  /** Of each loss the cents, by currency. */
  const sumLosses = (known: readonly Known[]) => {
    const losses = new Map<string, HistoryLabel>()
    for (const { labels, outcome } of known) {
      for (const label of labels) {
        if (outcome !== 'fraud' || toOutcome(label.label) !== 'fraud') continue
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

  describe('a labelled session', () => {
    it('is what the pure function says, for every session of the fleet', async () => {
      const result = await findClickhouse().query({
        query: `select device_id, session_id, outcome, label_ids
          from analytics.labelled_sessions where tenant_id = {tenant:String}`,
        query_params: { tenant: fleetTenant },
        format: 'JSONCompactEachRow',
      })
      const found = (await result.json<[string, string, Outcome, string[]]>()).map(
        ([device, session, outcome, ids]) =>
          [toKey(device, session), outcome, ids.filter((id) => id.startsWith('lbl_'))] as const,
      )
      const known = findKnown().map(
        ({ deviceId, sessionId, outcome, labels }) =>
          [
            toKey(deviceId, sessionId),
            outcome,
            labels.map(({ labelId }) => labelId).sort(),
          ] as const,
      )
      expect(known.filter(([, outcome]) => outcome === 'fraud').length).toBeGreaterThan(50)
      expect(known.filter(([, outcome]) => outcome === 'legitimate').length).toBeGreaterThan(50)
      const byKey = (rows: readonly (readonly [string, ...unknown[]])[]) =>
        [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
      expect(byKey(found)).toEqual(byKey(known))
    })

    it('has every loss once, by currency', async () => {
      const result = await findClickhouse().query({
        query: `select loss.1, toString(sum(loss.2))
          from analytics.labelled_sessions
          array join cast(losses as Array(Tuple(String, Decimal(38, 4)))) as loss
          where tenant_id = {tenant:String} group by loss.1`,
        query_params: { tenant: fleetTenant },
        format: 'JSONCompactEachRow',
      })
      const found = (await result.json<[string, string]>()).map(
        ([currency, amount]) => [currency, toCents(amount)] as const,
      )
      const expected = sumLosses(findKnown())
      expect(Object.keys(expected).sort()).toEqual(['EUR', 'USD'])
      expect(Object.fromEntries(found)).toEqual(expected)
    })
  })

  describe('a question about outcomes', () => {
    it('counts how much of the known fraud each flag catches', async () => {
      const { rows } = await answer('recall-by-flag')
      const known = findKnown()
      const count = (outcome: Outcome, flag?: string) =>
        known.filter(
          (one) =>
            one.outcome === outcome &&
            (flag === undefined ||
              one.events.some(({ event }) => event.reasons.some(({ code }) => code === flag))),
        ).length
      expect(rows.length).toBeGreaterThan(3)
      const frauds = count('fraud')
      for (const row of rows) {
        const { rate, low, high } = toRate(Number(row.fraud_sessions), frauds)
        expect(Number(row.recall)).toBeCloseTo(rate!, 3)
        expect(Number(row.recall_low)).toBeCloseTo(low, 3)
        expect(Number(row.recall_high)).toBeCloseTo(high, 3)
        // Flags of the session’s highest score: some of its events may have others.
        expect(Number(row.fraud_sessions)).toBeLessThanOrEqual(count('fraud', String(row.flag)))
        expect(row.as_of).toMatch(/^2026-/)
      }
    })

    it('adds the losses up by signals, and those without an alert', async () => {
      const { rows } = await answer('losses-by-signals')
      const sums: Record<string, number> = {}
      for (const row of rows) {
        const currency = String(row.currency)
        sums[currency] = (sums[currency] ?? 0) + toCents(row.lost)
        expect(toCents(row.lost_without_alert)).toBeLessThanOrEqual(toCents(row.lost))
      }
      expect(sums).toEqual(sumLosses(findKnown()))
      expect(rows.some((row) => (row.signals as string[]).length > 1)).toBe(true)
    })

    it('measures how late labels come', async () => {
      const { rows } = await answer('time-to-label')
      const frauds = findKnown().filter(({ outcome }) => outcome === 'fraud')
      expect(rows.reduce((sum, row) => sum + Number(row.sessions), 0)).toBe(frauds.length)
      for (const row of rows) {
        expect(Number(row.days_from_session)).toBeLessThanOrEqual(Number(row.days_from_session_p90))
        expect(Number(row.days_from_first_sight)).toBeGreaterThanOrEqual(
          Number(row.days_from_session),
        )
        expect(Number(row.days_from_session_p90)).toBeLessThan((95 * dayMs) / dayMs)
      }
    })

    it('counts the honest users that a version of the policy harmed', async () => {
      const { rows } = await answer('harmed-honest-users')
      const honest = findKnown().filter(({ outcome }) => outcome === 'legitimate')
      const alerted = new Set(
        findHistory().alerts.map(({ deviceId, sessionId }) => toKey(deviceId, sessionId)),
      )
      const harmed = honest.filter(({ deviceId, sessionId }) =>
        alerted.has(toKey(deviceId, sessionId)),
      )
      const { rate, low } = toRate(harmed.length, honest.length)
      expect(rows).toEqual([
        expect.objectContaining({
          policy_version: 1,
          honest_sessions: honest.length,
          harmed_sessions: harmed.length,
          harmed_share: Number(rate!.toFixed(3)),
          harmed_low: Number(low.toFixed(3)),
          harmed_users: new Set(harmed.flatMap(({ users }) => users)).size,
        }),
      ])
    })
  })
}

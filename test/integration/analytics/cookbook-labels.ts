// Labelled sessions, and the questions of the cookbook about them: the views say of every session of
// the simulated fleet what the pure functions say.
import { describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { fleetTenant } from '../../support/analytics/fleet-history.ts'
import {
  findKnownSessions,
  sumLosses,
  toCents,
  toSessionKey,
} from '../../support/analytics/known-sessions.ts'
import type { CookbookRig } from './cookbook-networks.ts'

export function describeLabels({
  answer,
  findHistory,
  findClickhouse,
}: CookbookRig & { findClickhouse: () => Clickhouse }): void {
  const findKnown = () => findKnownSessions(findHistory())

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
          [
            toSessionKey(device, session),
            outcome,
            ids.filter((id) => id.startsWith('lbl_')),
          ] as const,
      )
      const known = findKnown().map(
        ({ deviceId, sessionId, outcome, labels }) =>
          [
            toSessionKey(deviceId, sessionId),
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
        findHistory().alerts.map(({ deviceId, sessionId }) => toSessionKey(deviceId, sessionId)),
      )
      const harmed = honest.filter(({ deviceId, sessionId }) =>
        alerted.has(toSessionKey(deviceId, sessionId)),
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

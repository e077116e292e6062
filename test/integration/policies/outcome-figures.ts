// The outcomes of one tenant's sessions as every figure of them says: rule performance, backtest,
// shadow comparison, suggestion, overview and the view of analysts, beside plain counting.
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { Loss, OutcomeCounts } from '#shared/core/outcomes/outcome-counts.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createShadowDecisionWriter } from '#shared/io/policies/shadow-decision-store.ts'
import {
  decide,
  type StoredOutcomes,
  type StoredSession,
} from '../../support/outcomes/stored-outcomes.ts'
import { toModelScorer } from '../../support/scoring/backtest-model.ts'

/** What is compared; money in cents of EUR. */
export type Figures = {
  fraud: number
  caught: number
  missed: number
  honest: number
  harmed: number
  harmedUsers?: number
  money?: { lost: number; caught: number }
}

/** Counts the sessions that began at an instant or later. */
export function countFigures(
  sessions: readonly StoredSession[],
  sinceMs: number,
  hasAlert: (session: StoredSession) => boolean = wasAlerted,
): Required<Figures> {
  const known = sessions.filter(
    ({ startedAtMs, outcome }) => startedAtMs >= sinceMs && outcome !== null,
  )
  const fraud = known.filter(({ outcome }) => outcome === 'fraud')
  const honest = known.filter(({ outcome }) => outcome === 'legitimate')
  const [caught, harmed] = [fraud.filter(hasAlert), honest.filter(hasAlert)]
  const sum = (all: readonly StoredSession[]) =>
    all.reduce((total, { lostCents }) => total + lostCents, 0)
  return {
    fraud: fraud.length,
    caught: caught.length,
    missed: fraud.length - caught.length,
    honest: honest.length,
    harmed: harmed.length,
    harmedUsers: new Set(harmed.map(({ userId }) => userId)).size,
    money: { lost: sum(fraud), caught: sum(caught) },
  }
}

const wasAlerted = ({ riskScore }: StoredSession): boolean =>
  riskScore >= defaultPolicy.thresholds.review

/** Whether a session has an alert under another policy: risk features are not computed again. */
export function toAlertedUnder(policy: Policy): (session: StoredSession) => boolean {
  const score = toModelScorer(policy)
  return (session) => {
    const hadOwn = session.events.some(({ rasp_action: action }) => action !== 'ALLOW')
    const hasOwn = session.events.some((event) => score(event).action !== 'ALLOW')
    return hasOwn || (wasAlerted(session) && !hadOwn)
  }
}

/** Whether a session has an alert under another policy that had decided everything itself. */
export function toDecidedUnder(
  policy: Policy,
  { decisions }: StoredOutcomes,
): (session: StoredSession) => boolean {
  const score = toModelScorer(policy)
  const shared = new Set(decisions.map(({ event }) => event.event_id))
  return (session) =>
    session.events.some((event) => {
      const { score: own, action, reasons } = score(event)
      if (!shared.has(event.event_id)) return action !== 'ALLOW'
      const scored = { ...event, rasp_score: own, rasp_action: action, reasons }
      return decide(scored, policy).risk.action !== 'ALLOW'
    })
}

const toCents = (text: string): number => Math.round(100 * Number(text))

export function toFigures(
  counts: Omit<OutcomeCounts, 'recall' | 'harmed_share'>,
): Required<Figures> {
  const { fraud, caught, missed, honest, harmed, harmed_users: harmedUsers, losses } = counts
  expect(losses.map(({ currency }) => currency)).toEqual(['EUR'])
  const [{ lost, caught: kept, missed: gone }] = losses as [Loss]
  expect(toCents(kept) + toCents(gone)).toBe(toCents(lost))
  const money = { lost: toCents(lost), caught: toCents(kept) }
  return { fraud, caught, missed, honest, harmed, harmedUsers, money }
}

/** What analysts find in the view. */
export async function readViewFigures(
  clickhouse: Clickhouse,
  sinceMs: number,
): Promise<Required<Figures>> {
  const isAlert = "action != 'ALLOW'"
  const result = await clickhouse.query({
    query: `
      select countIf(outcome = 'fraud') as fraud,
        countIf(outcome = 'fraud' and ${isAlert}) as caught,
        fraud - caught as missed, countIf(outcome = 'legitimate') as honest,
        countIf(outcome = 'legitimate' and ${isAlert}) as harmed,
        length(groupUniqArrayArrayIf(users, outcome = 'legitimate' and ${isAlert})) as harmedUsers,
        toFloat64(sum(losses['EUR'])) as lost, toFloat64(sumIf(losses['EUR'], ${isAlert})) as kept
      from analytics.labelled_sessions
      where tenant_id = 'learn' and started_at >= fromUnixTimestamp64Milli({since:Int64})`,
    query_params: { since: sinceMs },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<Figures & { lost: number; kept: number }>()
  const { lost, kept, ...counts } = row!
  const money = { lost: Math.round(100 * lost), caught: Math.round(100 * kept) }
  return { ...(counts as Required<Figures>), money }
}

const harmedUsersFile = new URL(
  '../../../clickhouse/cookbook/43-harmed-honest-users.sql',
  import.meta.url,
)

type HarmedUsers = { honest_sessions: number; harmed_sessions: number; harmed_users: number }

/** Asks the cookbook's question of honest users, newest version of the policy first. */
export async function askHarmedUsers(
  clickhouse: Clickhouse,
  tenantId: string,
  sinceMs: number,
): Promise<HarmedUsers[]> {
  const result = await clickhouse.query({
    query: readFileSync(harmedUsersFile, 'utf8'),
    query_params: { tenant: tenantId, from: new Date(sinceMs), to: new Date('2100-01-01') },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
    format: 'JSONEachRow',
  })
  return result.json<HarmedUsers>()
}

/** Stores the decisions of a shadow policy that is the active one, and returns its hash. */
export async function storeShadow(
  clickhouse: Clickhouse,
  { events, decisions }: StoredOutcomes,
): Promise<string> {
  const policyHash = toPolicyHash(defaultPolicy)
  const raised = new Map(decisions.map(({ event, risk }) => [event.event_id, risk]))
  const rows = events.map((event) => {
    const { rasp_score: raspScore, rasp_action: action, reasons } = event
    const risk = raised.get(event.event_id) ?? { riskScore: raspScore, action, reasons }
    return { event, risk, shadow: { version: 1, policyHash, verdict: { raspScore, risk } } }
  })
  await createShadowDecisionWriter(clickhouse).insertDecisions(rows)
  return policyHash
}

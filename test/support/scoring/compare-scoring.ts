/**
 * Compares the two compilers of scoring: random events, stored as a scorer stores them, scored by
 * the edge's closure and by the engine under random policies.
 */
import fc from 'fast-check'
import type { Policy } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { flagWords, readFlagWords } from '#shared/core/scoring/sql/flag-words.ts'
import { compileToSql, toScoringQuery } from '#shared/core/scoring/sql/scoring-sql.ts'
import {
  bodySettings,
  needsBody,
  type Source,
} from '#shared/core/scoring/sql/scoring-sql-points.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  isNewerThanPattern,
  noVerdict,
  scorePatterns,
  toLookUps,
} from '#shared/io/policies/backtest-pattern-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { makeEvents } from '../telemetry/accepted-events.ts'
import { anyEvent } from './backtest-cases.ts'

/** Score, action and flags, sorted. */
export type Verdict = [score: number, action: number, flags: string[]]

export type Comparison = {
  pairs: number
  /** Pairs whose score is above 0: the others prove little. */
  scored: number
  different: number
  /** The first few, with the data to investigate them. */
  first: { policy: number; edge: Verdict; engine: Verdict | undefined; body: unknown }[]
}

/** Policies per query: so few that a busy machine answers before the client gives up. */
const policiesPerQuery = 1

/** Stores random events through the production insert. */
export async function storeAnyEvents(
  clickhouse: Clickhouse,
  { seed, count }: { seed: number; count: number },
): Promise<AcceptedEvent[]> {
  const facts = fc.sample(anyEvent, { seed, numRuns: count })
  const events = makeEvents(facts.map((one, n) => ({ ...one, tenantId: 'acme', nonce: n })))
  const store = createTelemetryStore(clickhouse)
  for (let at = 0; at < events.length; at += 1_000) {
    const { withoutSignals, refused } = await store.insertTelemetry(events.slice(at, at + 1_000))
    if (withoutSignals.length + refused.length > 0) throw new Error('an event was not stored whole')
  }
  return events
}

/** Scores every stored event under every policy both ways. */
export async function compareScoring(
  clickhouse: Clickhouse,
  events: readonly AcceptedEvent[],
  policies: readonly Policy[],
  source: Source | 'either' = 'either',
): Promise<Comparison> {
  const found: Comparison = { pairs: 0, scored: 0, different: 0, first: [] }
  for (let from = 0; from < policies.length; from += policiesPerQuery) {
    const some = policies.slice(from, from + policiesPerQuery)
    const byEvent = await scoreInEngine(clickhouse, some, source)
    some.forEach((policy, index) => {
      const score = toEdge(policy)
      for (const event of events) {
        const edge = score(event)
        const engine = byEvent.get(event.event_id)?.[index]
        found.pairs++
        if (edge[0] > 0) found.scored++
        if (JSON.stringify(edge) === JSON.stringify(engine)) continue
        found.different++
        if (found.first.length >= 3) continue
        found.first.push({ policy: from + index, edge, engine, body: event.body })
      }
    })
  }
  return found
}

/**
 * Scores every stored event by its pattern, where the pattern supports the policy.
 * @returns pairs are those that were compared
 */
export async function comparePatterns(
  clickhouse: Clickhouse,
  events: readonly AcceptedEvent[],
  policies: readonly Policy[],
): Promise<Comparison> {
  const found: Comparison = { pairs: 0, scored: 0, different: 0, first: [] }
  const select = async <Row>(query: string): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: { tenant: 'acme' },
      format: 'JSONCompactEachRow' as const,
      clickhouse_settings: { max_query_size: '100000000', compile_expressions: 0 },
    })
    return (await result.json()) as Row[]
  }
  for (const [index, policy] of policies.entries()) {
    const where = 'tenant_id = {tenant:String}'
    const scored = await scorePatterns(select, { policies: [policy], where })
    const { constants, verdictOf, flagsOf } = toLookUps(scored)
    const words = flagWords.map((word) => `toFloat64(${flagsOf(0, word)})`)
    const rows = await select<[string, number, ...number[]]>(`with ${constants.join(', ')}
      select event_id, ${verdictOf(0)} as verdict, ${words.join(', ')} from telemetry
      where ${where} and verdict != ${noVerdict} and not ${isNewerThanPattern([policy])}`)
    const byEvent = new Map(rows.map(([event, ...verdict]) => [event, verdict] as const))
    const score = toEdge(policy)
    for (const event of events) {
      const [verdict, ...bits] = byEvent.get(event.event_id) ?? []
      if (verdict === undefined) continue
      const edge = score(event)
      const engine: Verdict = [verdict & 255, verdict >> 8, readFlagWords(bits)]
      found.pairs++
      if (edge[0] > 0) found.scored++
      if (JSON.stringify(edge) === JSON.stringify(engine)) continue
      found.different++
      if (found.first.length < 3) {
        found.first.push({ policy: index, edge, engine, body: event.body })
      }
    }
  }
  return found
}

const actionNumbers = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

function toEdge(policy: Policy): (event: AcceptedEvent) => Verdict {
  const scorer = compilePolicy(policy)
  return ({ body, received_at: receivedAtMs, server_signals: server }) => {
    const { sdk_version: sdkVersion, platform } = body.sdk_meta
    const verdict = scorer(body.signals as Signals, { sdkVersion, platform, receivedAtMs }, server)
    const flags = verdict.reasons.map(({ code }) => code).sort()
    return [verdict.score, actionNumbers[verdict.action], flags]
  }
}

async function scoreInEngine(
  clickhouse: Clickhouse,
  policies: readonly Policy[],
  source: Source | 'either',
): Promise<Map<string, Verdict[]>> {
  const names = policies.map((_, n) => `n${n}_`)
  const part = (from: Source, where: string) => {
    const compiled = policies.map((policy, n) =>
      compileToSql(policy, { prefix: names[n]!, source: from, withFlags: true }),
    )
    const keep = [{ name: 'event', sql: 'event_id' }]
    return toScoringQuery(compiled, { from: `telemetry where ${where}`, keep })
  }
  const odd = needsBody(policies)
  const query =
    source === 'either'
      ? [
          part('columns', `not (${odd})`),
          ...((await isAny(clickhouse, odd)) ? [part('body', odd)] : []),
        ]
      : [part(source, '1')]
  const words = (name: string) => flagWords.map((word) => `toFloat64(${name}flags${word})`)
  const verdicts = names.map((name) => `(${name}score, ${name}action, [${words(name).join(', ')}])`)
  const result = await clickhouse.query({
    query: `select event, ${verdicts.join(', ')} from (${query.join(' union all ')})`,
    format: 'JSONCompactEachRow',
    clickhouse_settings: {
      max_query_size: '100000000',
      max_ast_elements: '10000000',
      compile_expressions: 0,
      ...bodySettings,
    },
  })
  const rows = await result.json<[string, ...[number, number, number[]][]]>()
  return new Map(
    rows.map(([event, ...all]) => [
      event,
      all.map(([score, action, bits]) => [score, action, readFlagWords(bits)] as Verdict),
    ]),
  )
}

/** Most tables have no such row, and a query that is not sent need not be planned. */
async function isAny(clickhouse: Clickhouse, condition: string): Promise<boolean> {
  const query = `select 1 from telemetry where ${condition} limit 1`
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  return (await result.json()).length > 0
}

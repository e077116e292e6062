// One policy, two compilers: what the edge answers and what the engine computes over stored rows
// are the same score, action and flags, whatever the policy and whatever the event.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AcceptedEvent } from '#shared/core/messages.ts'
import { presets } from '#shared/core/policies/presets.ts'
import type { Policy } from '#shared/core/policy.ts'
import { compilePolicy } from '#shared/core/scoring.ts'
import { compileToSql, toScoringQuery } from '#shared/core/scoring-sql.ts'
import { needsBody } from '#shared/core/scoring-sql-points.ts'
import type { Signals } from '#shared/core/telemetry.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse.ts'
import { createTelemetryStore } from '#shared/io/telemetry-store.ts'
import { makeEvents } from '../support/accepted-events.ts'
import { anyEvent, anyWholePolicy } from '../support/backtest-cases.ts'
import { startClickhouse, type TestClickhouse } from '../support/clickhouse-server.ts'
import { migrateClickhouse } from '../support/databases.ts'

let server: TestClickhouse
let clickhouse: Clickhouse
let events: AcceptedEvent[]

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000)
const eventCount = Number(process.env.PAIR_EVENTS ?? 1_000)
const policyCount = Number(process.env.PAIR_POLICIES ?? 96)

beforeAll(async () => {
  process.stdout.write(`backtest equality seed ${seed}\n`)
  server = await startClickhouse()
  await migrateClickhouse(server.url)
  clickhouse = createClickhouse(server.url, { name: 'test' })
  const facts = fc.sample(anyEvent, { seed, numRuns: eventCount })
  events = makeEvents(facts.map((one, n) => ({ ...one, tenantId: 'acme', nonce: n })))
  const outcome = await createTelemetryStore(clickhouse).insertTelemetry(events)
  expect(outcome).toEqual({ withoutSignals: [], refused: [] })
}, 60_000)
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

type Verdict = [position: number, score: number, action: number, flags: string[]]

async function scoreInEngine(policy: Policy, source: 'columns' | 'body'): Promise<Verdict[]> {
  const odd = needsBody([policy])
  const part = (from: 'columns' | 'body', where: string) =>
    toScoringQuery([compileToSql(policy, { prefix: 'n_', source: from, withFlags: true })], {
      from: `telemetry where ${where}`,
      keep: [{ name: 'place', sql: 'toFloat64(position)' }],
    })
  const query =
    source === 'body'
      ? part('body', '1')
      : `${part('columns', `not (${odd})`)} union all ${part('body', odd)}`
  const result = await clickhouse.query({
    query: `select place, n_score, n_action, n_flags from (${query}) order by place`,
    format: 'JSONCompactEachRow',
    clickhouse_settings: { max_query_size: '100000000' },
  })
  return result.json<Verdict>()
}

const actionNumbers = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

function scoreAtEdge(policy: Policy): Verdict[] {
  const score = compilePolicy(policy)
  return events.map(({ body, position, received_at }) => {
    const verdict = score(body.signals as Signals, {
      sdkVersion: body.sdk_meta.sdk_version,
      platform: body.sdk_meta.platform,
      receivedAtMs: received_at,
    })
    const flags = verdict.reasons.map(({ code }) => code).sort()
    return [position, verdict.score, actionNumbers[verdict.action], flags]
  })
}

/** Pairs that differ, the first few with all it takes to look into them. */
async function compare(policies: readonly Policy[], source: 'columns' | 'body') {
  const different: unknown[] = []
  let pairs = 0
  let scored = 0
  for (const policy of policies) {
    const edge = scoreAtEdge(policy)
    const engine = await scoreInEngine(policy, source)
    expect(engine).toHaveLength(edge.length)
    for (let at = 0; at < edge.length; at++) {
      pairs++
      if (edge[at]![1] > 0) scored++
      if (JSON.stringify(edge[at]) === JSON.stringify(engine[at])) continue
      different.push({ edge: edge[at], engine: engine[at], signals: events[at]!.body.signals })
    }
  }
  return { pairs, scored, different: different.length, first: different.slice(0, 3) }
}

describe('a stored event', () => {
  it('scores in the engine as it did at the edge, under every preset', async () => {
    const found = await compare(Object.values(presets), 'columns')
    expect(found).toMatchObject({ different: 0, first: [] })
  })

  it('scores in the engine as it did at the edge, under any policy', async () => {
    const policies = fc.sample(anyWholePolicy, { seed, numRuns: policyCount })
    const found = await compare(policies, 'columns')
    process.stdout.write(`${found.pairs} pairs, ${found.scored} of them above 0\n`)
    expect(found).toMatchObject({ different: 0, first: [] })
    expect(found.scored).toBeGreaterThan(found.pairs / 4)
  }, 60_000)

  it('scores the same from its body where columns do not tell all of it', async () => {
    const policies = fc.sample(anyWholePolicy, { seed: seed + 1, numRuns: 2 })
    const found = await compare([presets.balanced, ...policies], 'body')
    expect(found).toMatchObject({ different: 0, first: [] })
  }, 60_000)
})

/**
 * A backtest over ten million events: first checks that the engine and the edge's closure agree on
 * a million pairs of random policies and random events, then measures its duration, cold and warm,
 * beside the closure in JavaScript over the same rows. `--events N` makes the table smaller,
 * `--pairs N` the comparison.
 */
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { createBacktestSum, eventsPerSlice } from '#shared/core/policies/backtest.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createBacktestStore } from '#shared/io/policies/backtest-store.ts'
import { anyWholePolicy } from '../../support/scoring/backtest-cases.ts'
import { fillHistory, historyTenant } from '../../support/scoring/backtest-history.ts'
import { compareScoring, storeAnyEvents } from '../../support/scoring/compare-scoring.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toSpread } from '../spread.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '10000000' },
      pairs: { type: 'string', default: '1000000' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  })
  const [pairs, events, seed] = [values.pairs, values.events, values.seed].map(Number)
  const checks = pairs! > 0 ? [await comparePairs(pairs!, seed!)] : []
  const { figures, version } = await measure(events!)
  publishReport({
    part: 'backtest',
    command: `npm run bench -- backtest --events ${events} --pairs ${pairs} --seed ${seed}`,
    versions: { clickhouse: version },
    durability: 'nothing is written',
    figures,
    checks,
  })
}

type Server = { clickhouse: Clickhouse; stop: () => Promise<void> }

async function start(): Promise<Server> {
  const server = await startClickhouse()
  await migrateClickhouse(server.url)
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 600_000 })
  return {
    clickhouse,
    stop: async () => {
      await clickhouse.close()
      await server.stop()
    },
  }
}

async function comparePairs(pairs: number, seed: number): Promise<Check> {
  const { clickhouse, stop } = await start()
  const count = Math.min(5_000, pairs)
  const startedMs = performance.now()
  const events = await storeAnyEvents(clickhouse, { seed, count })
  const policies = fc.sample(anyWholePolicy, { seed, numRuns: Math.ceil(pairs / count) })
  const found = await compareScoring(clickhouse, events, policies)
  if (found.different > 0) print(JSON.stringify(found.first, null, 2))
  await stop()
  return {
    name: 'the closure and its SQL agree',
    ok: found.different === 0,
    detail:
      `${found.pairs} pairs of ${count} events and ${policies.length} policies, ${found.scored} ` +
      `above 0: ${found.different} differences (${seconds(performance.now() - startedMs)})`,
  }
}

async function measure(events: number): Promise<{ figures: Figure[]; version: string }> {
  const { clickhouse, stop } = await start()
  let startedMs = performance.now()
  const filled = await fillHistory(clickhouse, events)
  print(
    `${filled.events} events, ${filled.bodyBytes.toFixed(0)} bytes of body each, of ` +
      `${filled.seeds} different ones; filled in ${seconds(performance.now() - startedMs)}`,
  )
  await clickhouse.command({ query: 'system drop mark cache' }).catch(() => undefined)
  const took: number[] = []
  for (const name of ['cold', 'warm']) {
    startedMs = performance.now()
    const different = await backtest(clickhouse, filled.events)
    took.push(performance.now() - startedMs)
    print(`backtest, ${name}: ${seconds(took.at(-1)!)}, ${different} recomputed otherwise`)
  }
  const engine = filled.events / (took[1]! / 1000)
  const { read, parsed } = await scoreInJavaScript(clickhouse, 100_000)
  const version = await readClickhouseVersion(clickhouse)
  await stop()
  const over = (name: string, perSecond: number): Figure => ({
    name: `events by the engine, to ${name}`,
    unit: '/s',
    value: toSpread([engine]),
    baseline: { name: 'the closure', value: toSpread([perSecond]) },
    ratio: toSpread([engine / perSecond]),
  })
  return {
    version,
    figures: [
      ...(['cold', 'warm'] as const).map((name, at) => ({
        name: `backtest of ${filled.events} events, ${name}`,
        unit: 's',
        value: toSpread([took[at]! / 1_000]),
      })),
      { ...over('rows that are read back', read), bound: { of: 'ratio', atLeast: 10 } },
      over('bodies in memory, parsed already', parsed),
    ],
  }
}

/**
 * A complete backtest of a stricter policy. @returns events with another result than the stored one
 */
async function backtest(clickhouse: Clickhouse, events: number): Promise<number> {
  const store = createBacktestStore(clickhouse)
  const range = { tenantId: historyTenant, sinceMs: null }
  const scoredBy = [{ policyHash: toPolicyHash(defaultPolicy), policy: defaultPolicy }]
  const slices = await store.planSlices(range, Math.ceil(events / eventsPerSlice))
  const prepared = await store.prepare({ ...range, policy: presets.strict, scoredBy })
  const sum = createBacktestSum()
  for (const slice of slices) sum.add(await store.scoreSlice(prepared, slice))
  const report = sum.report()
  if (report.events !== events) throw new Error(`${report.events} of ${events} were scored`)
  return report.recomputed.different
}

/** The same two policies over the same rows by the closure: a backtest without SQL. */
async function scoreInJavaScript(
  clickhouse: Clickhouse,
  count: number,
): Promise<{ read: number; parsed: number }> {
  const scorers = [presets.strict, defaultPolicy].map(compilePolicy)
  const score = (receivedAtMs: number, body: Telemetry) => {
    const { sdk_version: sdkVersion, platform } = body.sdk_meta
    for (const scorer of scorers) scorer(body.signals, { sdkVersion, platform, receivedAtMs })
  }
  let startedMs = performance.now()
  const perSecond = (events: number) => events / ((performance.now() - startedMs) / 1000)
  const result = await clickhouse.query({
    query: `select toUnixTimestamp64Milli(received_at), body from telemetry limit ${count}`,
    format: 'JSONCompactEachRow',
  })
  const kept: [number, Telemetry][] = []
  let scored = 0
  for await (const rows of result.stream<[number, string]>()) {
    for (const row of rows) {
      const [receivedAtMs, text] = row.json<[number, string]>()
      const body = JSON.parse(text) as Telemetry
      score(receivedAtMs, body)
      if (kept.length < 10_000) kept.push([receivedAtMs, body])
      scored++
    }
  }
  const read = perSecond(scored)
  startedMs = performance.now()
  for (let round = 0; round < 10; round++) for (const one of kept) score(...one)
  return { read, parsed: perSecond(10 * kept.length) }
}

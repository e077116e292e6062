// One policy, two compilers: the edge's answer and the engine's result over stored rows are the
// same score, action and flags, for any policy and any event.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { presets } from '#shared/core/policies/presets/presets.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { seed } from '../../support/process/seed.ts'
import { anyWholePolicy } from '../../support/scoring/backtest-cases.ts'
import {
  comparePatterns,
  compareScoring,
  storeAnyEvents,
} from '../../support/scoring/compare-scoring.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

let server: TestClickhouse
let clickhouse: Clickhouse
let events: AcceptedEvent[]
const eventCount = 1_000
const policyCount = 6

beforeAll(async () => {
  process.stdout.write(`backtest equality seed ${seed}\n`)
  server = await startClickhouse({ isMigrated: true })
  clickhouse = createClickhouse(server.url, { name: 'test' })
  events = await storeAnyEvents(clickhouse, { seed, count: eventCount })
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

describe('a stored event', () => {
  it('scores equally in the engine and at the edge under every preset and any policy', async () => {
    const any = fc.sample(anyWholePolicy, { seed, numRuns: policyCount })
    const found = await compareScoring(clickhouse, events, [...Object.values(presets), ...any])
    process.stdout.write(`${found.pairs} pairs, ${found.scored} of them above 0\n`)
    expect(found).toMatchObject({ different: 0, first: [] })
    expect(found.pairs).toBe(eventCount * (policyCount + Object.keys(presets).length))
    expect(found.scored).toBeGreaterThan(found.pairs / 4)
  })

  it('scores equally from its body alone', async () => {
    const any = fc.sample(anyWholePolicy, { seed: seed + 1, numRuns: 2 })
    const policies = [presets.balanced, ...any]
    const found = await compareScoring(clickhouse, events, policies, 'body')
    expect(found).toMatchObject({ different: 0, first: [] })
  })

  it('scores equally by its pattern, where the pattern supports the policy', async () => {
    const any = fc.sample(anyWholePolicy, { seed: seed + 2, numRuns: 4 })
    const all = [...Object.values(presets), ...any]
    const found = await comparePatterns(clickhouse, events, all)
    process.stdout.write(`${found.pairs} pairs by pattern, ${found.scored} of them above 0\n`)
    expect(found).toMatchObject({ different: 0, first: [] })
    expect(found.pairs).toBeGreaterThan(eventCount * Object.keys(presets).length)
  })

  it('scores equally where its columns are incomplete', async () => {
    const many = Array.from({ length: 32 }, (_, n) => `'root.new_${n}'`).join(', ')
    const run = (query: string) => clickhouse.command({ query })
    await run('create table source as telemetry')
    await run('insert into source (* except row_version) select * from telemetry')
    await run('truncate table telemetry')
    await run(`
      insert into telemetry (* except row_version)
      select * replace (
        '{}' as signals,
        kind = 0 as signals_refused,
        -- From before there were positions and bits.
        if(kind = 1, 0, stream_offset) as stream_offset,
        0 as detected_bits,
        0 as clean_bits,
        -- A list that nobody knew, and more unknown signals than are named.
        multiIf(kind = 2, ['tamper.pi_app_access_risk'], kind = 3, [${many}], []) as unknown_signals
      ) except kind
      from (select *, cityHash64(event_id) % 4 as kind from source)`)
    const found = await compareScoring(clickhouse, events, [presets.strict])
    expect(found).toMatchObject({ pairs: eventCount, different: 0, first: [] })
  })
})

// Signals go to ClickHouse in its binary form, and the detected ones are named here rather than by
// the engine: what is stored is what the engine itself makes of the text, whatever clients send.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeSignals } from '#shared/core/signals-column.ts'
import type { Signals } from '#shared/core/telemetry.ts'
import { type Clickhouse, createClickhouse, insertRowBinary } from '#shared/io/clickhouse.ts'
import { createRowWriter } from '#shared/io/row-binary.ts'
import { createTelemetryStore } from '#shared/io/telemetry-store.ts'
import { type EventFacts, makeEvents } from '../support/accepted-events.ts'
import { anyEvent } from '../support/backtest-cases.ts'
import { startClickhouse, type TestClickhouse } from '../support/clickhouse-server.ts'
import { migrateClickhouse } from '../support/databases.ts'
import { seed } from '../support/seed.ts'

let server: TestClickhouse
let clickhouse: Clickhouse

beforeAll(async () => {
  server = await startClickhouse()
  await migrateClickhouse(server.url)
  clickhouse = createClickhouse(server.url, { name: 'test' })
  await clickhouse.command({
    query: `create table by_text (
      event_id String, signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2)
    ) engine = MergeTree order by event_id`,
  })
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

async function select<Row>(query: string): Promise<Row[]> {
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
  return result.json<Row>()
}

const lists = [[], [null], [1, 2.5], [1, null], [0.5], ['a', null, ''], [true, null], [[]], [{}]]
const numbers = [0, -0, -3, 1.5, 5e-324, 1e21, -1e300, 2 ** 53 - 1, -(2 ** 53) + 1]
const keys = [
  'a.b',
  'a%2Eb',
  '',
  '.',
  'ключ',
  '\u0000',
  '😀',
  'x'.repeat(64),
  'x'.repeat(65),
  '\uffff',
]
const odd: EventFacts[] = [
  ...lists.map((list) => ({ signals: { root: { list, 'a.b': list, deep: { list, a: {} } } } })),
  ...numbers.map((number) => ({ signals: { network: { number, latency: [number] } } })),
  ...keys.flatMap((key) => [
    { signals: { root: { [key]: true, 'a.b': 1, a: { b: 'x' } }, [key]: { root: false } } },
    { signals: { tamper: { [key]: { [key]: 'x' }, app_attest_valid: false, 'a%2Eb': true } } },
  ]),
  { signals: { tamper: { app_attest_valid: true }, root: { app_attest_valid: false } } },
  {
    signals: {
      root: Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`own_${n}`, true])),
      emulator: Object.fromEntries(keys.map((key) => [key, true])),
    },
  },
]

// The text's reader makes a float of a whole number where a neighbour's has a fraction.
const toComparable = (row: unknown): string =>
  JSON.stringify(row).replaceAll(/Int64|Float64/g, 'number')

describe('the signals of an event', () => {
  it('are stored as the engine reads them from their text, paths and types alike', async () => {
    process.stdout.write(`signals seed ${seed}\n`)
    const facts = [...odd, ...fc.sample(anyEvent, { seed, numRuns: 1_500 })]
    const events = makeEvents(facts.map((one, nonce) => ({ ...one, nonce, tenantId: 'binary' })))
    const outcome = await createTelemetryStore(clickhouse).insertTelemetry(events)
    expect(outcome).toEqual({ withoutSignals: [], refused: [] })
    const writer = createRowWriter()
    for (const event of events) {
      writer.string(event.event_id)
      writer.string(encodeSignals(event.body.signals as Signals))
    }
    await insertRowBinary(clickhouse, 'by_text (event_id, signals)', writer.written(), {
      input_format_binary_read_json_as_string: 1,
      type_json_skip_duplicated_paths: 1,
      json_type_escape_dots_in_keys: 1,
      input_format_try_infer_dates: 0,
      input_format_try_infer_datetimes: 0,
    })
    const shown = 'toString(signals), toString(JSONAllPathsWithTypes(signals))'
    const [byText, stored] = await Promise.all([
      select(`select event_id, ${shown} from by_text order by event_id`),
      select(
        `select event_id, ${shown} from telemetry where tenant_id = 'binary' order by event_id`,
      ),
    ])
    expect(stored).toHaveLength(events.length)
    const texts = byText.map(toComparable)
    const different = stored.map(toComparable).filter((row, at) => row !== texts[at])
    const wanted = texts.filter((row, at) => row !== toComparable(stored[at]))
    expect(different).toEqual(wanted)
    expect(byText).toHaveLength(stored.length)
  })

  it('that were detected are those that the default of their column finds in the body', async () => {
    const [[found] = ['']] = await select<[string]>(
      `select default_expression from system.columns
       where database = currentDatabase() and table = 'telemetry' and name = 'detected_signals'`,
    )
    const rows = await select<[string[], string[]]>(
      `select detected_signals, ${found} as by_default from telemetry where tenant_id = 'binary'`,
    )
    expect(rows.some(([names]) => names.length === 256)).toBe(true)
    for (const [names, byDefault] of rows) expect(names).toEqual(byDefault)
  })
})

// Signals go to ClickHouse in its binary form, and this code lists the detected ones instead of the
// engine: both equal what the engine makes of the text, for any client input.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { bodySettings } from '#shared/core/scoring/sql/scoring-sql-points.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { encodeSignals } from '#shared/core/signals/signals-column.ts'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { insertRowBinary } from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { seed } from '../../support/process/seed.ts'
import { anyEvent } from '../../support/scoring/backtest-cases.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import {
  type EventFacts,
  encodeEvent,
  makeBody,
  makeElement,
  makeEvents,
} from '../../support/telemetry/accepted-events.ts'

const clickhouse = await useClickhouse()

beforeAll(async () => {
  await clickhouse.command({
    query: `create table by_text (
      event_id String, signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2)
    ) engine = MergeTree order by event_id`,
  })
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

// The engine's JSON parser makes a float of a whole number where a neighbour has a fraction.
const toComparable = (row: unknown): string =>
  JSON.stringify(row).replaceAll(/Int64|Float64/g, 'number')

describe('the signals of an event', () => {
  it('are stored as the engine parses them from their text, with paths and types', async () => {
    process.stdout.write(`signals seed ${seed}\n`)
    const facts = [...odd, ...fc.sample(anyEvent, { seed, numRuns: 1_500 })]
    const events = makeEvents(facts.map((one, nonce) => ({ ...one, nonce, tenantId: 'binary' })))
    const everyPath = { admit: () => true, listFull: () => [], free: () => undefined }
    const outcome = await createTelemetryStore(clickhouse, { paths: everyPath }).insertTelemetry(
      events,
    )
    expect(outcome).toEqual({ withoutSignals: [], refused: [], leftOut: new Map() })
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
    const expected = texts.filter((row, at) => row !== toComparable(stored[at]))
    expect(different).toEqual(expected)
    expect(byText).toHaveLength(stored.length)
  })

  it('that were detected equal the default of their column over the body', async () => {
    const [[found] = ['']] = await select<[string]>(
      `select default_expression from system.columns
       where database = currentDatabase() and table = 'telemetry' and name = 'detected_signals'`,
    )
    // As every query of bodies: simdjson finds nothing beside an integer beyond 64 bits.
    const rows = await select<[string[], string[]]>(
      `select detected_signals, ${found} as by_default from telemetry where tenant_id = 'binary'
       settings allow_simdjson = ${bodySettings.allow_simdjson}`,
    )
    expect(rows.some(([names]) => names.length === 256)).toBe(true)
    for (const [names, byDefault] of rows) expect(names).toEqual(byDefault)
  })

  it('have paths for the catalog and 64 more names per tenant; others are counted', async () => {
    const store = createTelemetryStore(clickhouse)
    const names = (from: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`made_up_${from + n}`, n]))
    const catalog = { su_binary: true, magisk_detected: false }
    const facts = [
      { tenantId: 'loud', signals: { root: { ...catalog, ...names(0, 60) } } },
      { tenantId: 'loud', signals: { tamper: names(100, 300), root: { more: names(500, 40) } } },
      { tenantId: 'quiet', signals: { root: { ...catalog, ...names(0, 10) } } },
      { tenantId: 'loud', signals: { root: { ...catalog, ...names(0, 5), late: 1 } } },
    ].map((one, nonce) => ({ ...one, nonce, sessionId: `s${nonce}` }))
    const outcome = await store.insertTelemetry(makeEvents(facts))
    expect(outcome.leftOut).toEqual(new Map([['loud', 337]]))
    const pathsOf = async (tenantId: string) =>
      select<[string, number, number]>(
        `select session_id, signals_left_out, length(JSONAllPaths(signals))
         from telemetry where tenant_id = '${tenantId}' order by session_id`,
      )
    // Of the 64 the first event uses 60, the second four; existing paths stay.
    expect(await pathsOf('loud')).toEqual([
      ['s0', 0, 62],
      ['s1', 336, 4],
      ['s3', 1, 7],
    ])
    expect(await pathsOf('quiet')).toEqual([['s2', 0, 12]])
    // They are not in the detected signals either: prevalence spikes are searched by name.
    const flags = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`flag_${n}`, true]))
    const flagged = { tenantId: 'flags', signals: { root: { su_binary: true, ...flags } } }
    await store.insertTelemetry(makeEvents([flagged]))
    const [[named, known] = [0, 0]] = await select<[number, number]>(
      `select length(detected_signals), has(detected_signals, 'root.su_binary')
       from telemetry where tenant_id = 'flags'`,
    )
    expect([named, Number(known)]).toEqual([65, 1])
    // The body has everything, and a repetition changes nothing.
    await store.insertTelemetry(makeEvents(facts))
    const [[rows, bodies] = [0, 0]] = await select<[number, number]>(
      `select count(), countIf(JSONLength(body, 'signals', 'tamper') = 300)
       from telemetry final where tenant_id = 'loud'`,
    )
    expect([Number(rows), Number(bodies)]).toEqual([3, 1])
    expect((await pathsOf('loud')).filter(([session]) => session === 's3')).toContainEqual([
      's3',
      1,
      7,
    ])
  })

  it('beyond a double are stored as the text that was sent', async () => {
    const body = makeBody({ tenantId: 'exact', signals: { root: { ns: 1, list: [2, 3] } } })
      .replace('"ns":1', '"ns":1764086400123456789')
      .replace('[2,3]', '[3.4028235E39,0.5]')
    const element = JSON.parse(makeElement({ tenantId: 'exact' }))
    const header = {
      ...element,
      event_id: toEventId(Buffer.from(body)),
      inexact_numbers: true as const,
    }
    const { events } = decodeBatch(Buffer.from(`[${encodeEvent(header, body)}]`), 7)
    await createTelemetryStore(clickhouse).insertTelemetry(events)
    const rows = await select(
      `select signals.root.ns::String, signals.root.list::String, body
       from telemetry where tenant_id = 'exact'`,
    )
    expect(rows).toEqual([['1764086400123456789', '["3.4028235E39",0.5]', body]])
  })
})

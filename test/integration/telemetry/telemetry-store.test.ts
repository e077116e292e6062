// Telemetry in a real ClickHouse: every accepted event is stored with all its columns, hostile
// signals included, and storing it again changes nothing.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTelemetryStore, type TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { seed } from '../../support/process/seed.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import {
  type EventFacts,
  makeEvents,
  makeMessage,
  signalsOf,
} from '../../support/telemetry/accepted-events.ts'

let server: TestClickhouse
let clickhouse: Clickhouse
let store: TelemetryStore

beforeAll(async () => {
  server = await startClickhouse({ isMigrated: true })
  clickhouse = createClickhouse(server.url, { name: 'test' })
  store = createTelemetryStore(clickhouse)
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

async function select<Row>(query: string): Promise<Row[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}

const nowMs = Math.floor(Date.now() / 60_000) * 60_000
const toText = (ms: number) => new Date(ms).toISOString().replace('T', ' ').slice(0, 23)

describe('an accepted event', () => {
  it('is stored with every column, its body byte for byte', async () => {
    const more = { occurred_at: '2026-06-15T13:59:59.5+02:00', extra: { kept: true } }
    const serverSignals = {
      attestation: { rejected: true, verified: false, pi_device: [], os_patch_age_days: 35 },
      connection: { country: 'DE', vpn: true, later_name: [1, 2.5] },
    }
    const [event] = makeEvents([
      {
        tenantId: 'columns',
        userId: 'user-é',
        accountId: "account'\\1",
        receivedAtMs: nowMs,
        signals: { ...signalsOf.BLOCK, attestation: { verified: true } },
        serverSignals,
        install: { token_id: 'token-1', attested_key: 'key-1', counter: 7 },
        connection: {
          network: '81.2.69.0/24',
          address_hash: 'AAAAAAAAAAAAAAAAAAAAAA',
          country: 'GB',
          asn: 20712,
          organization: 'Example Ltd',
          latitude: 51.5,
          longitude: -0.25,
          kinds: ['vpn', 'hosting'],
        },
        more,
      },
    ])
    expect(await store.insertTelemetry([event!])).toMatchObject({ withoutSignals: [], refused: [] })
    const [row] = await select<Record<string, unknown>>(`
      select * except signals, signals.debugger.frida_detected as frida, row_version
      from telemetry where tenant_id = 'columns'`)
    expect(row).toEqual({
      tenant_id: 'columns',
      device_id: 'device-1',
      session_id: 'session-1',
      event_id: event!.event_id,
      received_at: toText(nowMs),
      occurred_at: '2026-06-15 11:59:59.500',
      user_id: 'user-é',
      account_id: "account'\\1",
      app_version: '',
      os_version: '',
      device_brand: '',
      device_model: '',
      sdk_version: '4.2.0',
      platform: 'android',
      batch_type: 'launch',
      client_score: 12,
      client_action: 'ALLOW',
      client_flags: ['CLIENT_FLAG'],
      rasp_score: event!.rasp_score,
      rasp_action: 'BLOCK',
      flags: ['HOOKING_DETECTED', 'ATTESTATION_FAILED', 'VPN_SUSPECTED'],
      reasons: JSON.stringify(event!.reasons),
      policy_version: 1,
      policy_hash: event!.policy_hash,
      epoch: 1,
      frida: true,
      signals_refused: false,
      signals_left_out: 0,
      placeholder_ids: [],
      stream_offset: 256,
      stream: 1,
      install_token: 'token-1',
      attested_key: 'key-1',
      assertion_counter: 7,
      connection_network: '81.2.69.0/24',
      connection_address_hash: 'AAAAAAAAAAAAAAAAAAAAAA',
      connection_address: '',
      connection_country: 'GB',
      connection_asn: 20712,
      connection_organization: 'Example Ltd',
      connection_kinds: ['vpn', 'hosting'],
      connection_latitude: 51.5,
      connection_longitude: -0.25,
      filled_categories: 0b000100,
      unknown_signals: [],
      detected_bits: expect.anything(),
      detected_signals: ['debugger.frida_detected'],
      server_signals: serverSignals,
      detected_server_signals: ['attestation.rejected', 'connection.vpn'],
      clean_bits: expect.anything(),
      pattern: expect.stringMatching(/^[\w-]{22}$/),
      body: Buffer.from(event!.bodyBytes!).toString(),
      row_version: expect.anything(),
    })
    expect(toEventId(Buffer.from(row!.body as string))).toBe(event!.event_id)
  })

  it('keeps the first row when the same bytes were received again later', async () => {
    for (const tenantId of ['retried', 'retried-at-once']) {
      const facts = { tenantId, receivedAtMs: nowMs }
      const [first] = makeEvents([facts])
      const [later] = makeEvents([{ ...facts, receivedAtMs: nowMs + 60_000 }])
      expect(later!.event_id).toBe(first!.event_id)
      const inserts = tenantId === 'retried' ? [[later!], [first!]] : [[later!, first!, later!]]
      for (const events of inserts) await store.insertTelemetry(events)
      const rows = await select<{ received_at: string }>(
        `select received_at from telemetry final where tenant_id = '${tenantId}'`,
      )
      expect(rows).toEqual([{ received_at: toText(nowMs) }])
    }
  })

  it('compares bodies with indistinguishable bytes by their meaning', async () => {
    const [event] = makeEvents([{ tenantId: 'meaning' }])
    const { bodyBytes: _, ...foreign } = event!
    await store.insertTelemetry([foreign])
    const [row] = await select<{ body: string }>(
      `select body from telemetry where tenant_id = 'meaning'`,
    )
    expect(JSON.parse(row!.body)).toEqual(event!.body)
  })

  it('is stored without parsed signals where the engine cannot store them', async () => {
    const events = makeEvents(
      Array.from({ length: 9 }, (_, n) => ({
        tenantId: 'refused',
        sessionId: `s-${n}`,
        signals: { ...signalsOf.REVIEW },
      })),
    )
    // No body that ingest accepts is known to be rejected: a view that cannot read some signals
    // simulates one.
    await clickhouse.command({ query: 'create table reads (n UInt8) engine = Null' })
    await clickhouse.command({
      query: `create materialized view reader to reads as
        select toUInt8(ifNull(signals.root.unreadable.:String, '0')) as n from telemetry`,
    })
    const broken = [2, 6].map((n) => {
      const event = events[n]!
      const signals = { ...event.body.signals, root: { unreadable: 'not a number' } }
      return { ...event, body: { ...event.body, signals } }
    })
    const mixed = events.with(2, broken[0]!).with(6, broken[1]!)
    expect(await store.insertTelemetry(mixed)).toMatchObject({
      withoutSignals: broken,
      refused: [],
    })
    await clickhouse.command({ query: 'drop view reader' })
    const rows = await select<{ session_id: string; magisk: boolean | null; refused: boolean }>(`
      select session_id, signals.root.magisk_detected as magisk, signals_refused as refused
      from telemetry final where tenant_id = 'refused' order by session_id`)
    expect(rows.map((row) => row.refused)).toEqual(events.map((_, n) => n === 2 || n === 6))
    expect(rows.map((row) => row.magisk)).toEqual(
      events.map((_, n) => (n === 2 || n === 6 ? null : true)),
    )
    const [device] = await select<{ n: number }>(
      `select uniqExact(session_id) as n from sessions where tenant_id = 'refused'`,
    )
    expect(device?.n).toBe(9)
  })

  it('waits for ClickHouse during an outage and drops nothing', async () => {
    const elsewhere = createClickhouse('http://127.0.0.1:1/none', { name: 'test' })
    const [event] = makeEvents([{ tenantId: 'away' }])
    await expect(createTelemetryStore(elsewhere).insertTelemetry([event!])).rejects.toThrow()
    const noTable = createClickhouse(server.url, { name: 'test', database: 'default' })
    await expect(createTelemetryStore(noTable).insertTelemetry([event!])).rejects.toThrow()
    await elsewhere.close()
    await noTable.close()
  })
})

describe('signals', () => {
  it('are read as columns, each with its original type', async () => {
    await store.insertTelemetry(
      makeEvents([
        {
          tenantId: 'typed',
          signals: {
            root: { su_binary: true, unknown_new: 'text', dated: '2026-01-01T00:00:00Z' },
            emulator: { sensor_count: 7 },
            tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'], mixed: [1, { a: 'b' }] },
          },
        },
      ]),
    )
    const [row] = await select<Record<string, unknown>>(`
      select signals.root.su_binary as su, signals.root.unknown_new as unknown,
        signals.root.dated as dated, dynamicType(signals.root.dated) as dated_type,
        signals.emulator.sensor_count as sensors, signals.tamper.pi_device_verdict as verdict,
        signals.root.absent as absent, signals.tamper.mixed as mixed
      from telemetry where tenant_id = 'typed'`)
    expect(row).toEqual({
      su: true,
      unknown: 'text',
      dated: '2026-01-01T00:00:00Z',
      dated_type: 'String',
      sensors: 7,
      verdict: ['MEETS_BASIC_INTEGRITY'],
      absent: null,
      mixed: '[1,{"a":"b"}]',
    })
  })

  it('never prevent the storing of an event that passed the checks of ingest', async () => {
    const runs = 150
    process.stdout.write(`signals seed ${seed}\n`)
    const events = fc
      .sample(hostileSignals, { seed, numRuns: runs })
      .map((signals, n) => ({ tenantId: 'fuzz', sessionId: `s-${n}`, signals, nonce: seed }))
      .filter(isAcceptable)
    expect(events.length).toBeGreaterThan(runs / 2)
    const accepted = decodeBatch(makeMessage(events), 1).events
    const outcome = await store.insertTelemetry(accepted)
    expect(outcome).toMatchObject({ withoutSignals: [], refused: [] })
    const rows = await select<{ event_id: string; body: string }>(
      `select event_id, body from telemetry where tenant_id = 'fuzz'`,
    )
    expect(rows).toHaveLength(accepted.length)
    for (const row of rows) expect(toEventId(Buffer.from(row.body))).toBe(row.event_id)
    // Every inserted row can also be merged, and its signals read after that.
    await clickhouse.command({ query: 'optimize table telemetry final' })
    const [read] = await select<{ n: number }>(
      `select countIf(length(toString(signals)) > 1) as n from telemetry where tenant_id = 'fuzz'`,
    )
    expect(read?.n).toBe(accepted.length)
  })

  it('of the largest shapes that ingest accepts are stored', async () => {
    const keys = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 512 }, (_, n) => [`${prefix}${n}`, n]))
    const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) })
    const events = Array.from({ length: 20 }, (_, n) => ({
      tenantId: 'large',
      sessionId: `s-${n}`,
      signals: {
        ...Object.fromEntries(categories.map((name) => [name, keys(`${n}_`)])),
        beyond: { deep: nested(12) },
      },
    })).filter(isAcceptable)
    expect(events.length).toBe(20)
    expect((await store.insertTelemetry(makeEvents(events))).withoutSignals).toEqual([])
  })
})

const hostileKey = fc.oneof(
  fc.constantFrom(
    '',
    '.',
    'a',
    'a.b',
    'a.b.c',
    '`',
    '"',
    '\\',
    '\u0000',
    ' ',
    'su_binary',
    'root.a',
  ),
  fc.constantFrom('é', '😀', '%2E', '[]', '.a', 'a.', '..', '^', ':Int64', '.:Int64', 'a\nb', '1'),
  fc.string({ maxLength: 8, unit: 'binary' }),
)
const hostileLeaf = fc.oneof(
  fc.boolean(),
  fc.constant(null),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    '2024-01-01',
    '2024-01-01T00:00:00Z',
    'NaN',
    '\u0000',
    '127.0.0.1',
    '{"a":1}',
    -0,
  ),
)
const hostileValue: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 11, depthSize: 'medium' },
    hostileLeaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(hostileKey, tie('value'), { maxKeys: 4 }),
  ),
})).value
const hostileCategory = fc.oneof(
  fc.dictionary(hostileKey, hostileValue, { maxKeys: 8 }),
  fc.dictionary(fc.string({ maxLength: 6 }), hostileLeaf, { maxKeys: 60 }),
)
const hostileSignals = fc.record({
  ...(Object.fromEntries(categories.map((name) => [name, hostileCategory])) as Record<
    (typeof categories)[number],
    typeof hostileCategory
  >),
  beyond: hostileValue,
})

/** Whether ingest would accept it; rejected bodies never get here. */
function isAcceptable(facts: EventFacts): boolean {
  const message = makeMessage([facts]).toString()
  const body = Buffer.from(message.slice(message.indexOf(',"body":') + 8, -2))
  return parseTelemetry(body, findTenant(body) ?? '').ok
}

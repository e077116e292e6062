// What the order of the stream tells of installs is a function of the stream: however messages are
// batched, repeated, shared among scorers and restarted, every event has the same decision, and it
// is the one that a plain walk through the stream finds.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { installsPerSample, latestHoldersMax } from '#shared/core/base/limits/entities.ts'
import type { NewInstall } from '#shared/core/identity/decide-link.ts'
import {
  toIdentityKeys,
  toInstallKey,
  toInstallTraits,
  toTraitsText,
} from '#shared/core/identity/install-traits.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import {
  createKeyHolders,
  type OffsetSpan,
  placeKeys,
} from '#shared/io/identity/identity-keys-reader.ts'
import { readLinks, toName } from '#shared/io/identity/phone-link-store.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { createInstallWriter } from '#shared/io/installs/install-store.ts'
import { createReplayWriter } from '#shared/io/installs/replay-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { decideBatch } from '../../../services/scorer/decide/decide-batch.ts'
import { createDecodedMessages } from '../../../services/scorer/store/decoded-messages.ts'
import { storeBatch } from '../../../services/scorer/store/store-batch.ts'
import { emptyPostgres, walkPhones } from '../../support/identity/walk-phones.ts'
import { seed } from '../../support/process/seed.ts'
import { withServerWeights } from '../../support/scoring/server-weights.ts'
import { startShards, type TestShards } from '../../support/servers/clickhouse-shards.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { makeDecideDeps } from '../../support/telemetry/decide-deps.ts'
import { makeOrderedStream } from '../../support/telemetry/ordered-stream.ts'

process.stdout.write(`order exactness seed ${seed}\n`)
const policy = withServerWeights(presets.balanced, {
  cap: 100,
  signals: { shared_key: 50, counter_reused: 10, replayed: 20 },
})
const startMs = Date.now() - 6 * 3_600_000
const stream = makeOrderedStream({ seed, policy, startMs }, 600)

const clickhouse = await useClickhouse()

/** A scorer without a broker: another one, or the same one after a restart. */
function createScorer(raised: Map<string, AlertCandidate>, clickhouse: Clickhouse) {
  const { decide } = makeDecideDeps()
  const phones = createPhones(clickhouse, emptyPostgres)
  const messages = createDecodedMessages(1_000_000, () => true)
  const observe = {
    ...decide.observe,
    inserted: () => undefined,
    leftOut: () => undefined,
    registered: () => undefined,
    identified: () => undefined,
  }
  const store = {
    messages,
    observe,
    telemetry: createTelemetryStore(clickhouse),
    installs: createInstallWriter(clickhouse),
    identities: createIdentityKeyWriter(clickhouse),
    reconciliation: { insertEntries: async () => undefined },
    storeDeadLetters: async ([first]: readonly { detail: string }[]) => {
      if (first !== undefined) throw new Error(`not stored: ${first.detail}`)
    },
    wallMs: Date.now,
  }
  const deps = {
    ...decide,
    messages,
    observe,
    decisions: createDecisionWriter(clickhouse),
    replays: createReplayWriter(clickhouse),
    loadRiskFeatures: createRiskFeatureStore(clickhouse, phones).loadRiskFeatures,
    phones,
    findPolicy: async () => policy,
    // Some other scorer may always be behind.
    readDecidedWatermark: async () => 0,
    findEarlierEvents: (query: Parameters<typeof findEarlierEvents>[1]) =>
      findEarlierEvents(clickhouse, query),
    findUnraised: async (some: readonly AlertCandidate[]) =>
      some.filter(({ alertId }) => !raised.has(alertId)),
    raiseAlerts: async (some: readonly AlertCandidate[]) => {
      for (const one of some) if (!raised.has(one.alertId)) raised.set(one.alertId, one)
      return { raised: [], existing: 0, unknownTenants: [] } as never
    },
  }
  return {
    store: (batch: readonly ConsumedMessage[]) => storeBatch(batch, store),
    decide: (batch: readonly ConsumedMessage[]) => decideBatch(batch, deps),
  }
}

const batchesOf = (messages: readonly ConsumedMessage[], size: number): ConsumedMessage[][] => {
  const batches: ConsumedMessage[][] = []
  for (let at = 0; at < messages.length; at += size) batches.push(messages.slice(at, at + size))
  return batches
}

async function startOver(): Promise<Map<string, AlertCandidate>> {
  for (const table of [
    ...['telemetry', 'activity', 'devices', 'sessions', 'user_devices'],
    ...Object.keys(tables),
    'identity_samples',
  ]) {
    await clickhouse.command({ query: `truncate table ${table}` })
  }
  return new Map()
}

const tables = {
  decisions: 'tenant_id, device_id, session_id, event_id',
  installs: 'tenant_id, device_id, token_id',
  install_keys: 'tenant_id, key_hash, kind, subject_hash, issuer_hash',
  replays: 'tenant_id, device_id, session_id, event_id, hour',
  identity_keys: 'tenant_id, key_hash, device_id',
  phone_links: 'tenant_id, device_id',
  phone_installs: 'tenant_id, phone_id, device_id',
}
/** How late a scorer wrote a row again depends on what it remembers; no decision reads it. */
const ownTimes = ['last_seen_at']

/** Everything that was stored about the stream, merged or not. */
async function readTables(from = clickhouse, ...without: string[]): Promise<unknown[]> {
  return Promise.all(
    Object.entries(tables).map(async ([table, order]) => {
      const left = [...without, ...(table === 'identity_keys' ? ownTimes : [])]
      const columns = left.length === 0 ? '*' : `* except (${left.join(', ')})`
      const query = `select ${columns} from ${table} final order by ${order}`
      const result = await from.query({ query, format: 'JSONEachRow' })
      const rows = await result.json<{ first_event?: Record<string, unknown> }>()
      // Here: `final` does not merge a member of a column, which is read without the others.
      return rows.map(({ first_event: first, ...row }) => {
        if (first === undefined) return row
        const members = Object.entries(first).filter(([name]) => !without.includes(name))
        return { ...row, first_event: Object.fromEntries(members) }
      })
    }),
  )
}

const readAll = async (raised: ReadonlyMap<string, AlertCandidate>): Promise<unknown[]> => [
  ...(await readTables()),
  [...raised].sort(([a], [b]) => (a < b ? -1 : 1)),
]

/** The whole stream by one scorer, a few messages at a time: later ones are not stored yet. */
async function runAlone(): Promise<unknown[]> {
  const raised = await startOver()
  const scorer = createScorer(raised, clickhouse)
  for (const batch of batchesOf(stream.messages, 3)) {
    await scorer.store(batch)
    await scorer.decide(batch)
  }
  return readAll(raised)
}

let alone: unknown[]

describe('decisions of one scorer', () => {
  beforeAll(async () => {
    alone = await runAlone()
  })

  it('are those of a walk through the stream', async () => {
    const result = await clickhouse.query({
      query: `select tenant_id, device_id, JSONExtractString(body, 'nonce') as text,
          JSONExtractInt(body, 'nonce') as nonce, decided.flags as found
        from (select * from telemetry final) as telemetry
        left join (select event_id, flags from decisions final) as decided using (event_id)`,
      format: 'JSONEachRow',
    })
    const rows = await result.json<{
      tenant_id: string
      device_id: string
      nonce: number
      found: string[]
    }>()
    const found = new Map(
      rows.map(({ tenant_id, device_id, nonce, found: flags }) => [
        `${tenant_id} ${device_id} ${nonce}`,
        {
          shared: flags.includes('ATTESTATION_KEY_SHARED'),
          reused: flags.includes('COUNTER_REUSED'),
          replayed: flags.includes('REPLAYED'),
        },
      ]),
    )
    expect(found).toEqual(stream.told)
    for (const kind of ['shared', 'reused', 'replayed'] as const) {
      const told = [...stream.told.values()].filter((one) => one[kind])
      expect(told.length).toBeGreaterThan(10)
      expect(told.length).toBeLessThan(stream.told.size - 10)
    }
  })

  it('come with a row of each registration, and of each replay by the hour', async () => {
    const read = async (query: string) => {
      const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
      return result.json<[string, boolean]>()
    }
    expect(await read('select toString(count()), true from installs final')).toEqual([
      [String(stream.registrations), true],
    ])
    const replays = await read(`select concat(tenant_id, ' ', device_id, ' ',
        toString(JSONExtractInt(body, 'nonce')), ' ', toString(intDiv(toUnixTimestamp(hour), 3600))), network_changed
      from replays final
      inner join (select event_id, body from telemetry final) as telemetry using (event_id)`)
    expect(new Map(replays)).toEqual(stream.replays)
    for (const isElsewhere of [false, true]) {
      const some = [...stream.replays.values()].filter((one) => one === isElsewhere)
      expect(some.length).toBeGreaterThan(5)
    }
  })

  it('come with each key of an install from its first event on, and with its first traits', async () => {
    const expected = new Map<string, readonly [streamOffset: number, traits: string]>()
    const perTraits = new Set<string>()
    for (const { data, streamOffset } of stream.messages) {
      for (const event of decodeBatch(data, streamOffset).events) {
        const traits = toInstallTraits(event)
        if (traits === null) continue
        const { tenant_id: tenantId, body } = event
        const text = toTraitsText(traits)
        const installKey = toInstallKey(body.device_id)
        for (const key of toIdentityKeys(body.device_id, traits)) {
          const row = [tenantId, toHash(key), body.device_id].join(' ')
          perTraits.add(`${row} ${text}`)
          if ((expected.get(row)?.[0] ?? Infinity) < event.streamOffset) continue
          expected.set(row, [event.streamOffset, key === installKey ? text : ''])
        }
      }
    }
    const result = await clickhouse.query({
      query: `select concat(tenant_id, ' ', toString(key_hash), ' ', device_id),
        toFloat64(stream_offset), first_event from identity_keys final`,
      format: 'JSONCompactEachRow',
    })
    const rows = await result.json<[string, number, { traits: string }]>()
    expect(new Map(rows.map(([row, place, { traits }]) => [row, [place, traits]]))).toEqual(
      expected,
    )
    expect(expected.size).toBeGreaterThan(200)
    // Installs change their traits.
    expect(perTraits.size).toBeGreaterThan(expected.size)
  })

  it('come with the phone of each install, as a walk decides it', async () => {
    const events = stream.messages.flatMap(
      ({ data, streamOffset }) => decodeBatch(data, streamOffset).events,
    )
    const expected = walkPhones(events)
    const found = await readLinks(clickhouse, expected)
    const plain = expected.map(({ evidence: _, ...link }) => [toName(link), link] as const)
    expect(found).toEqual(new Map(plain))
    const kinds = new Set(expected.map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual(['first', 'linked', 'possible'])
  })

  it('are equal when all is stored first, in large batches, and decided twice, backwards', async () => {
    const raised = await startOver()
    const scorer = createScorer(raised, clickhouse)
    // Redelivery may bring the latest first.
    for (const batch of batchesOf(stream.messages, 23).reverse()) await scorer.store(batch)
    const restarted = createScorer(raised, clickhouse)
    // The low watermark orders deciding; backwards is harder than what it allows.
    for (const batch of batchesOf(stream.messages, 200).reverse()) await restarted.decide(batch)
    for (const batch of batchesOf(stream.messages, 31)) await restarted.decide(batch)
    const [decisions, ...others] = await readAll(raised)
    const [expected, ...expectedOthers] = alone
    expect(decisions).toEqual(expected)
    expect(others.slice(0, 6)).toEqual(expectedOthers.slice(0, 6))
  })

  it('are equal from three scorers at once, with redelivery and restarts', async () => {
    const raised = await startOver()
    const storers = [1, 2, 3].map(() => createScorer(raised, clickhouse))
    const dealt = storers.map((_, n) => stream.messages.filter((one) => one.sequence % 3 === n))
    await Promise.all(
      storers.map(async (scorer, n) => {
        for (const batch of batchesOf(dealt[n]!, 5 + n)) {
          await scorer.store(batch)
          if (batch[0]!.sequence % 4 === 0) await createScorer(raised, clickhouse).store(batch)
        }
      }),
    )
    const deciders = [1, 2, 3].map(() => createScorer(raised, clickhouse))
    await Promise.all(
      deciders.map(async (scorer, n) => {
        const own = dealt[(n + 1) % 3]!
        for (const batch of batchesOf(own, 9 + n)) {
          await scorer.decide(batch)
          if (batch[0]!.sequence % 5 === 0) await createScorer(raised, clickhouse).decide(batch)
        }
      }),
    )
    const found = await readAll(raised)
    expect(found.slice(0, 7)).toEqual(alone.slice(0, 7))
    // Which of several events of a session raises its alert depends on the broker's watermark alone.
    expect([...raised.keys()].sort()).toEqual((alone[7] as [string, unknown][]).map(([id]) => id))
  })

  it('are equal on two streams, but for the places in them', async () => {
    const expected = await readTables(clickhouse, 'stream_offset')
    const raised = await startOver()
    const scorers = [1, 2].map(() => createScorer(raised, clickhouse))
    await Promise.all(
      [...stream.messagesOf.values()].map(async (messages, n) => {
        for (const batch of batchesOf(messages, 8 + n)) await scorers[n]!.store(batch)
        for (const batch of batchesOf(messages, 13 + n)) await scorers[n]!.decide(batch)
      }),
    )
    expect(await readTables(clickhouse, 'stream_offset')).toEqual(expected)
  })

  it('are equal after merges', async () => {
    for (const table of ['activity', ...Object.keys(tables)]) {
      await clickhouse.command({ query: `optimize table ${table} final` })
    }
    const before = await readTables()
    const scorer = createScorer(new Map(), clickhouse)
    for (const messages of stream.messagesOf.values()) {
      for (const batch of batchesOf(messages, 77)) await scorer.decide(batch)
    }
    expect(await readTables()).toEqual(before)
  })
})

describe('a value of very many installs', () => {
  const tenantId = 'hot'
  const traits = { identifiers: { serial: 'constant' }, hardware: null, setup: null, network: null }
  const first = (deviceId: string, streamOffset: number): NewInstall => {
    const rest = { users: [], bootAtMs: null, model: null, memoryBytes: null }
    return { tenantId, deviceId, traits: { ...traits, ...rest }, streamOffset, receivedAtMs: 1 }
  }
  const [key] = placeKeys(first('any', 1))
  const insert = (from: number, installs: number) =>
    clickhouse.command({
      query: `insert into identity_keys
          (tenant_id, key_hash, device_id, stream_offset, last_seen_at)
        select '${tenantId}', ${key!.keyHash}, concat('i-', toString(number)), number, now64(3)
        from numbers(${from}, ${installs})`,
    })
  const countAt = async (streamOffset: number, span: OffsetSpan) => {
    const holders = createKeyHolders(clickhouse, span, latestHoldersMax)
    await holders.add([key!])
    const { count, areFew } = holders.count(key!, streamOffset)
    if (!areFew) return count
    const before = holders.list(key!).filter((one) => one.streamOffset < streamOffset)
    return before.slice(-latestHoldersMax).map(({ deviceId }) => deviceId)
  }

  it('is counted as of each install, one by one while they are few, and then by a sample', async () => {
    await startOver()
    await insert(0, 1_000)
    const all = { firstOffset: 0, lastOffset: 100_000 }
    expect(await countAt(3, all)).toEqual(['i-0', 'i-1', 'i-2'])
    const latest = Array.from({ length: latestHoldersMax }, (_, n) => `i-${700 + n}`)
    // Whatever else is in the batch.
    for (const firstOffset of [0, 500, 764]) {
      expect(await countAt(700 + latestHoldersMax, { ...all, firstOffset })).toEqual(latest)
    }
    await insert(1_000, 59_000)
    expect(await countAt(1_100, all)).toBe(1_100)
    for (const streamOffset of [2_000, 10_000, 60_000]) {
      const counts = []
      // Whatever else is in the batch.
      for (const firstOffset of [0, streamOffset - 500, streamOffset]) {
        counts.push(await countAt(streamOffset, { firstOffset, lastOffset: streamOffset + 9 }))
      }
      expect(new Set(counts).size).toBe(1)
      expect(Math.abs(Number(counts[0]) / streamOffset - 1)).toBeLessThan(0.5)
    }
    expect(Number(await countAt(60_000, all)) % installsPerSample).toBe(0)
  })

  it('leads to none of them, and is decided so in a batch of any size', async () => {
    const { findFacts } = createPhones(clickhouse, emptyPostgres)
    const rows = [1, 2, 3].map((n) => first(`new-${n}`, 70_000 + n))
    for (const { deviceId, streamOffset, traits: own } of rows) {
      for (const one of [key!.key, toInstallKey(deviceId)]) {
        await clickhouse.insert({
          table: 'identity_keys',
          values: [
            {
              tenant_id: tenantId,
              key_hash: toHash(one),
              device_id: deviceId,
              stream_offset: streamOffset,
              first_event: {
                stream_offset: streamOffset,
                received_at: 1,
                traits: toTraitsText(own),
              },
              last_seen_at: 1,
            },
          ],
          format: 'JSONEachRow',
        })
      }
    }
    const together = await findFacts(rows.map((row) => ({ ...row, atMs: 1 })))
    const alone = await findFacts([{ ...rows[1]!, atMs: 1 }])
    expect(together[1]).toEqual(alone[0])
    for (const { link } of together.map((one) => one!)) {
      expect(link).toMatchObject({ kind: 'first', identifiersShared: false })
    }
  })
})

describe('decisions on two shards', () => {
  let cluster: TestShards
  let sharded: Clickhouse
  beforeAll(async () => {
    cluster = await startShards(2)
    const { url, shardUrls } = cluster
    await migrateClickhouse(url, null, shardUrls)
    sharded = createClickhouse(url, { name: 'test', shardUrls })
  })
  afterAll(async () => {
    await sharded?.close()
    await cluster?.stop()
  })

  it('are those of one node, and both shards have some', async () => {
    const scorer = createScorer(new Map(), sharded)
    for (const batch of batchesOf(stream.messages, 11)) {
      await scorer.store(batch)
      await scorer.decide(batch)
    }
    expect(await readTables(sharded)).toEqual(alone.slice(0, 7))
    // Both have some.
    for (const table of Object.keys(tables)) {
      const counts = await onEveryNode(sharded, async (node) => {
        const query = `select toString(count()) from ${table}`
        const result = await node.query({ query, format: 'JSONCompactEachRow' })
        return Number((await result.json<[string]>())[0]![0])
      })
      expect([table, Math.min(...counts) > 0]).toEqual([table, true])
    }
  })
})

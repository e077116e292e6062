// Two real shards beside one node, with the same events: every answer is the same, every row lies
// where its key belongs, and a shard that is away delays only what needs it.
import { hash } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toCreatedTable } from '#shared/core/base/replicas.ts'
import { shardOf } from '#shared/core/base/shards.ts'
import { splitStatements } from '#shared/core/base/sql-statements.ts'
import {
  clickhousePrivileges,
  toClickhouseOwnerGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { toReconciliationHour } from '#shared/core/reconciliation/reconciliation.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { readCookbook } from '#shared/io/analytics/cookbook.ts'
import { createHourlyCountStore } from '#shared/io/analytics/counts/hourly-count-store.ts'
import { createHourlyReader } from '#shared/io/analytics/counts/hourly-reader.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { createPrevalenceSpikeStore } from '#shared/io/analytics/prevalence-spike-store.ts'
import {
  insertAlertRows,
  insertRemovals,
  purgeRemovals,
} from '#shared/io/analytics/replica-rows-store.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  checkClickhouse,
  createClickhouse,
} from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode, onEveryServer } from '#shared/io/clickhouse/shards.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createLinkStore } from '#shared/io/devices/link-store.ts'
import { createSignalHistoryStore } from '#shared/io/devices/signal-history-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { createErasureStore } from '#shared/io/erasure/erasure-store.ts'
import { createCoverageReader } from '#shared/io/installs/coverage-store.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import {
  MigrationError,
  readMigrations,
  sqlFolders,
} from '#shared/io/migrations/migration-files.ts'
import { toStatementOfReplica } from '#shared/io/migrations/replica-tables.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { findMisplaced, findOtherSpread } from '#shared/io/migrations/shard-tables.ts'
import { createBacktestStore } from '#shared/io/policies/backtest-store.ts'
import { createShadowComparisonStore } from '#shared/io/policies/shadow-comparison-store.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { dropPartitions, removeRows } from '#shared/io/retention/retention-rows-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { requireAnalysts } from '../../../services/console/analytics/manage-analysts.ts'
import { runQuestion } from '../../support/analytics/cookbook.ts'
import { historyEndMs } from '../../support/analytics/cookbook-span.ts'
import {
  type FleetHistory,
  fleetTenant,
  insertHistory,
  planHistory,
} from '../../support/analytics/fleet-history.ts'
import {
  findReconciledEvents,
  hashOfTenant,
  insertDecisions,
  insertReconciliation,
  insertReplays,
  insertShadowDecisions,
  insertSpikes,
  shadowHash,
  spikeKey,
  spikeTenants,
} from '../../support/analytics/rows-of-every-kind.ts'
import { noPhones } from '../../support/identity/no-phones.ts'
import { seed } from '../../support/process/seed.ts'
import { inTime, until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startShards, type TestShards } from '../../support/servers/clickhouse-shards.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { type EventFacts, makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/**
 * A hundred phones that have an answer to every question of the cookbook. Those of another seed may
 * have no farm, no late delivery or no new release; the events vary with the seed.
 */
const historySeed = 20_261_123
/** The tables whose rows lie where their device belongs. */
const byDevice = [
  ...(['telemetry', 'sessions', 'devices', 'user_devices'] as const),
  ...(['decisions', 'shadow_decisions', 'installs', 'replays'] as const),
] as const
const ownerGrants = toClickhouseOwnerGrants(
  { database: 'owned', all: 'owned_all', analytics: 'owned_analytics' },
  false,
)
const lacking = 'GRANT REMOTE ON *.*'
const password = 'password-of-an-owner'
const passwordSha256Hex = hash('sha256', password, 'hex')
let server: TestClickhouse
let cluster: TestShards
let one: Clickhouse
let two: Clickhouse
let history: FleetHistory
let events: AcceptedEvent[]
const nowMs = Math.floor(Date.now() / minuteMs) * minuteMs - 5 * minuteMs

beforeAll(async () => {
  process.stdout.write(`shards seed ${seed}\n`)
  const users = [
    { name: 'owner', passwordSha256Hex, grants: ownerGrants },
    { name: 'lacks_one', passwordSha256Hex, grants: ownerGrants.filter((one) => one !== lacking) },
  ]
  ;[server, cluster] = await Promise.all([startClickhouse(), startShards(2, users)])
  const { url, shardUrls } = cluster
  await Promise.all([migrateClickhouse(server.url), migrateClickhouse(url, null, shardUrls)])
  one = createClickhouse(server.url, { name: 'test' })
  two = createClickhouse(url, { name: 'test', shardUrls })
  history = planHistory(historySeed, 100)
  const facts = fc.sample(anyFacts, { seed, numRuns: 600 })
  // Some bytes come again from the client, later.
  events = makeEvents([...facts, ...facts.slice(0, 30)], 1_000_000)
  for (const clickhouse of [one, two]) {
    await insertHistory(clickhouse, history)
    const { insertTelemetry } = createTelemetryStore(clickhouse)
    await insertTelemetry(events)
    // Delivered again.
    await insertTelemetry(events.slice(0, 50))
    // Copied again, as after a change.
    await insertAlertRows(clickhouse, 2, history.alertRows.slice(0, 40))
    await insertShadowDecisions(clickhouse, events)
    await insertDecisions(clickhouse, events)
    await insertReplays(clickhouse, events.slice(0, 40))
    await insertSpikes(clickhouse, nowMs)
    await insertReconciliation(clickhouse, events, nowMs)
  }
})
afterAll(async () => {
  await Promise.all([one?.close(), two?.close()])
  await Promise.all([server?.stop(), cluster?.stop()])
})

const idOf = (prefix: string, count: number) =>
  fc.integer({ min: 1, max: count }).map((n) => `${prefix}-${n}`)
const anyFacts: fc.Arbitrary<EventFacts> = fc
  .record({
    tenantId: fc.constantFrom('acme', 'globex'),
    deviceId: fc.oneof(idOf('device', 40), fc.constant('unknown')),
    sessionId: idOf('session', 30),
    userId: idOf('user', 12),
    accountId: idOf('account', 20),
    receivedAtMs: fc.integer({ min: nowMs - 60 * minuteMs, max: nowMs }),
    signals: fc.constantFrom<Record<string, unknown>>(...Object.values(signalsOf)),
    nonce: fc.integer({ min: 1, max: 50 }),
  })
  .map((facts) => facts as EventFacts)

/** Parameters with which a fleet as small as this one has answers. */
const lowLimits: Record<string, Record<string, string>> = {
  '01-device-farms': { devices_min: '2', findings_min: '1' },
  '03-many-devices-of-a-user': { devices_min: '2' },
  '09-velocity-outliers': { sessions_min: '2' },
  '20-noisy-hours': { alerts_min: '2', times_min: '1' },
  '29-leaked-keyboxes': { models_max: '1' },
  '33-networks-of-farms': { devices_min: '2', findings_min: '1' },
  '34-users-in-two-countries': { hours: '200' },
  '36-new-networks': { days: '30' },
}

/** The rows of an answer, whatever their order. */
async function rowsOf(clickhouse: Pick<Clickhouse, 'query'>, query: string): Promise<string[]> {
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
  return (await result.json()).map((row) => JSON.stringify(row)).sort()
}

/** Both answer the same, and not nothing. @returns the answer */
async function expectSame<T>(query: (clickhouse: Clickhouse) => Promise<T>): Promise<T> {
  const [ofOne, ofTwo] = await Promise.all([query(one), query(two)])
  expect(ofTwo).toEqual(ofOne)
  return ofTwo
}

const devicesOf = (tenantId: string) => [
  ...new Set(events.filter((one) => one.tenant_id === tenantId).map((one) => one.body.device_id)),
]
/** Of these devices, the first that lies on a shard. */
const deviceOn = (shard: number) =>
  devicesOf('acme').find((id) => id !== 'unknown' && shardOf(toKeyHash('device', id), 2) === shard)!

describe('rows', () => {
  it('lie on one shard each, that of their key, and are on both shards', async () => {
    for (const table of byDevice) {
      const [first, second] = await Promise.all(
        two.shards.map((node) => rowsOf(node, `select distinct device_id from ${table}`)),
      )
      expect(first!.length, table).toBeGreaterThan(3)
      expect(second!.length, table).toBeGreaterThan(3)
      for (const [shard, ids] of [first!, second!].entries()) {
        for (const row of ids) {
          const [id] = JSON.parse(row) as [string]
          expect(shardOf(toKeyHash('device', id), 2)).toBe(shard)
        }
      }
    }
    for (const [shard, node] of two.shards.entries()) {
      const [count] = await rowsOf(
        node,
        `select countIf(key_hash % 2 = ${shard}), count() from activity
        where tenant_id in ('acme', 'globex')`,
      )
      const [right, all] = JSON.parse(count!) as [number, number]
      expect(right).toBe(all)
      expect(all).toBeGreaterThan(100)
      const tenants = await rowsOf(node, 'select distinct tenant_id from prevalence_spikes')
      expect(tenants.length).toBeGreaterThan(1)
      expect(tenants).toEqual(
        spikeTenants
          .filter((tenantId) => shardOf(hashOfTenant(tenantId), 2) === shard)
          .map((tenantId) => JSON.stringify([tenantId]))
          .sort(),
      )
    }
  })
})

describe('an answer', () => {
  it('of every view and of every question of the cookbook is that of one node', async () => {
    const views = await rowsOf(
      one,
      `select name from system.tables where database = 'analytics' and name not like '%_as_of'`,
    )
    expect(views.length).toBeGreaterThan(15)
    for (const view of views) {
      const [name] = JSON.parse(view) as [string]
      const rows = await expectSame((clickhouse) =>
        rowsOf(clickhouse, `select * from analytics.${name}`),
      )
      expect(rows, name).not.toEqual([])
    }
    await expectSame((clickhouse) =>
      rowsOf(clickhouse, "select * from analytics.user_devices_as_of(as_of = '2026-08-01')"),
    )
    for (const question of readCookbook()) {
      const given = { tenant: fleetTenant, ...lowLimits[question.name] }
      const rows = await expectSame(async (clickhouse) => {
        const { rows } = await runQuestion(clickhouse, question, given)
        return rows.map((row) => JSON.stringify(row)).sort()
      })
      expect(rows, question.name).not.toEqual([])
    }
  })

  it('about devices, users, events and links is that of one node', async () => {
    for (const deviceId of devicesOf('acme').slice(0, 12)) {
      const of = { tenantId: 'acme', deviceId }
      await expectSame((clickhouse) =>
        inTime(async () => [
          await createHistoryStore(clickhouse).findDevice({
            ...of,
            sessionsLimit: 5,
            before: null,
          }),
          await createSignalHistoryStore(clickhouse).readSignalHistory(of),
        ]),
      )
    }
    await expectSame((clickhouse) => {
      const users = createUserStore(clickhouse)
      const links = createLinkStore(clickhouse)
      const of = { tenantId: 'acme', userId: 'user-3' }
      const paged = { ...of, limit: 4, after: null }
      return inTime(async () => ({
        totals: await users.findUserTotals(of),
        devices: await users.listUserDevices(paged),
        linked: await links.findLinkedUsers(of),
        devicesLinked: await links.findLinkedDevices({ tenantId: 'acme', deviceId: deviceOn(0) }),
        event: await createEventStore(clickhouse).findEvent(events[300]!.event_id),
        fleet: await createFleetStore(clickhouse).readCounts({
          tenantId: 'acme',
          fromMs: nowMs - 90 * minuteMs,
          toMs: nowMs + minuteMs,
          stepSeconds: 600,
        }),
      }))
    })
    const coverage = await expectSame((clickhouse) =>
      inTime(() =>
        createCoverageReader(clickhouse)({ tenantId: fleetTenant, fromMs: 0, toMs: nowMs }),
      ),
    )
    expect(coverage.versions.length).toBeGreaterThan(10)
    expect(coverage.reasons).not.toEqual([])
  })

  it('about shadow decisions and prevalence spikes is that of one node', async () => {
    const compared = await expectSame((clickhouse) => {
      const question = { policyHash: shadowHash, sinceMs: null }
      return inTime(() =>
        createShadowComparisonStore(clickhouse).compareShadow({ tenantId: 'acme', ...question }),
      )
    })
    expect(compared.versions).toEqual([1, 2])
    expect(compared.moved.length).toBeGreaterThan(10)
    const spikes = await expectSame(async (clickhouse) => {
      const store = createPrevalenceSpikeStore(clickhouse)
      const range = { fromMs: nowMs - 90 * minuteMs, untilMs: nowMs + minuteMs }
      return {
        active: await store.listActiveTenants(nowMs),
        versions: await store.readPrevalence({ tenantId: 'acme', atMs: nowMs, spans: 2 }),
        stored: await store.listSpikes({ tenantId: 'globex', openOnly: false }),
        openOnes: await store.listSpikes({ tenantId: 'globex', openOnly: true }),
        open: await store.countOpen(),
        affected: await store.findAffected({ tenantId: 'acme', ...spikeKey, ...range }),
        checkedAtMs: await store.readCheckedAt(),
      }
    })
    expect(spikes).toMatchObject({
      active: expect.arrayContaining(['acme', 'globex']),
      stored: [{ devices: 14, endedAtMs: nowMs }],
      openOnes: [],
      open: spikeTenants.length / 2,
      checkedAtMs: nowMs,
    })
    expect(spikes.versions).toHaveLength(1)
    expect(spikes.affected.devices).toBeGreaterThan(5)
  })

  it('to a scorer is that of one node, and a backtest gives the same report', async () => {
    const features = await expectSame(async (clickhouse) =>
      createRiskFeatureStore(clickhouse, noPhones).loadRiskFeatures(events, () => presets.strict),
    )
    expect(features.filter((one) => one.firstCopy !== null).length).toBeGreaterThan(0)
    expect(features.filter((one) => one.counts.size > 0).length).toBeGreaterThan(50)
    const parts = events.slice(300, 400).map((event) => ({
      tenantId: event.tenant_id,
      deviceId: event.body.device_id,
      sessionId: event.body.session_id,
      beforeStreamOffset: event.streamOffset,
    }))
    const earlier = await expectSame((clickhouse) =>
      findEarlierEvents(clickhouse, { parts, excludedStreamOffsets: [] }),
    )
    expect(earlier.length).toBeGreaterThan(100)
    const report = await expectSame(async (clickhouse) => {
      const store = createBacktestStore(clickhouse)
      const range = { tenantId: fleetTenant, sinceMs: null }
      const scoredBy = [{ policyHash: toPolicyHash(defaultPolicy), policy: defaultPolicy }]
      const prepared = await store.prepare({ ...range, policy: presets.strict, scoredBy })
      const slice = await store.scoreSlice(prepared, { from: null, to: null })
      return {
        scorers: await store.listScorers(range),
        events: slice.events,
        all: prepared.all,
        outcomes: await store.readOutcomes(range, prepared),
      }
    })
    const { outcomes } = report
    expect(outcomes.before.fraud).toBeGreaterThan(0)
    expect(outcomes.after.caught).not.toBe(outcomes.before.caught)
    expect(report.events.flat().reduce((sum, count) => sum + count)).toBe(history.events.length)
  })

  it('of reconciliation is that of one node: the shards agree with what was written', async () => {
    const ledger = await expectSame(async (clickhouse) => {
      const store = createReconciliationStore(clickhouse, 'analytics')
      return store.readReconciliation({
        tenantId: 'acme',
        fromMs: toReconciliationHour(nowMs),
        toMs: toReconciliationHour(nowMs) + 1,
      })
    })
    const stored = findReconciledEvents(events, nowMs).length
    expect(ledger.hours.map((hour) => [hour.stored, hour.decided])).toEqual(
      stored === 0 ? [] : [[stored, stored]],
    )
  })
})

/** Also readiness limits its time. */
const ready = (fault: string | null) =>
  until(`the fault is ${fault}`, async () => (await checkClickhouse(two)) === fault)

describe('a shard that is away', () => {
  it('delays what needs it only, is named, and loses nothing', async () => {
    const find = (deviceId: string) =>
      createHistoryStore(two).findDevice({
        tenantId: 'acme',
        deviceId,
        sessionsLimit: 5,
        before: null,
      })
    const [here, away] = [deviceOn(0), deviceOn(1)]
    const more = makeEvents(
      [here, away].map((deviceId) => ({ deviceId, sessionId: 'late', receivedAtMs: nowMs })),
      2_000_000,
    )
    const { insertTelemetry } = createTelemetryStore(two)
    await ready(null)
    await cluster.kill(1)
    await ready('shard 2 refuses the connection')
    expect((await inTime(() => find(here))).sessionsTotal).toBeGreaterThan(0)
    await expect(find(away)).rejects.toThrow()
    await expect(insertTelemetry(more)).rejects.toThrow()
    await expect(rowsOf(two, 'select count() from telemetry')).rejects.toThrow()
    await cluster.restart(1)
    await ready(null)
    await insertTelemetry(more)
    await createTelemetryStore(one).insertTelemetry(more)
    await expectSame((clickhouse) => rowsOf(clickhouse, 'select * from analytics.events'))
    await expectSame((clickhouse) => rowsOf(clickhouse, 'select * from activity final'))
  })
})

describe('replicas', () => {
  const placeOf = (replica: string) => ({ database: 'device_intelligence', shard: 1, replica })
  /** What the engine's parser makes of a statement. */
  const format = async (statement: string) => {
    const result = await two.shards[0]!.query({
      query: 'select formatQuerySingleLine({text:String})',
      query_params: { text: statement.replaceAll(/\{(all|analytics):Identifier\}/g, '$1') },
      use_multipart_params_auto: true,
      format: 'JSONCompactEachRow',
    })
    return ((await result.json()) as [string][])[0]![0]
  }

  it('get every table of the migrations with an engine that copies rows', async () => {
    const files = await readMigrations(sqlFolders.clickhouse)
    const statements = files.flatMap(({ text }) => splitStatements(text))
    const tables: string[] = []
    for (const statement of statements) {
      const [plain, own] = await Promise.all([
        format(statement),
        format((await toStatementOfReplica(statement, placeOf('a:8123'), null))!),
      ])
      const table = toCreatedTable(statement)
      if (table === null) {
        expect(own).toBe(plain)
        continue
      }
      tables.push(table)
      const name = `'/clickhouse/tables/device_intelligence/1/${table}', 'a:8123'`
      expect(own).toContain(`MergeTree(${name}`)
      // Nothing else has changed.
      const back = own.replace(/ENGINE = Replicated(\w+)\(.*?'a:8123'(?:, )?/, 'ENGINE = $1(')
      expect(back.replace('MergeTree()', 'MergeTree')).toBe(plain)
      // As Keeper's other replica makes it, from what the engine says of the first.
      const shown = own.replace('IF NOT EXISTS ', '')
      const leader = { query: async () => ({ json: async () => [[shown]] }) } as never
      const copied = await toStatementOfReplica(statement, placeOf('b:8123'), leader)
      expect(await format(copied!)).toBe(own.replace("'a:8123'", "'b:8123'"))
    }
    const present = await rowsOf(
      two.shards[0]!,
      "select name from system.tables where database = currentDatabase() and engine like '%MergeTree'",
    )
    const migrated = present.filter((one) => !/schema_(migrations|views)/.test(one))
    expect(tables.map((table) => JSON.stringify([table])).sort()).toEqual(migrated)
  })

  it('are refused where tables copy no rows', async () => {
    const { url, shardUrls } = cluster
    const [first, second] = shardUrls.flat()
    const fault = /without replicas|needs <internal_replication>/
    await expect(migrateClickhouse(url, null, [[first!, second!]])).rejects.toThrow(
      /of the 2 shards/,
    )
    const names = { database: 'device_intelligence', all: 'device_intelligence_all' }
    // One shard has tables of all shards, and one node has none.
    const ofOne = await findOtherSpread(one, names, { shards: 1, hasReplicas: false })
    expect(ofOne).toMatch(/as one node, and CLICKHOUSE_CLUSTER makes it 1 shard\./)
    const spread = { shards: 2, hasReplicas: true }
    expect(await findOtherSpread(two.shards[0]!, names, spread)).toMatch(fault)
    const place = { shard: 1, shards: 2, replicas: 2, replica: 'a:8123' }
    expect(await findMisplaced(two.shards[0]!, place)).toMatch(fault)
  })

  it('answer for one that is killed, which readiness names', async () => {
    const [first, second] = cluster.shardUrls.flat()
    // Two servers that answer differently, so that a test sees which of them it was.
    const pair = createClickhouse(first!, { name: 'test', shardUrls: [[second!, first!]] })
    const [shard] = pair.shards
    const portOf = async (node: ClickhouseNode) =>
      (await rowsOf(node, "select getServerPort('http_port')"))[0]
    const port = (url: string) => JSON.stringify([Number(new URL(url).port)])
    const rows = {
      table: 'replication_rounds',
      values: [{ round: 0 }],
      format: 'JSONEachRow',
    } as const
    expect([await portOf(shard!), await portOf(pair)]).toEqual([port(second!), port(second!)])
    // Mutations reach both from one; the files of each are its own.
    expect(await onEveryNode(pair, portOf)).toEqual([port(second!)])
    expect(await onEveryServer(pair, portOf)).toEqual([port(second!), port(first!)])
    const quorum =
      "select toString(getSetting('insert_quorum')), getSetting('insert_quorum_parallel')"
    for (const node of [pair, shard!]) {
      expect(await rowsOf(node, quorum)).toEqual([JSON.stringify(['auto', true])])
    }
    await cluster.kill(1)
    const answers = await Promise.all(Array.from({ length: 20 }, () => portOf(shard!)))
    expect(new Set(answers)).toEqual(new Set([port(first!)]))
    await shard!.insert(rows)
    expect(await portOf(pair)).toBe(port(first!))
    await until('readiness names it', async () => {
      return (await checkClickhouse(pair)) === 'replica 1 of shard 1 refuses the connection'
    })
    await cluster.restart(1)
    await until('readiness', async () => (await checkClickhouse(pair)) === null)
    await pair.close()
  })
})

describe('removal', () => {
  it('of a device and a user leaves what it leaves on one node', async () => {
    const lastStreamOffset = Number.MAX_SAFE_INTEGER
    for (const [kind, id] of [
      ['device', deviceOn(1)],
      ['user', 'user-3'],
    ] as const) {
      const counts = await expectSame(async (clickhouse) => {
        const store = createErasureStore(clickhouse)
        const traces = await store.readTraces(
          { tenantId: 'acme', kind, id },
          lastStreamOffset,
          null,
        )
        const before = await store.countRows(traces)
        await store.eraseRows(traces)
        await store.rebuild(traces)
        return { sessions: before.sessions, after: await store.countRows(traces) }
      })
      expect(counts.sessions).toBeGreaterThan(0)
      expect(Object.values(counts.after).every((count) => count === 0)).toBe(true)
    }
    const views = ['events', 'sessions', 'devices', 'users', 'user_devices', 'shadow_decisions']
    for (const view of views) {
      await expectSame((clickhouse) =>
        rowsOf(clickhouse, `select * from analytics.${view} where tenant_id = 'acme'`),
      )
    }
  })

  it('by retention and of copied rows is that of one node', async () => {
    const signal = new AbortController().signal
    const untilMs = nowMs - 30 * minuteMs
    const remove = (clickhouse: Clickhouse, table: (typeof byDevice)[number]) =>
      removeRows(clickhouse, {
        table,
        tenantIds: ['globex'],
        cutoffMs: untilMs,
        signal,
        nowMs: () => performance.now(),
      })
    for (const table of ['telemetry', 'sessions', 'devices', 'user_devices'] as const) {
      const removed = await expectSame((clickhouse) => remove(clickhouse, table))
      if (table === 'telemetry') expect(removed).toBeGreaterThan(20)
    }
    // Rows of both versions count until a merge joins them.
    await Promise.all([one, two].map((clickhouse) => remove(clickhouse, 'shadow_decisions')))
    const months = await expectSame((clickhouse) =>
      dropPartitions(clickhouse, Date.UTC(2026, 7, 1)),
    )
    expect(months).toBeGreaterThan(100)
    const removals = history.alertRows.slice(0, 20).map((row) => ({
      kind: 'alert' as const,
      tenantId: row.tenant_id,
      createdAt: String(row.created_at),
      id: row.alert_id,
    }))
    const purged = await expectSame(async (clickhouse) => {
      await insertRemovals(clickhouse, 3, removals)
      return purgeRemovals(clickhouse)
    })
    expect(purged).toBe(20)
    const views = ['events', 'sessions', 'devices', 'alerts', 'deliveries', 'shadow_decisions']
    for (const view of views) {
      await expectSame((clickhouse) => rowsOf(clickhouse, `select * from analytics.${view}`))
    }
  })
})

describe('hours that are counted', () => {
  it('have on two shards the numbers of one node, and of the events', async () => {
    const toMs = Math.floor(historyEndMs / hourMs) * hourMs
    const span = { fromMs: toMs - 30 * hourMs, toMs }
    const read = async (node: Clickhouse) => ({
      fleet: await createFleetStore(node).readCounts({
        tenantId: fleetTenant,
        stepSeconds: 3_600,
        ...span,
      }),
      lines: await createOverviewStore(node).readCounts(
        { tenantId: fleetTenant, beforeMs: span.fromMs - 30 * hourMs, ...span },
        { versionsMax: 9, stepMs: hourMs },
      ),
    })
    const ofEvents = await read(one)
    expect(ofEvents.fleet.totals.events).toBeGreaterThan(0)
    for (const node of [one, two]) {
      await createHourlyCountStore(node).count(null, {
        fromMs: span.fromMs - 30 * hourMs,
        toMs,
      })
      // As if a minute had passed since the last insert.
      await onEveryNode(node, (each) => each.command({ query: 'truncate table sdk_baselines' }))
      const reader = createHourlyReader(node)
      const { hours } = await reader.readCoverage(fleetTenant, [span], hourMs)
      expect(hours).toEqual([span])
      expect(await read(node)).toEqual(ofEvents)
    }
  })
})

describe('readiness', () => {
  it('names a shard that answers and does not reach the others', async () => {
    const check = (clickhouse: Clickhouse) =>
      createClickhouseCheck({
        clickhouse,
        database: 'device_intelligence',
        privileges: clickhousePrivileges.scorer,
        schemas: createSchemaVersions(createMetrics('test', { isThread: true })),
        log: createLog('test', 'silent'),
      })()
    await until('readiness', async () => (await check(two)) === null)
    const cutOff = (node: ClickhouseNode): ClickhouseNode => ({
      ...node,
      exec: (params) =>
        params.query.includes('_all`.') && params.query.startsWith('select')
          ? Promise.reject(new Error('no route'))
          : node.exec(params),
    })
    const [first, second] = two.shards
    const shards = [first!, { ...second!, replicas: [cutOff(second!)] }]
    const cut: Clickhouse = { ...two, shards }
    const fault = 'shard 2 does not reach the other shards'
    await until('it is named', async () => (await check(cut)) === fault)
  })
})

describe('a migration of shards', () => {
  const migrateAs = (username: string) => {
    const of = (text: string) => Object.assign(new URL('/owned', text), { username, password }).href
    const { url, shardUrls } = cluster
    return migrateClickhouse(
      of(url),
      null,
      shardUrls.map((urls) => urls.map(of)),
    )
  }

  it('needs the grants of its list and no others, and names one that is missing', async () => {
    await expect(migrateAs('lacks_one')).rejects.toThrow(
      `does not grant its user ${lacking.replace('GRANT ', '')}. Nothing`,
    )
    const owned = "select name from system.databases where name like 'owned%'"
    expect(await rowsOf(two.shards[0]!, owned)).toEqual([])
    await migrateAs('owner')
    expect(await rowsOf(two.shards[1]!, owned)).toHaveLength(3)
  })
})

describe('what shards refuse', () => {
  it('is another order of the servers, and analysts', async () => {
    const { url, shardUrls } = cluster
    const turned = migrateClickhouse(url, null, [...shardUrls].reverse())
    await expect(turned).rejects.toThrow(MigrationError)
    await expect(turned).rejects.toThrow(/Shard 1 .* is 2 of the 2 shards/)
    const analysts = { database: '', clickhouseUrl: '', url: '', isEmbedded: true }
    await expect(requireAnalysts({ analysts: { ...analysts, clickhouse: two } })).rejects.toThrow(
      /on one node/,
    )
    await requireAnalysts({ analysts: { ...analysts, clickhouse: one } })
  })

  it('is another number of shards than the rows are on', async () => {
    const { url, shardUrls } = cluster
    await expect(migrateClickhouse(url)).rejects.toThrow(/as 2 shards, .* makes it one node/)
    const unaware = createClickhouse(url, { name: 'test' })
    const check = createClickhouseCheck({
      clickhouse: unaware,
      database: 'device_intelligence',
      privileges: clickhousePrivileges.api,
      schemas: createSchemaVersions(createMetrics('test', { isThread: true })),
      log: createLog('test', 'silent'),
    })
    expect(await check()).toMatch(/^was migrated as 2 shards, .* makes it one node/)
    await unaware.close()
    const other = (text: string) => new URL('/other', text).href
    const [node] = two.shards
    await node!.command({ query: 'create database other' })
    await node!.command({ query: 'create table other.schema_migrations (n Int8) engine = Memory' })
    const others = shardUrls.map((urls) => urls.map(other))
    const spread = migrateClickhouse(other(url), null, others)
    await expect(spread).rejects.toThrow(/as one node, .* makes it 2 shards/)
  })
})

// Two telemetry streams on real servers: whatever the stream of a tenant, the same events have the
// same outcome, and what is wrong with one stream does not concern the other.
import { randomBytes } from 'node:crypto'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { offsetsPerMessage } from '#shared/core/telemetry/event-batch.ts'
import { deadLetterStream } from '#shared/core/telemetry/nats-names.ts'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { toUndecided } from '#shared/io/backup/clickhouse-backup.ts'
import { createProver } from '#shared/io/keys/proofs.ts'
import { awaitReplayed, replayTelemetry } from '#shared/io/nats/replay-telemetry.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import {
  createReconciliationWriter,
  markDecided,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import {
  createReconciliationStore,
  type ReconciliationStore,
} from '#shared/io/reconciliation/reconciliation-store.ts'
import { chooseTelemetryStream, findStreamFault } from '#shared/io/tenants/tenant-streams.ts'
import {
  createReconciliation,
  type Reconciliation,
} from '../../../services/console/jobs/reconciliation/reconciliation.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { findStreamFiles } from '../../support/servers/nats/nats-server.ts'
import { type EventFacts, makeMessage, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { bodyOf, type EdgeRig, send, startEdgeRig } from '../../support/telemetry/edge-rig.ts'
import { eraseNow } from '../../support/telemetry/erase-now.ts'
import {
  createScorerRig,
  type ScorerProcess,
  type ScorerRig,
} from '../../support/telemetry/scorer-rig.ts'

const hourMs = 3_600_000
const atMs = Math.floor(Date.now() / hourMs) * hourMs - 3 * hourMs
const tenants = ['first', 'second'] as const
type TenantId = (typeof tenants)[number]
const [streamOne, streamTwo] = [toTelemetryStream(1), toTelemetryStream(2)]

let rig: ScorerRig
let scorer: ScorerProcess
let metrics: Metrics
let store: ReconciliationStore
let reconciliation: Reconciliation

beforeAll(async () => {
  rig = await createScorerRig({ telemetryStreams: 2 })
  await rig.addTenant('first', 1)
  await rig.addTenant('second', 2)
  metrics = createMetrics('console')
  const { postgres, clickhouse } = rig
  store = createReconciliationStore(clickhouse, 'analytics')
  reconciliation = createReconciliation({
    postgres,
    clickhouse,
    log: testLog,
    metrics,
    nowMs: () => performance.now(),
    wallMs: Date.now,
    leases: { renewals: postgres, work: postgres },
    store,
    reportProver: createProver([randomBytes(32).toString('base64')]),
    findNats: () => rig.nats,
    confirmMs: 1,
  })
  scorer = await rig.startScorer()
})
afterAll(() => rig?.close())

async function restartScorer(): Promise<void> {
  await scorer.end('SIGKILL')
  scorer = await rig.startScorer()
}

const streamOf = (tenantId: TenantId) => tenants.indexOf(tenantId) + 1

/** Publishes each list as one message of the tenant's stream. */
async function publish(tenantId: TenantId, ...batches: readonly EventFacts[][]): Promise<void> {
  const messages = batches.map((batch) =>
    makeMessage(batch.map((facts) => ({ ...facts, tenantId }))),
  )
  // In flight together, in this order.
  await Promise.all(messages.map((message) => rig.publishRaw(message, streamOf(tenantId))))
}

/** Waits until everything is decided, replicated and marked. */
async function settle(): Promise<void> {
  await rig.drained()
  let marked: boolean | null = null
  const marking = reconciliation.advance().then((done) => {
    marked = done
  })
  while (marked === null) {
    const clocks = { nowMs: () => performance.now(), wallMs: Date.now }
    const { postgres, clickhouse } = rig
    const leases = { renewals: postgres, work: postgres }
    const common = { log: testLog, metrics: createMetrics('console'), ...clocks }
    await createReplication({ ...common, postgres, clickhouse, leases }).runRound()
    await pause(50, new AbortController().signal)
  }
  await marking
  expect(marked).toBe(true)
}

/** What a tenant's clients can see, and its reconciliation, without its name. */
async function readOutcome(tenantId: TenantId) {
  const { rows: alerts } = await rig.postgres.query(
    `select device_id, session_id, action, risk_score, reasons from alerts
     where tenant_id = $1 order by device_id, session_id, action`,
    [tenantId],
  )
  const result = await rig.clickhouse.query({
    query: `select device_id, session_id, count() as events, max(rasp_score) as score
      from telemetry final where tenant_id = {tenant:String}
      group by device_id, session_id order by device_id, session_id`,
    query_params: { tenant: tenantId },
    format: 'JSONCompactEachRow',
  })
  const { hours } = await store.readReconciliation({ tenantId, fromMs: atMs, toMs: atMs + hourMs })
  const shown = hours.map(({ tenantId: _, ...hour }) => ({ ...hour, stream: 0 }))
  return { alerts, sessions: await result.json(), hours: shown }
}

const signals = fc.constantFrom(signalsOf.ALLOW, signalsOf.REVIEW, signalsOf.BLOCK)
/** Events in the order of their messages, some with the same bytes. */
const batches = fc.array(
  fc.array(
    fc.record({
      deviceId: fc.constantFrom('d1', 'd2', 'd3'),
      sessionId: fc.constantFrom('s1', 's2', 's3', 's4'),
      userId: fc.constantFrom('u1', 'u2', 'u3'),
      receivedAtMs: fc.integer({ min: atMs, max: atMs + 1_000_000 }),
      nonce: fc.integer({ min: 0, max: 40 }),
      signals,
    }),
    { minLength: 1, maxLength: 6 },
  ),
  { minLength: 20, maxLength: 40 },
)

/** Messages of an hour that is not compared, to move a stream ahead. */
const makeFiller = (count: number): EventFacts[][] =>
  Array.from({ length: count }, (_, nonce) => [
    { deviceId: 'ahead', sessionId: 'ahead', nonce, receivedAtMs: atMs + 2 * hourMs + nonce },
  ])

/** Messages of one device, each with an alert of its own session. */
const makeBlocked = (from: number, count: number): EventFacts[][] =>
  Array.from({ length: count }, (_, index) => [
    {
      deviceId: 'put-back',
      sessionId: `put-back-${from + index}`,
      receivedAtMs: atMs + 2_000_000 + from + index,
      signals: signalsOf.BLOCK,
    },
  ])

/** How many events a tenant has, and how many offsets they have. */
async function countStored(tenantId: TenantId): Promise<{ events: number; offsets: number }> {
  const result = await rig.clickhouse.query({
    query: `select toUInt32(uniqExact(event_id)) as events,
        toUInt32(uniqExact(stream_offset)) as offsets
      from telemetry final where tenant_id = {tenant:String}`,
    query_params: { tenant: tenantId },
    format: 'JSONEachRow',
  })
  return (await result.json<{ events: number; offsets: number }>())[0]!
}

const subjectOf = (tenantId: TenantId) => ({ tenantId, kind: 'device', id: 'd1' }) as const

/** The text of every message that a stream has. */
async function readTexts({ stream }: { stream: string }): Promise<string[]> {
  const { state } = await rig.nats.manager.streams.info(stream, { deleted_details: true })
  const texts: string[] = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    if (state.deleted?.includes(seq)) continue
    const { data } = await rig.nats.manager.streams.getMessage(stream, { seq })
    texts.push(Buffer.from(data).toString())
  }
  return texts
}

describe('on either of two streams', () => {
  it('the same events have the same alerts, sessions and reconciliation, after a kill as well', async () => {
    // The first stream is ahead, so its offsets are those of later messages of the second.
    await publish('first', ...makeFiller(150))
    await rig.drained()
    const property = fc.asyncProperty(batches, async (drawn) => {
      await Promise.all(tenants.map((tenantId) => publish(tenantId, ...drawn)))
      await restartScorer()
      await settle()
      const [first, second] = await Promise.all(tenants.map(readOutcome))
      expect(second!.hours[0]).toMatchObject({ inFlight: 0, differences: [] })
      const isAhead = ([device]: [string]) => device.startsWith('ahead')
      const sessions = (first!.sessions as [string][]).filter((row) => !isAhead(row))
      expect({ ...first, sessions }).toEqual(second)
      expect(second!.alerts.length).toBeGreaterThan(0)
    })
    await fc.assert(property, { numRuns: 1, endOnFailure: true })
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    // Positions of the first stream are none of the second.
    expect(await scorer.readMetric('di_stream_put_back_total')).toBe(0)
    expect(await scorer.readMetric('di_stream_undecided_bytes', 'stream="TELEMETRY_2"')).toBe(0)
    const { rows } = await rig.postgres.query('select * from stream_incarnations')
    expect(rows).toEqual([])
  })

  it('poison at the same place of both is kept twice', async () => {
    const before = (await rig.nats.manager.streams.info(deadLetterStream)).state.messages
    const { state } = await rig.nats.manager.streams.info(streamTwo.stream)
    const ahead = (await rig.nats.manager.streams.info(streamOne.stream)).state.last_seq
    await publish('second', ...makeFiller(ahead - state.last_seq))
    for (const stream of [1, 2]) await rig.publishRaw(Buffer.from(`no batch ${stream}`), stream)
    await rig.drained()
    const after = (await rig.nats.manager.streams.info(deadLetterStream)).state.messages
    expect(after - before).toBe(2)
  })

  it('a replay of all streams changes nothing', async () => {
    const before = await Promise.all(tenants.map(readOutcome))
    const replays = await replayTelemetry(rig.nats, atMs)
    expect(replays.map(({ stream, messages }) => [stream.number, messages > 10])).toEqual([
      [1, true],
      [2, true],
    ])
    await awaitReplayed(rig.nats, replays)
    expect(await Promise.all(tenants.map(readOutcome))).toEqual(before)
  })

  it('an erasure leaves nothing of the device in the stream of its tenant, and all else', async () => {
    const counted = await Promise.all(
      tenants.map(async (tenantId) => {
        const { counts } = await eraseNow(rig, subjectOf(tenantId))
        expect(Object.values(counts).filter(({ after }) => after > 0)).toEqual([])
        // Rows of ClickHouse are counted before merges, which differ.
        const names = Object.keys(counts).filter((name) => !name.startsWith('clickhouse'))
        return Object.fromEntries(names.map((name) => [name, counts[name]]))
      }),
    )
    expect(counted[1]).toEqual(counted[0])
    expect(counted[1]!['streams.TELEMETRY']!.before).toBeGreaterThan(0)
    for (const stream of [streamOne, streamTwo]) {
      const texts = await readTexts(stream)
      expect(texts.filter((text) => text.includes('"d1"'))).toEqual([])
      expect(texts.length).toBeGreaterThan(0)
    }
    await settle()
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    const [first, second] = await Promise.all(tenants.map(readOutcome))
    expect(second!.hours[0]!.erased).toBeGreaterThan(0)
    expect(second!.hours).toEqual(first!.hours)
  })

  it('a restore removes what is undecided of each stream, and nothing decided', async () => {
    const count = async (where: string) => {
      const query = `select tenant_id, count() from telemetry where ${where} group by 1 order by 1`
      const result = await rig.clickhouse.query({ query, format: 'JSONCompactEachRow' })
      return new Map(await result.json<[string, string]>())
    }
    const all = await count('1')
    const of = (first: number, second: number) =>
      count(
        toUndecided({
          undecided_from: first,
          further_streams: [{ undecided_from: second, tenants: ['second'] }],
        }),
      )
    const beyond = Number.MAX_SAFE_INTEGER
    expect(await of(0, beyond)).toEqual(new Map([['first', all.get('first')]]))
    expect(await of(beyond, 0)).toEqual(new Map([['second', all.get('second')]]))
    expect(await count(toUndecided({ undecided_from: 0, further_streams: [] }))).toEqual(all)
  })

  it('a stream that is put back to an earlier copy concerns its own tenants only', async () => {
    const { natsServer } = rig
    const files = findStreamFiles(natsServer.dir, streamTwo.stream)
    const copy = join(natsServer.dir, 'copy')
    const before = await Promise.all(tenants.map(countStored))
    let sent = 0
    const publishBoth = async (count: number) => {
      await until('NATS is connected', rig.nats.connected)
      const batches = makeBlocked(sent, count)
      await Promise.all(tenants.map((tenantId) => publish(tenantId, ...batches)))
      sent += count
    }
    const changeFiles = async (change: () => void) => {
      await natsServer.kill('SIGTERM')
      change()
      await natsServer.restart()
    }
    const putBack = () => {
      rmSync(files, { recursive: true })
      cpSync(copy, files, { recursive: true })
    }
    await publishBoth(5)
    await rig.drained()
    await changeFiles(() => cpSync(files, copy, { recursive: true }))
    await publishBoth(15)
    await rig.drained()
    await changeFiles(putBack)
    await publishBoth(10)
    await settle()
    const noticed = ({ stream }: { stream: string }) =>
      scorer.readMetric('di_stream_put_back_total', `stream="${stream}"`)
    expect([await noticed(streamOne), await noticed(streamTwo)]).toEqual([0, 1])
    // Again, and the stream passes the newest stored message before a scorer can notice it.
    await scorer.end('SIGKILL')
    await changeFiles(putBack)
    await publishBoth(25)
    scorer = await rig.startScorer()
    await settle()

    const after = await Promise.all(tenants.map(countStored))
    for (const [index, { events, offsets }] of after.entries()) {
      expect(events - before[index]!.events).toBe(sent)
      expect(offsets - before[index]!.offsets).toBe(sent)
    }
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    const [first, second] = await Promise.all(tenants.map(readOutcome))
    const isHere = ([device]: [string]) => device === 'put-back'
    const ofDevice = ({ alerts, sessions, hours }: NonNullable<typeof first>) => ({
      alerts: alerts.filter((one) => one.device_id === 'put-back'),
      sessions: (sessions as [string][]).filter(isHere),
      hours: hours.map(({ stored, decided, differences }) => ({ stored, decided, differences })),
    })
    expect(ofDevice(second!)).toEqual(ofDevice(first!))
    expect(ofDevice(second!).alerts).toHaveLength(sent)
    const { rows } = await rig.postgres.query(
      'select stream, number from stream_incarnations order by number',
    )
    expect(rows).toEqual([1, 2].map((number) => ({ stream: streamTwo.stream, number })))
  })

  // Last: it marks what is not in the streams.
  it('events beyond the mark of their own stream are in flight', async () => {
    const undecided = { tenantId: 'second', hourMs: atMs + hourMs, stage: 'stored' } as const
    const streamOffset = 10 ** 15 * 5
    const entry = {
      ...undecided,
      streamOffset,
      events: 1,
      refused: 0,
      publishedMs: atMs,
      named: [],
    }
    await createReconciliationWriter(rig.clickhouse, 2).insertEntries([entry])
    const marks = [
      { stream: 1, streamOffset: streamOffset + 1 },
      { stream: 2, streamOffset },
    ]
    // Before the newest replication, so that it counts at once.
    await markDecided(rig.clickhouse, { marks, atMs })
    const span = { tenantId: 'second', fromMs: atMs + hourMs, toMs: atMs + 2 * hourMs }
    const { hours } = await store.readReconciliation(span)
    expect(hours).toMatchObject([{ stored: 1, inFlight: 1, decided: 0, differences: [] }])
    const place = { from: streamOffset, to: streamOffset + offsetsPerMessage }
    const countUnknown = (stream: number) =>
      store.countUnknownMessages({ stream, ...place, step: offsetsPerMessage })
    expect([await countUnknown(1), await countUnknown(2)]).toEqual([1, 0])
  })
})

describe('a tenant', () => {
  it('gets the stream with the fewest tenants, and its stream stays in use', async () => {
    await rig.addTenant('third', 2)
    expect(await chooseTelemetryStream(rig.postgres, 2)).toBe(1)
    await rig.addTenant('fourth', 1)
    await rig.addTenant('fifth', 1)
    expect(await chooseTelemetryStream(rig.postgres, 2)).toBe(2)
    expect(await chooseTelemetryStream(rig.postgres, 3)).toBe(3)
    expect(await findStreamFault(rig.postgres, 2)).toBeNull()
    expect(await findStreamFault(rig.postgres, 1)).toBe(
      'TELEMETRY_STREAMS is 1, but there are tenants on telemetry stream 2: set it to 2 or more',
    )
    const fewer = await rig.startScorer({ TELEMETRY_STREAMS: '1' })
    await until('a scorer of fewer streams is not ready', async () =>
      (await (await fetch(`${fewer.url}/readyz`)).text()).includes('TELEMETRY_STREAMS is 1'),
    )
    await fewer.end('SIGTERM')
  })
})

describe('an edge', () => {
  let edgeRig: EdgeRig
  beforeAll(async () => {
    edgeRig = await startEdgeRig({ telemetryStreams: 2 })
  })
  afterAll(() => edgeRig?.stop())

  it('stores on one stream while the other is full, and serves no stream beyond its own', async () => {
    const one = await edgeRig.projectTenant('first')
    const two = await edgeRig.projectTenant('second', { telemetry_stream: 2 })
    const beyond = await edgeRig.projectTenant('beyond', { telemetry_stream: 3 })
    const edge = await edgeRig.startEdge()
    const post = ({ tenantId, secret }: { tenantId: string; secret: string }) =>
      send(edge, bodyOf(tenantId), { secret })
    const answers = async () => [(await post(one)).status, (await post(two)).status]
    expect(await answers()).toEqual([200, 200])
    expect((await post(beyond)).status).toBe(503)
    const { streams } = edgeRig.nats.manager
    const { config, state } = await streams.info(streamOne.stream)
    await streams.update(streamOne.stream, { ...config, max_bytes: state.bytes })
    expect(await answers()).toEqual([503, 200])
    expect((await streams.info(streamTwo.stream)).state.messages).toBe(2)
    const failed = (stream: string) => edge.count('di_ingest_publish_failures_total', { stream })
    expect([await failed('TELEMETRY'), await failed('TELEMETRY_2')]).toEqual([1, 0])
    // A balancer keeps the edge for the tenants of the other stream.
    const ready = await fetch(`${edge.internalUrl}/readyz`)
    expect(ready.status).toBe(200)
    expect(JSON.stringify(await ready.json())).toContain('stream_full')
    await streams.update(streamOne.stream, config)
    await until('the stream has room', async () => (await post(one)).status === 200)
    // As one that was put back, without the newest message that the edge stored.
    await streams.delete(streamTwo.stream)
    await ensureStreams(edgeRig.nats)
    const replaced = (stream: string) => edge.count('di_ingest_stream_replaced_total', { stream })
    await until('the edge notices', async () => (await replaced('TELEMETRY_2')) === 1)
    expect(await replaced('TELEMETRY')).toBe(0)
    expect(await answers()).toEqual([200, 200])
  })
})

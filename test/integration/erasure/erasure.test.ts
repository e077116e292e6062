// Erasure on real servers. Rows are inserted directly, those of all tests together, and one erasure
// serves all that can be seen of it; the last tests go the whole path, with a scorer.
import { hash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { hourMs } from '#shared/core/base/instants.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import {
  deadLetterStream,
  deadLetterSubject,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { addNote, setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { startBulkJob } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { createHourlyCountStore } from '#shared/io/analytics/counts/hourly-count-store.ts'
import { insertProposal, listProposals } from '#shared/io/approvals/proposal-store.ts'
import type { ErasureReceipt } from '#shared/io/erasure/erasure-job-store.ts'
import { createErasureStore, type ErasureStore } from '#shared/io/erasure/erasure-store.ts'
import { correctPhone } from '#shared/io/identity/correct-phone.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { answerRequestLogQueries } from '#shared/io/telemetry/request-log-answers.ts'
import { openTenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import { listEdges } from '#shared/io/tenants/directory/list-edges.ts'
import type { ErasuresDeps } from '../../../services/console/jobs/erasures.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { insertReplays, insertShadowDecisions } from '../../support/analytics/rows-of-every-kind.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import {
  type EventFacts,
  encodeEvent,
  makeBody,
  makeElement,
  signalsOf,
} from '../../support/telemetry/accepted-events.ts'
import { hostingConnection, plainConnection, toShown } from '../../support/telemetry/connections.ts'
import { storeDirectly } from '../../support/telemetry/direct-rows.ts'
import { eraseNow, erasureEdgeKeys, erasureSealer } from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

type Ids = Record<'phone' | 'tablet' | 'eve' | 'bob' | 'tenant' | 'other' | 'mark', string>

let rig: ScorerRig
/** Of the present test. */
let ids: Ids
/** What edges were told to forget. */
const forgotten: unknown[] = []
let closeEdge: () => Promise<void>

const makeIds = (n: number): Ids => ({
  phone: `phone-Qx7canary${n}-é"\\`,
  tablet: `tablet-Qx7canary${n}`,
  eve: `eve-Qx7canary${n}@example.com`,
  bob: `bob-Qx7canary${n}`,
  tenant: `tenant-${n}`,
  other: `other-${n}`,
  mark: String(n),
})

/** One for each test that erases. */
const rounds = Array.from({ length: 5 }, (_, n) => makeIds(n + 1))
const takeRound = () => {
  ids = rounds.shift()!
}

beforeAll(async () => {
  rig = await createScorerRig()
  for (const { tenant, other } of rounds) {
    await rig.addTenant(tenant)
    await rig.addTenant(other)
  }
  closeEdge = await openEdge()
  const events = await storeDirectly(rig, ...rounds.flatMap(makeMessages))
  await insertShadowDecisions(rig.clickhouse, events)
  await insertReplays(
    rig.clickhouse,
    events.filter(({ body }) => body.session_id === 's-eve'),
  )
  const installs = rounds.flatMap(({ tenant, other, phone }) =>
    [tenant, other].map((tenant_id) => ({ tenant_id, device_id: phone, token_id: 'token' })),
  )
  await rig.clickhouse.insert({ table: 'installs', values: installs, format: 'JSONEachRow' })
  const replication = createReplication({
    postgres: rig.postgres,
    leases: { renewals: rig.postgres, work: rig.postgres },
    clickhouse: rig.clickhouse,
    log: testLog,
    metrics: createMetrics('console'),
    nowMs: () => performance.now(),
    wallMs: Date.now,
  })
  await replication.runRound()
})
afterAll(async () => {
  await closeEdge?.()
  await rig?.close()
})

/** An edge that answers for its request log. */
async function openEdge(): Promise<() => Promise<void>> {
  const shared = { nats: rig.nats, log: testLog }
  const directory = openTenantDirectory({
    ...shared,
    keys: erasureEdgeKeys,
    metrics: createMetrics('ingest'),
    edgeId: 'edge-of-a-test',
    nowMs: () => performance.now(),
  })
  const answers = answerRequestLogQueries({
    ...shared,
    prover: erasureEdgeKeys.proverOf('request log'),
    edgeId: directory.edgeId,
    read: () => ({ since_ms: 0, left_out: 0, entries: [] }),
    forget: (tenantId, deviceIds) => void forgotten.push([tenantId, deviceIds?.toSorted()]),
  })
  await until('the edge is announced', async () => {
    return (await listEdges(rig.nats, erasureSealer)).edges.length === 1
  })
  return async () => {
    answers.close()
    await directory.close()
  }
}

const eraseOf = (
  kind: 'device' | 'user',
  id: string,
  more: Partial<ErasuresDeps> = {},
): Promise<ErasureReceipt> => eraseNow(rig, { tenantId: ids.tenant, kind, id }, more)
/** With its files. */
const eraseWhole: typeof eraseOf = (kind, id) =>
  eraseOf(kind, id, { createStore: createErasureStore })

const historyOf = (tenantId: string, deviceId: string) =>
  rig.history.findDevice({ tenantId, deviceId, sessionsLimit: 100, before: null })

const alertsOf = (tenantId: string) =>
  createAlertStore(rig.postgres).listAlerts({ tenantId, limit: 500, after: null })

const afters = ({ counts }: ErasureReceipt) =>
  Object.values(counts).reduce((sum, { after }) => sum + after, 0)

/** One round of events: a shared phone, two users, another tenant with the same ids. */
function makeRound({ phone, tablet, eve, bob, ...ids }: Ids, of: 'tenant' | 'other'): EventFacts[] {
  const tenantId = ids[of]
  const block = { signals: signalsOf.BLOCK }
  const review = { signals: signalsOf.REVIEW }
  const hers = { connection: of === 'tenant' ? evesConnection(ids) : hostingConnection }
  const his = { connection: plainConnection }
  const both = { userId: bob }
  return [
    { tenantId, deviceId: phone, sessionId: 's-eve', userId: eve, ...block, ...hers },
    { tenantId, deviceId: phone, sessionId: 's-bob', userId: bob, ...review, ...his },
    { tenantId, deviceId: phone, sessionId: 's-both', userId: bob, nonce: 1, ...his },
    { ...both, tenantId, deviceId: phone, sessionId: 's-both', accountId: eve, ...block, ...hers },
    { tenantId, deviceId: tablet, sessionId: 's-tab', userId: eve, ...review, ...hers },
    { tenantId, deviceId: tablet, sessionId: 's-tab-bob', userId: bob },
  ]
}

/** Its texts are of nobody else. */
const evesConnection = ({ mark }: Pick<Ids, 'mark'>) => ({
  ...hostingConnection,
  network: `203.0.${mark}.0/24`,
  organization: `Kq5canary${mark} Ltd`,
  address_hash: `Kq5canary${mark}`,
  address: `203.0.${mark}.77`,
})

function makeMessages(of: Ids): EventFacts[][] {
  const mine = makeRound(of, 'tenant')
  const theirs = makeRound(of, 'other')
  return [
    // Each message has events of both tenants, so erasing one removes the other's from the stream
    // too.
    ...mine.map((event, index) => [event, theirs[index]!]),
    // The client's retry of the same bytes.
    [mine[0]!],
    [{ tenantId: of.tenant, deviceId: 'last', sessionId: 'last' }],
  ]
}

async function count(query: string): Promise<number> {
  const result = await rig.clickhouse.query({ query, format: 'JSONCompactEachRow' })
  return Number((await result.json<[number]>())[0]![0])
}

/** What is kept beside events of everyone but one device or user of the present tenant. */
const countOthers = (isOne: string) =>
  Promise.all(
    ['shadow_decisions', 'replays'].map((table) =>
      count(`select count() from ${table} where tenant_id != '${ids.tenant}' or not (${isOne})`),
    ),
  )

const activityOf = (tenantId: string, kind: string, id: string) =>
  count(`select count() from activity where tenant_id = '${tenantId}'
    and key_hash = ${toHash(`${kind} ${id}`)}`)

/** Files below a folder that contain these bytes. */
function findBytes(folder: string, text: string): string[] {
  const found: string[] = []
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    try {
      if (readFileSync(path).includes(text)) found.push(path)
    } catch (error) {
      // Merges remove files at any time.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return found
}

async function clickhouseFolder(): Promise<string> {
  const query = "select path from system.disks where name = 'default'"
  const result = await rig.clickhouse.query({ query, format: 'JSONCompactEachRow' })
  return (await result.json<[string]>())[0]![0]
}

/** Every stored message as text. */
async function readStream(stream: string): Promise<string[]> {
  const { state } = await rig.nats.manager.streams.info(stream)
  const texts: string[] = []
  for (let sequence = state.first_seq; sequence <= state.last_seq; sequence++) {
    const message = await rig.nats.manager.streams
      .getMessage(stream, { seq: sequence })
      .catch(() => null)
    if (message !== null) texts.push(Buffer.from(message.data).toString())
  }
  return texts
}

/** Tenants with rows that may have hashes of their ids. */
const countedTenants = async (): Promise<string[]> => {
  const found = await rig.clickhouse.query({
    query: 'select distinct tenant_id from hourly_counts order by tenant_id',
    format: 'JSONCompactEachRow',
  })
  return (await found.json<[string]>()).map(([tenantId]) => tenantId)
}

/** Bulk changes and proposals about this and other devices and users. */
async function beginWork(): Promise<void> {
  const begin = (jobId: string, filter: { device_id?: string; user_id?: string }) =>
    startBulkJob(rig.postgres, {
      jobId: `${jobId}_${ids.mark}`,
      tenantId: ids.tenant,
      target: { filter, matching: { total: 0, untilAt: new Date() } },
      change: { sets: 'disposition', disposition: 'REVIEWED' },
      note: null,
      actor: 'ada@example.com',
      expectedCount: 0,
      runningMax: 5,
    })
  await begin('blk_phone', { device_id: ids.phone })
  await begin('blk_eve', { user_id: ids.eve })
  await begin('blk_tablet', { device_id: ids.tablet })
  const propose = async (name: string, of: { device?: string; filter?: object }) => {
    const { device: id, filter } = of
    const subject = id === undefined ? null : ({ kind: 'device', id } as const)
    await insertProposal(rig.postgres, erasureSealer, {
      proposalId: `prp_${randomUUID()}`,
      tenantId: ids.tenant,
      kind: subject === null ? 'bulk' : 'erasure',
      parameters: { filter },
      base: {},
      reason: name,
      author: 'ada@example.com',
      days: 1,
      subject: subject && { ...subject, sha256: hash('sha256', subject.id) },
      openMax: 10,
    })
  }
  await propose('erase phone', { device: ids.phone })
  await propose('erase tablet', { device: ids.tablet })
  await propose('alerts of phone', { filter: { device_id: ids.phone } })
  await propose('alerts of all', { filter: {} })
}

const listProposed = async () =>
  (await listProposals(rig.postgres, { tenantId: ids.tenant, limit: 10, open: true }))
    .map(({ reason }) => reason)
    .sort()

const listJobs = async () => {
  const { rows } = await rig.postgres.query<{ job_id: string }>(
    'select job_id from bulk_jobs where tenant_id = $1 order by job_id',
    [ids.tenant],
  )
  return rows.map((row) => row.job_id.replace(`_${ids.mark}`, ''))
}

describe('erasing a user', () => {
  it('rebuilds the data of others, also after a failure, and leaves its network nowhere', async () => {
    takeRound()
    await beginWork()
    const other = await historyOf(ids.other, ids.phone)
    const first = await historyOf(ids.tenant, ids.phone)
    expect(first).toMatchObject({ peakRaspScore: expect.any(Number), users: [ids.bob, ids.eve] })
    // Merged rows have something of both users, so they are erased and made again.
    for (const table of ['sessions', 'devices']) {
      await rig.clickhouse.command({ query: `optimize table ${table} final` })
    }

    const connection = evesConnection(ids)
    const canary = connection.address_hash
    const folder = await clickhouseFolder()
    const copies = `select count() from alerts_replica
      where connection_network = '${connection.network}'`
    expect(await count(copies)).toBe(3)
    expect(findBytes(folder, canary).length).toBeGreaterThan(0)
    expect(findBytes(rig.natsServer.dir, canary).length).toBeGreaterThan(0)
    const ofEve = `user_id = '${ids.eve}' or account_id = '${ids.eve}'`
    const kept = await countOthers(ofEve)
    const store: ErasureStore = {
      ...createErasureStore(rig.clickhouse),
      // After rows were erased, before shared ones are rebuilt.
      rebuild: async () => {
        throw new Error('connect ECONNREFUSED')
      },
    }
    await expect(eraseOf('user', ids.eve, { createStore: () => store })).rejects.toMatchObject({
      code: 'unavailable',
    })
    expect(await historyOf(ids.tenant, ids.tablet)).toMatchObject({ users: [ids.bob] })

    const receipt = await eraseWhole('user', ids.eve)

    expect(afters(receipt)).toBe(0)
    expect(receipt.counts).toMatchObject({
      'clickhouse.shadow_decisions': { before: 3 },
      'clickhouse.replays': { before: 1 },
      // A registration is of a device and names no user.
      'clickhouse.installs': { before: 0 },
      'clickhouse.sessions': { before: 3 },
      'clickhouse.devices': { before: 2 },
      'clickhouse.user_devices': { before: 2 },
      'clickhouse.alerts_replica': { before: 3 },
      'postgres.alerts': { before: 3 },
    })
    expect(await countOthers(ofEve)).toEqual(kept)
    expect(await count(`select count() from installs where tenant_id = '${ids.tenant}'`)).toBe(1)
    const phone = await historyOf(ids.tenant, ids.phone)
    expect(phone?.users).toEqual([ids.bob])
    expect(phone?.sessions.map((session) => session.sessionId).sort()).toEqual(['s-bob', 's-both'])
    const both = phone?.sessions.find((session) => session.sessionId === 's-both')
    expect(both).toMatchObject({ raspAction: 'ALLOW', raspScore: 0, flags: [] })
    expect(both).toMatchObject({ action: 'ALLOW', riskScore: 0, riskFlags: [] })
    // Where the phone was last for the other user, and no alert of the erased one's network.
    const shown = toShown(plainConnection)
    expect(first?.connection?.network).toBe(connection.network)
    expect(phone?.connection).toEqual(shown)
    expect(both?.connection).toEqual(shown)
    const bobs = first?.sessions.find((session) => session.sessionId === 's-bob')
    expect(phone?.peakRaspScore).toBe(bobs?.raspScore)
    expect(phone?.peakRiskScore).toBe(bobs?.riskScore)
    expect(first!.peakRiskScore).toBeGreaterThan(phone!.peakRiskScore)
    expect(phone?.firstSeenAtMs).toBe(bobs?.startedAtMs)
    const tablet = await historyOf(ids.tenant, ids.tablet)
    expect(tablet?.sessions.map((session) => session.sessionId)).toEqual(['s-tab-bob'])
    expect(tablet?.users).toEqual([ids.bob])
    expect(await historyOf(ids.other, ids.phone)).toEqual(other)
    const devices = await rig.clickhouse.query({
      query: `select device_id, groupUniqArrayArray(users) as users, max(peak_rasp_score) as peak,
          tupleElement(max(connection), 'network') as network
        from devices where tenant_id = '${ids.tenant}' group by device_id order by device_id`,
      format: 'JSONEachRow',
    })
    expect(await devices.json()).toEqual([
      { device_id: 'last', users: [], peak: 0, network: '' },
      {
        device_id: ids.phone,
        users: [ids.bob],
        peak: phone?.peakRaspScore,
        network: plainConnection.network,
      },
      { device_id: ids.tablet, users: [ids.bob], peak: 0, network: '' },
    ])
    expect(await activityOf(ids.tenant, 'user', ids.eve)).toBe(0)
    // The event that named both is removed from the other's key, too.
    expect(await activityOf(ids.tenant, 'user', ids.bob)).toBe(3)
    expect(await activityOf(ids.other, 'user', ids.bob)).toBe(4)
    expect(await activityOf(ids.tenant, 'device', ids.phone)).toBe(2)
    const left = await alertsOf(ids.tenant)
    expect(left.total).toBe(1)
    expect(left.alerts.map((alert) => alert.entity.session.session_id)).toEqual(['s-bob'])
    expect(left.alerts.map((alert) => alert.connection)).toEqual([shown])
    expect(await count(copies)).toBe(0)
    expect(findBytes(folder, canary)).toEqual([])
    expect(findBytes(rig.natsServer.dir, canary)).toEqual([])
    const { rows } = await rig.postgres.query(
      `select 'alert' from alerts where alerts::text like $1
       union all select 'delivery' from deliveries
         where convert_from(body, 'UTF8') like $1`,
      [`%${canary}%`],
    )
    expect(rows).toEqual([])
    expect((await alertsOf(ids.other)).total).toBe(4)
    expect(await listJobs()).toEqual(['blk_phone', 'blk_tablet'])
    // Of a user, those of all its devices.
    expect(forgotten).toContainEqual([ids.tenant, [ids.phone, ids.tablet]])
  })
})

/** About the phone, in every spelling, and one about the same phone of another tenant. */
async function publishDeadLetters(): Promise<{ kept: string }> {
  const { tenant: tenantId, other, phone: deviceId } = ids
  const body = makeBody({ tenantId: other, deviceId }).replace('"rasp_score":12', '$&.00')
  const { body: _, ...header } = JSON.parse(makeElement({ tenantId: other }))
  const kept = encodeEvent({ ...header, event_id: toEventId(Buffer.from(body)) }, body)
  const element = makeElement({ tenantId, deviceId })
  for (const letter of [
    `[${element},${kept}]`,
    element.replaceAll('canary', '\\u0063anary'),
    `{"body":"${deviceId}","t":"${tenantId}"`,
    // Cut off, with the id spelled with an escape.
    element.replaceAll('canary', '\\u0063anary').slice(0, -2),
    '[1, null, {"tenant_id": "nobody"}]',
  ]) {
    await rig.nats.jetstream.publish(deadLetterSubject, letter)
  }
  return { kept }
}

describe('erasing a device', () => {
  it('leaves no row of it in any store, no work and no letter, and all of others', async () => {
    takeRound()
    await beginWork()
    const { kept: letter } = await publishDeadLetters()
    const mention = { peers: [{ near: ids.phone }], note: `seen beside ${ids.phone}` }
    const { tenant: tenantId } = ids
    await storeDirectly(rig, [
      { tenantId, deviceId: 'mentions', sessionId: 'a', more: mention },
      { tenantId, deviceId: 'mentions', sessionId: 'b', more: { near: ids.phone } },
      { tenantId, deviceId: 'mentions', sessionId: 'c' },
      { tenantId: ids.other, deviceId: 'mentions', more: mention },
    ])
    const other = await historyOf(ids.other, ids.phone)
    const tablet = await historyOf(ids.tenant, ids.tablet)
    const before = await alertsOf(ids.tenant)
    expect(before.total).toBe(4)
    const by = { scope: 'all', actor: 'ada@example.com' } as const
    for (const { alert_id: alertId } of before.alerts) {
      await addNote(rig.postgres, { ...by, alertId, note: 'called them', most: 9 })
      await setAssignee(rig.postgres, { ...by, alertId, assignee: 'ada@example.com' })
    }
    const decided = { phoneId: toPhoneId(ids.tenant, 'another'), targetInstalls: 1 }
    for (const deviceId of [ids.phone, ids.tablet]) {
      const split = { tenantId: ids.tenant, deviceId, phoneId: null, reason: 'sold' }
      await correctPhone(rig.postgres, { ...split, actor: 'ada@example.com', decided })
    }
    const { alerts } = await alertsOf(ids.tenant)
    const keptAlerts = alerts.filter(({ entity }) => entity.device.device_id !== ids.phone)

    const hour = Math.floor(Date.now() / hourMs) * hourMs
    const counts = createHourlyCountStore(rig.clickhouse)
    await counts.count(null, { fromMs: hour - hourMs, toMs: hour + hourMs })
    expect(await countedTenants()).toEqual(expect.arrayContaining([ids.other, ids.tenant]))

    // The quotes and the letter of its id are in the way of a text in SQL.
    const ofPhone = `startsWith(device_id, 'phone-Qx7canary${ids.mark}-')`
    const kept = await countOthers(ofPhone)

    const receipt = await eraseOf('device', ids.phone)

    expect(await countOthers(ofPhone)).toEqual(kept)
    expect(await countedTenants()).toContain(ids.other)
    expect(await countedTenants()).not.toContain(ids.tenant)
    expect(afters(receipt)).toBe(0)
    expect(receipt.counts).toMatchObject({
      'clickhouse.telemetry': { after: 0 },
      'clickhouse.sessions': { before: 3, after: 0 },
      'clickhouse.shadow_decisions': { before: 4, after: 0 },
      'clickhouse.replays': { before: 1, after: 0 },
      'clickhouse.installs': { before: 1, after: 0 },
      // Events whose score is far from the client's.
      'clickhouse.decisions': { before: 3, after: 0 },
      'clickhouse.devices': { before: 1, after: 0 },
      'clickhouse.user_devices': { before: 2, after: 0 },
      'clickhouse.alerts_replica': { before: 3, after: 0 },
      'clickhouse.deliveries_replica': { before: 3, after: 0 },
      // The client's retry, which a decider names.
      'clickhouse.reconciliation_entries': { before: 6, after: 0 },
      'postgres.alerts': { before: 3, after: 0 },
      'postgres.alert_notes': { before: 3, after: 0 },
      'postgres.alert_assignments': { before: 3, after: 0 },
      'postgres.phone_corrections': { before: 1, after: 0 },
      'postgres.deliveries': { before: 3, after: 0 },
      'streams.TELEMETRY': { before: 5, after: 0 },
      'streams.DEAD_LETTERS': { before: 4, after: 0 },
      'postgres.bulk_jobs': { before: 1, after: 0 },
      'postgres.proposals': { before: 2, after: 0 },
    })
    // Device, session, users and network: 4 + 4 + 4 + 5 rows, and 4 of the retry.
    expect(receipt.counts['clickhouse.activity']?.before).toBe(21)
    expect(await historyOf(ids.tenant, ids.phone)).toBeNull()
    expect(await historyOf(ids.tenant, ids.tablet)).toEqual(tablet)
    expect(await historyOf(ids.other, ids.phone)).toEqual(other)
    // A user's own key keeps only events of other devices.
    expect(await activityOf(ids.tenant, 'user', ids.eve)).toBe(1)
    expect(await activityOf(ids.tenant, 'user', ids.bob)).toBe(1)
    expect(await activityOf(ids.tenant, 'session', 's-eve')).toBe(0)
    expect(await activityOf(ids.other, 'session', 's-eve')).toBe(1)
    const corrected = await createPhoneCorrections(rig.postgres).findCorrections(ids.tenant, [
      ids.phone,
      ids.tablet,
    ])
    expect([...corrected.keys()]).toEqual([ids.tablet])
    const after = await alertsOf(ids.tenant)
    expect(after).toMatchObject({ total: 1, alerts: keptAlerts })
    expect((await alertsOf(ids.other)).total).toBe(4)
    expect(await listProposed()).toEqual(['alerts of all', 'erase tablet'])
    expect(await listJobs()).toEqual(['blk_eve', 'blk_tablet'])
    // Byte for byte, including a number with another usual spelling.
    const letters = (await readStream(deadLetterStream)).filter((text) =>
      text.includes('Qx7canary'),
    )
    expect(letters).toEqual([`[${letter}]`])
    expect(forgotten).toContainEqual([ids.tenant, [ids.phone]])
    // Events of others may name it in a free field: they are counted and kept.
    // The log of what people did is append-only: it has the filter of the bulk change.
    const others = [{ place: 'postgres.audit_log.after', rows: 1 }]
    expect(receipt.kept_mentions).toEqual({ events: 2, others })
    expect((await historyOf(tenantId, 'mentions'))?.sessionsTotal).toBe(3)
  })
})

describe('a device that continues to send', () => {
  it.each(['device', 'user'] as const)(
    'keeps the peak of its users when a %s is erased while it sends',
    async (kind) => {
      takeRound()
      const { tenant: tenantId, phone: deviceId, eve: userId } = ids
      const store = createErasureStore(rig.clickhouse)
      const late: ErasureStore = {
        ...store,
        eraseRows: async (traces) => {
          await storeDirectly(rig, [
            { tenantId, deviceId, sessionId: 'late', userId, signals: signalsOf.REVIEW },
          ])
          await store.eraseRows(traces)
        },
      }
      await eraseOf(kind, kind === 'device' ? deviceId : userId, { createStore: () => late })
      const session = (await historyOf(tenantId, deviceId))?.sessions.find(
        ({ sessionId }) => sessionId === 'late',
      )
      expect(session?.raspScore).toBeGreaterThan(0)
      const peak = await count(`select max(peak_rasp_score) from user_devices
        where tenant_id = '${tenantId}' and user_id = '${userId}' and device_id != '${ids.tablet}'`)
      expect(peak).toBe(session?.raspScore)
    },
  )
})

describe('the whole path', () => {
  it('is waited for; then no store, file or row has the device, also after a replay', async () => {
    takeRound()
    const { tenant: tenantId } = ids
    // A device with its own events, in one tenant only.
    const deviceId = 'solo-Zw9canary'
    const hers = { tenantId, deviceId, signals: signalsOf.BLOCK }
    await storeDirectly(rig, [{ ...hers, sessionId: 'stored' }])
    await rig.publish([{ ...hers, sessionId: 'late' }])
    await rig.publish([{ tenantId, deviceId: 'neighbour', signals: signalsOf.REVIEW }])
    const hasty = eraseOf('device', deviceId, { waitMaxMs: 200 })
    await expect(hasty).rejects.toMatchObject({ code: 'unavailable' })
    expect(await historyOf(tenantId, deviceId)).toMatchObject({ sessionsTotal: 1 })
    expect((await alertsOf(tenantId)).total).toBe(5)
    expect((await readStream(telemetryStream)).join('')).toContain(deviceId)

    await rig.startScorer()
    await rig.drained()
    expect(await historyOf(tenantId, deviceId)).toMatchObject({ sessionsTotal: 2 })
    expect((await alertsOf(tenantId)).total).toBe(7)
    const neighbour = await historyOf(tenantId, 'neighbour')
    const folder = await clickhouseFolder()
    expect(findBytes(folder, deviceId).length).toBeGreaterThan(0)
    expect(findBytes(rig.natsServer.dir, deviceId).length).toBeGreaterThan(0)

    const receipt = await eraseWhole('device', deviceId)

    expect(afters(receipt)).toBe(0)
    expect(findBytes(folder, deviceId)).toEqual([])
    expect(findBytes(rig.natsServer.dir, deviceId)).toEqual([])
    expect(receipt.kept_mentions).toEqual({ events: 0, others: [] })
    expect(JSON.stringify(receipt)).not.toContain(deviceId)
    const [entry] = await listAudit(rig.postgres, { tenantId, limit: 1 })
    expect(entry).toMatchObject({
      actor: 'test',
      action: 'erasure.done',
      after: { subject: receipt.subject, counts: receipt.counts },
    })
    expect(JSON.stringify(entry)).not.toContain(deviceId)
    expect(await count("select count() from system.mutations where command like '%Zw9%'")).toBe(0)

    await rig.redeliverAll()
    await rig.drained()

    expect(await historyOf(tenantId, deviceId)).toBeNull()
    expect(await historyOf(tenantId, 'neighbour')).toEqual(neighbour)
    expect((await alertsOf(tenantId)).total).toBe(5)
  })

  it('keeps all events that came after the start of the erasure', async () => {
    const { tenant: tenantId, phone: deviceId } = ids
    let nonce = 0
    // At every step: some are stored when a table is erased, and some later.
    const send = async () => {
      for (let n = 0; n < 5; n++) {
        await rig.publish([{ tenantId, deviceId, sessionId: 'live', nonce: nonce++ }])
      }
    }
    const store = new Proxy(createErasureStore(rig.clickhouse), {
      get:
        (steps, name: keyof ErasureStore) =>
        async (...values: never[]) => {
          await send()
          return (steps[name] as (...given: never[]) => Promise<unknown>)(...values)
        },
    })
    const receipt = await eraseOf('device', deviceId, { createStore: () => store })
    await rig.publish([{ tenantId, deviceId, sessionId: 'live', userId: ids.bob, nonce: 'end' }])
    await rig.drained()
    expect(receipt.counts['clickhouse.telemetry']?.after).toBe(0)
    const rows = await count(`select count() from telemetry final
      where tenant_id = '${tenantId}' and session_id = 'live'`)
    expect(rows).toBe(nonce + 1)
    expect(await activityOf(tenantId, 'session', 'live')).toBe(rows)
    expect(await historyOf(tenantId, deviceId)).toMatchObject({
      sessionsTotal: 1,
      users: [ids.bob],
    })
    const subjects = await rig.nats.manager.streams.info(telemetryStream, {
      subjects_filter: telemetrySubject,
    })
    expect(subjects.state.messages).toBeGreaterThan(0)
  })
})

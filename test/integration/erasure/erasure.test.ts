import { hash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
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
import { eraseNow, erasureEdgeKeys, erasureSealer } from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

let rig: ScorerRig
let round = 0
let ids: { phone: string; tablet: string; eve: string; bob: string; tenant: string; other: string }

beforeAll(async () => {
  rig = await createScorerRig()
  await rig.startScorer()
})
afterAll(() => rig?.close())

beforeEach(async () => {
  const n = ++round
  ids = {
    phone: `phone-Qx7canary${n}-é"\\`,
    tablet: `tablet-Qx7canary${n}`,
    eve: `eve-Qx7canary${n}@example.com`,
    bob: `bob-Qx7canary${n}`,
    tenant: `tenant-${n}`,
    other: `other-${n}`,
  }
  await rig.addTenant(ids.tenant)
  await rig.addTenant(ids.other)
})

const eraseOf = (
  kind: 'device' | 'user',
  id: string,
  more: Partial<ErasuresDeps> = {},
): Promise<ErasureReceipt> => eraseNow(rig, { tenantId: ids.tenant, kind, id }, more)

const historyOf = (tenantId: string, deviceId: string) =>
  rig.history.findDevice({ tenantId, deviceId, sessionsLimit: 100, before: null })

const alertsOf = (tenantId: string) =>
  createAlertStore(rig.postgres).listAlerts({ tenantId, limit: 500, after: null })

const afters = ({ counts }: ErasureReceipt) =>
  Object.values(counts).reduce((sum, { after }) => sum + after, 0)

/** One round of events: a shared phone, two users, another tenant with the same ids. */
function makeRound(tenantId: string): EventFacts[] {
  const { phone, tablet, eve, bob } = ids
  const block = { signals: signalsOf.BLOCK }
  const review = { signals: signalsOf.REVIEW }
  const hers = { connection: evesConnection() }
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
const evesConnection = () => ({
  ...hostingConnection,
  network: `203.0.${round}.0/24`,
  organization: `Kq5canary${round} Ltd`,
  address_hash: `Kq5canary${round}`,
  address: `203.0.${round}.77`,
})

async function publishRound(): Promise<void> {
  // Each message has events of both tenants, so erasing one removes the other's from the stream
  // too.
  const mine = makeRound(ids.tenant)
  const theirs = makeRound(ids.other)
  await rig.publish(...mine.map((event, index) => [event, theirs[index]!]))
  // The client's retry of the same bytes.
  await rig.publish([mine[0]!])
  await rig.publish([{ tenantId: ids.tenant, deviceId: 'last', sessionId: 'last' }])
  await rig.drained()
}

async function count(query: string): Promise<number> {
  const result = await rig.clickhouse.query({ query, format: 'JSONCompactEachRow' })
  return Number((await result.json<[number]>())[0]![0])
}

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

describe('erasing a device', () => {
  it('leaves no row of it in any store, and all other rows', async () => {
    await publishRound()
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
    const kept = alerts.filter(({ entity }) => entity.device.device_id !== ids.phone)

    const hour = Math.floor(Date.now() / hourMs) * hourMs
    const counts = createHourlyCountStore(rig.clickhouse)
    await counts.count(null, { fromMs: hour - hourMs, toMs: hour + hourMs })
    expect(await countedTenants()).toEqual([ids.other, ids.tenant].sort())

    const receipt = await eraseOf('device', ids.phone)

    expect(await countedTenants()).toEqual([ids.other])
    expect(afters(receipt)).toBe(0)
    expect(receipt.counts).toMatchObject({
      'clickhouse.telemetry': { after: 0 },
      'clickhouse.sessions': { before: 3, after: 0 },
      // Events whose score is far from the client's.
      'clickhouse.decisions': { before: 3, after: 0 },
      'clickhouse.devices': { before: 1, after: 0 },
      'clickhouse.user_devices': { before: 2, after: 0 },
      'postgres.alerts': { before: 3, after: 0 },
      'postgres.alert_notes': { before: 3, after: 0 },
      'postgres.alert_assignments': { before: 3, after: 0 },
      'postgres.phone_corrections': { before: 1, after: 0 },
      'postgres.deliveries': { before: 3, after: 0 },
      'streams.TELEMETRY': { before: 5, after: 0 },
      'streams.DEAD_LETTERS': { before: 0, after: 0 },
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
    expect(after).toMatchObject({ total: 1, alerts: kept })
    expect((await alertsOf(ids.other)).total).toBe(4)
  })

  it('leaves its id in no bulk change and no proposal, and keeps those of others', async () => {
    await publishRound()
    const begin = (jobId: string, filter: { device_id?: string; user_id?: string }) =>
      startBulkJob(rig.postgres, {
        jobId: `${jobId}_${round}`,
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
    const proposals = async () =>
      (await listProposals(rig.postgres, { tenantId: ids.tenant, limit: 10, open: true }))
        .map(({ reason }) => reason)
        .sort()
    const jobs = async () => {
      const { rows } = await rig.postgres.query<{ job_id: string }>(
        'select job_id from bulk_jobs where tenant_id = $1 order by job_id',
        [ids.tenant],
      )
      return rows.map((row) => row.job_id.replace(`_${round}`, ''))
    }

    const receipt = await eraseOf('device', ids.phone)

    expect(receipt.counts['postgres.bulk_jobs']).toEqual({ before: 1, after: 0 })
    expect(receipt.counts['postgres.proposals']).toEqual({ before: 2, after: 0 })
    expect(await proposals()).toEqual(['alerts of all', 'erase tablet'])
    expect(await jobs()).toEqual(['blk_eve', 'blk_tablet'])
    await eraseOf('user', ids.eve)
    expect(await jobs()).toEqual(['blk_tablet'])
  })

  it('leaves its id in no file of ClickHouse and NATS, no audit row and no receipt', async () => {
    // A device with its own events, in one tenant only.
    const deviceId = `solo-Zw9canary${round}`
    await rig.publish([{ tenantId: ids.tenant, deviceId, signals: signalsOf.BLOCK }])
    await rig.publish([{ tenantId: ids.tenant, deviceId: 'last', sessionId: 'last' }])
    await rig.drained()
    const folder = await clickhouseFolder()
    expect(findBytes(folder, deviceId).length).toBeGreaterThan(0)
    expect(findBytes(rig.natsServer.dir, deviceId).length).toBeGreaterThan(0)

    const receipt = await eraseOf('device', deviceId)

    expect(findBytes(folder, deviceId)).toEqual([])
    expect(findBytes(rig.natsServer.dir, deviceId)).toEqual([])
    expect(JSON.stringify(receipt)).not.toContain(deviceId)
    const [entry] = await listAudit(rig.postgres, { tenantId: ids.tenant, limit: 1 })
    expect(entry).toMatchObject({
      actor: 'test',
      action: 'erasure.done',
      after: { subject: receipt.subject, counts: receipt.counts },
    })
    expect(JSON.stringify(entry)).not.toContain(deviceId)
    expect(await count("select count() from system.mutations where command like '%Zw9%'")).toBe(0)
  })

  it('reports how many other events contain its id in a free field, and keeps them', async () => {
    const { tenant: tenantId, other, phone, tablet } = ids
    const mention = { peers: [{ near: phone }], note: `seen beside ${phone}` }
    await rig.publish([
      { tenantId, deviceId: phone, more: { near: phone } },
      { tenantId, deviceId: tablet, sessionId: 'a', more: mention },
      { tenantId, deviceId: tablet, sessionId: 'b', more: { near: phone } },
      { tenantId, deviceId: tablet, sessionId: 'c' },
      { tenantId: other, deviceId: tablet, more: mention },
    ])
    await rig.drained()
    const receipt = await eraseOf('device', phone)
    expect(afters(receipt)).toBe(0)
    expect(receipt.kept_mentions).toEqual({ events: 2 })
    expect((await historyOf(tenantId, tablet))?.sessionsTotal).toBe(3)
    expect((await eraseOf('device', 'never-seen')).kept_mentions).toEqual({ events: 0 })
  })

  it('is not reverted by a replay of the stream, and may be repeated', async () => {
    await publishRound()
    await eraseOf('device', ids.phone)
    const tablet = await historyOf(ids.tenant, ids.tablet)
    const other = await historyOf(ids.other, ids.phone)

    await rig.redeliverAll()
    await rig.drained()

    expect(await historyOf(ids.tenant, ids.phone)).toBeNull()
    expect(await historyOf(ids.tenant, ids.tablet)).toEqual(tablet)
    expect(await historyOf(ids.other, ids.phone)).toEqual(other)
    expect((await alertsOf(ids.tenant)).total).toBe(1)
    const again = await eraseOf('device', ids.phone)
    expect(Object.values(again.counts)).toEqual(
      Object.values(again.counts).map(() => ({ before: 0, after: 0 })),
    )
  })
})

describe('erasing a user', () => {
  it('rebuilds the data that others share with it, by user_id and by account_id', async () => {
    await publishRound()
    const other = await historyOf(ids.other, ids.phone)
    const first = await historyOf(ids.tenant, ids.phone)
    expect(first).toMatchObject({ peakRaspScore: expect.any(Number), users: [ids.bob, ids.eve] })
    // Merged rows have something of both users, so they are erased and made again.
    for (const table of ['sessions', 'devices']) {
      await rig.clickhouse.command({ query: `optimize table ${table} final` })
    }

    const receipt = await eraseOf('user', ids.eve)

    expect(afters(receipt)).toBe(0)
    expect(receipt.counts).toMatchObject({
      'clickhouse.sessions': { before: 3 },
      'clickhouse.devices': { before: 2 },
      'clickhouse.user_devices': { before: 2 },
      'postgres.alerts': { before: 3 },
    })
    const phone = await historyOf(ids.tenant, ids.phone)
    expect(phone?.users).toEqual([ids.bob])
    expect(phone?.sessions.map((session) => session.sessionId).sort()).toEqual(['s-bob', 's-both'])
    const both = phone?.sessions.find((session) => session.sessionId === 's-both')
    expect(both).toMatchObject({ raspAction: 'ALLOW', raspScore: 0, flags: [] })
    expect(both).toMatchObject({ action: 'ALLOW', riskScore: 0, riskFlags: [] })
    // Where the phone was last for the other user, and no alert of the erased one's network.
    const shown = toShown(plainConnection)
    expect(first?.connection?.network).toBe(evesConnection().network)
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
    const found = await rig.postgres.query(
      'select alert_id from alerts where tenant_id = $1 and connection_network = $2::cidr',
      [ids.tenant, evesConnection().network],
    )
    expect(found.rows).toEqual([])
    expect((await alertsOf(ids.other)).total).toBe(4)
  })

  it('leaves its network, operator and address in no file and no table', async () => {
    const { tenant: tenantId, phone, bob, eve } = ids
    const connection = evesConnection()
    const canary = connection.address_hash
    const block = { signals: signalsOf.BLOCK }
    await rig.publish([{ tenantId, deviceId: phone, userId: eve, connection, ...block }])
    await rig.publish([{ tenantId, deviceId: phone, userId: bob, sessionId: 'of-bob' }])
    await rig.publish([{ tenantId, deviceId: 'last', sessionId: 'last' }])
    await rig.drained()
    const replication = createReplication({
      postgres: rig.postgres,
      locks: { holders: rig.postgres, work: rig.postgres },
      clickhouse: rig.clickhouse,
      log: testLog,
      metrics: createMetrics('console'),
      nowMs: () => performance.now(),
      wallMs: Date.now,
    })
    await replication.runRound()
    const folder = await clickhouseFolder()
    const copies = `select count() from alerts_replica
      where connection_network = '${connection.network}'`
    expect(await count(copies)).toBe(1)
    expect(findBytes(folder, canary).length).toBeGreaterThan(0)
    expect(findBytes(rig.natsServer.dir, canary).length).toBeGreaterThan(0)

    await eraseOf('user', eve)

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
    expect((await historyOf(tenantId, phone))?.connection).toBeNull()
  })

  it('is finished by a second call after a loss of ClickHouse halfway', async () => {
    await publishRound()
    const store: ErasureStore = {
      ...createErasureStore(rig.clickhouse),
      // After rows were erased, before shared ones are rebuilt.
      rebuild: async () => {
        throw new Error('connect ECONNREFUSED')
      },
    }
    await expect(eraseOf('user', ids.eve, { store })).rejects.toMatchObject({ code: 'unavailable' })
    expect(await historyOf(ids.tenant, ids.tablet)).toMatchObject({ users: [ids.bob] })

    expect(afters(await eraseOf('user', ids.eve))).toBe(0)

    expect(await historyOf(ids.tenant, ids.phone)).toMatchObject({
      users: [ids.bob],
      sessionsTotal: 2,
    })
    expect((await alertsOf(ids.tenant)).total).toBe(1)
  })
})

describe('dead letters', () => {
  it('lose entries about the subject, and keep the events of others', async () => {
    const { tenant: tenantId, other, tablet: deviceId } = ids
    const body = makeBody({ tenantId: other, deviceId }).replace('"rasp_score":12', '$&.00')
    const { body: _, ...header } = JSON.parse(makeElement({ tenantId: other }))
    const kept = encodeEvent({ ...header, event_id: toEventId(Buffer.from(body)) }, body)
    const mixed = `[${makeElement({ tenantId, deviceId })},${kept}]`
    const escaped = makeElement({ tenantId, deviceId }).replaceAll(deviceId, (text) =>
      text.replaceAll('t', '\\u0074'),
    )
    await rig.nats.jetstream.publish(deadLetterSubject, mixed)
    await rig.nats.jetstream.publish(deadLetterSubject, escaped)
    await rig.nats.jetstream.publish(deadLetterSubject, `{"body":"${deviceId}","t":"${tenantId}"`)
    await rig.nats.jetstream.publish(deadLetterSubject, '[1, null, {"tenant_id": "nobody"}]')

    const receipt = await eraseOf('device', deviceId)

    expect(receipt.counts['streams.DEAD_LETTERS']).toEqual({ before: 3, after: 0 })
    const deadLetters = (await readStream(deadLetterStream)).filter((text) =>
      text.includes(deviceId),
    )
    expect(deadLetters).toHaveLength(1)
    // Byte for byte, including a number with another usual spelling.
    expect(deadLetters[0]).toBe(`[${kept}]`)
  })
})

describe('an erasure that cannot run', () => {
  it('changes nothing while accepted events are not stored and decided', async () => {
    await publishRound()
    await rig.endScorers()
    try {
      await rig.publish([{ tenantId: ids.tenant, deviceId: ids.phone, sessionId: 'late' }])
      const hasty = eraseOf('device', ids.phone, { waitMaxMs: 200 })
      await expect(hasty).rejects.toMatchObject({ code: 'unavailable' })
      expect(await historyOf(ids.tenant, ids.phone)).not.toBeNull()
      expect((await alertsOf(ids.tenant)).total).toBe(4)
      expect((await readStream(telemetryStream)).join('')).toContain('s-eve')
    } finally {
      await rig.startScorer()
    }
    expect(afters(await eraseOf('device', ids.phone))).toBe(0)
    expect(await historyOf(ids.tenant, ids.phone)).toBeNull()
  })

  it('reports an outage of ClickHouse, and ends when it is back', async () => {
    await publishRound()
    await rig.killClickhouse()
    try {
      await expect(eraseOf('user', ids.eve)).rejects.toMatchObject({ code: 'unavailable' })
      expect((await alertsOf(ids.tenant)).total).toBe(4)
    } finally {
      await rig.restartClickhouse()
    }
    expect(afters(await eraseOf('user', ids.eve))).toBe(0)
    expect((await historyOf(ids.tenant, ids.phone))?.users).toEqual([ids.bob])
  })

  it('clears the request logs of the edges, of a user those of all its devices', async () => {
    const forgotten: unknown[] = []
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
    try {
      await until('the edge is announced', async () => {
        return (await listEdges(rig.nats, erasureSealer)).edges.length === 1
      })
      await publishRound()
      await eraseOf('device', ids.tablet)
      await eraseOf('user', ids.eve)
      expect(forgotten).toEqual([
        [ids.tenant, [ids.tablet]],
        [ids.tenant, [ids.phone]],
      ])
    } finally {
      answers.close()
      await directory.close()
    }
  })

  it('waits for another of its tenant', async () => {
    await publishRound()
    const both = [eraseOf('user', ids.eve), eraseOf('device', ids.phone)]
    const receipts = await Promise.all(both)
    expect(receipts.map(afters)).toEqual([0, 0])
    const [later, earlier] = receipts.sort((a, b) => (a.started_at < b.started_at ? 1 : -1))
    expect(later!.started_at >= earlier!.finished_at).toBe(true)
    expect(await historyOf(ids.tenant, ids.tablet)).toMatchObject({ users: [ids.bob] })
  })
})

describe('a device that continues to send', () => {
  it.each(['device', 'user'] as const)(
    'keeps the peak of its users when a %s is erased while it sends',
    async (kind) => {
      await publishRound()
      const { tenant: tenantId, phone: deviceId, eve: userId } = ids
      const store = createErasureStore(rig.clickhouse)
      const late: ErasureStore = {
        ...store,
        eraseRows: async (traces) => {
          await rig.publish([
            { tenantId, deviceId, sessionId: 'late', userId, signals: signalsOf.REVIEW },
          ])
          await rig.drained()
          await store.eraseRows(traces)
        },
      }
      await eraseOf(kind, kind === 'device' ? deviceId : userId, { store: late })
      const session = (await historyOf(tenantId, deviceId))?.sessions.find(
        ({ sessionId }) => sessionId === 'late',
      )
      expect(session?.raspScore).toBeGreaterThan(0)
      const peak = await count(`select max(peak_rasp_score) from user_devices
        where tenant_id = '${tenantId}' and user_id = '${userId}' and device_id != '${ids.tablet}'`)
      expect(peak).toBe(session?.raspScore)
    },
  )

  it('keeps all events that came after the start of the erasure', async () => {
    await publishRound()
    const { tenant: tenantId, phone: deviceId } = ids
    let stop = false
    const sending = (async () => {
      for (let nonce = 0; !stop; nonce++) {
        await rig.publish([{ tenantId, deviceId, sessionId: 'live', nonce }])
      }
      return rig.publish([{ tenantId, deviceId, sessionId: 'live', userId: ids.bob, nonce: 'end' }])
    })()
    const receipt = await eraseOf('device', deviceId)
    stop = true
    await sending
    await rig.drained()
    expect(receipt.counts['clickhouse.telemetry']?.after).toBe(0)
    const rows = await count(`select count() from telemetry final
      where tenant_id = '${tenantId}' and session_id = 'live'`)
    const activity = await activityOf(tenantId, 'session', 'live')
    expect(activity).toBe(rows)
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

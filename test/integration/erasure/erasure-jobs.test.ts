// Erasures as jobs of a real console: a killed one is resumed, those of one tenant run one after
// another, and only a hash of the subject remains.
import { hash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { replicationLease } from '#shared/io/analytics/replication-store.ts'
import type { Erasure, ErasureReceipt } from '#shared/io/erasure/erasure-job-store.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import { callAdmin } from '../../support/http/tenant-client.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { type EventFacts, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { storeDirectly } from '../../support/telemetry/direct-rows.ts'
import {
  createReadingStore,
  createTestErasures,
  requestForTest,
} from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const token = randomBytes(32).toString('base64url')
let rig: ScorerRig
let admin: ServiceProcess
let round = 0
let tenantId: string
const deviceId = 'phone-Qx7canary'
const other = 'tablet-Qx7canary'

beforeAll(async () => {
  rig = await createScorerRig()
  await storeRounds()
  admin = await createServiceProcess('console', {
    ...rig.env,
    NATS_URL: rig.natsServer.urlOf('console'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: token,
    LOG_LEVEL: 'warn',
  })
  await admin.start()
})
afterAll(async () => {
  await admin?.kill()
  await rig?.close()
})
beforeEach(() => {
  tenantId = `tenant-${++round}`
})

/** One tenant for each test that erases, with two sessions of one device and one of another. */
async function storeRounds(): Promise<void> {
  const batches: EventFacts[][] = []
  for (const n of [1, 2, 3, 4]) {
    const tenant = `tenant-${n}`
    await rig.addTenant(tenant)
    const events = [deviceId, deviceId, other].map((id, session) => ({
      tenantId: tenant,
      deviceId: id,
      sessionId: `s-${session}`,
      signals: signalsOf.BLOCK,
    }))
    batches.push(events, [{ tenantId: tenant, deviceId: 'last', sessionId: 'last' }])
  }
  await storeDirectly(rig, ...batches)
}

const call = <T>(method: string, path: string, body?: object) =>
  callAdmin<T>(admin.url, token, { method, path: `/tenants/${tenantId}/erasures${path}`, body })
const request = (id = deviceId) => call<Erasure>('POST', '', { device_id: id, wait: false })
const read = (id: string) => call<Erasure>('GET', `/${id}`)
const stateOf = (erasure: Erasure, store: string) =>
  erasure.progress.find((one) => one.store === store)
const isDone = (id: string) => until('it is done', async () => (await read(id)).state === 'done')
const historyOf = (id: string) =>
  rig.history.findDevice({ tenantId, deviceId: id, sessionsLimit: 100, before: null })
const rowsOf = async () => {
  const { rows } = await rig.postgres.query<{ text: string; sealed: string | null }>(
    'select erasures::text as text, sealed from erasures where tenant_id = $1',
    [tenantId],
  )
  return rows
}

/** While this lock is taken, erasures wait halfway: alerts are erased and the rest is not. */
async function holdInTheMiddle(): Promise<() => Promise<void>> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const leases = { renewals: rig.postgres, work: rig.postgres }
  const holding = withLease(leases, replicationLease, async () => {
    begin()
    await released
  })
  await begun
  return async () => {
    release()
    await holding
  }
}

it('an erasure is resumed by the next start after a kill, with the first counts', async () => {
  const release = await holdInTheMiddle()
  const { erasure_id: id, subject } = await request()
  expect(subject).toEqual({ kind: 'device', sha256: hash('sha256', deviceId) })
  await until('its alerts are erased', async () => {
    return stateOf(await read(id), 'postgres')?.state === 'erased'
  })
  await admin.kill()
  await release()
  const [row] = await rowsOf()
  expect(row!.sealed).not.toBeNull()
  expect(row!.text).not.toContain(deviceId)
  expect((await historyOf(deviceId))?.sessionsTotal).toBe(2)

  await admin.start()
  await isDone(id)

  expect(await historyOf(deviceId)).toBeNull()
  expect((await historyOf(other))?.sessionsTotal).toBe(1)
  const { receipt, progress } = await read(id)
  expect(receipt!.counts).toMatchObject({
    'postgres.alerts': { before: 2, after: 0 },
    'clickhouse.telemetry': { before: 2, after: 0 },
    'clickhouse.devices': { before: 1, after: 0 },
  })
  expect(progress.map(({ state }) => state)).toEqual(['erased', 'erased', 'erased'])
  expect(await rowsOf()).toMatchObject([{ sealed: null }])
  // A repair of the directory or a replication would have needed the lock as well.
  expect(admin.isAlive()).toBe(true)
})

it('concurrent requests are one job, which covers everything before the last request', async () => {
  const release = await holdInTheMiddle()
  const first = await request()
  await until('it is in its middle', async () => {
    return stateOf(await read(first.erasure_id), 'postgres')?.state === 'erased'
  })
  await storeDirectly(rig, [{ tenantId, deviceId, sessionId: 'late', signals: signalsOf.BLOCK }])
  const [second, third] = await Promise.all([request(), request()])
  expect([second!.erasure_id, third!.erasure_id]).toEqual([first.erasure_id, first.erasure_id])
  await release()
  await isDone(first.erasure_id)
  expect(await historyOf(deviceId)).toBeNull()
  expect(await rowsOf()).toHaveLength(1)
  // A later request is another erasure, of nothing.
  const receipt = await call<ErasureReceipt>('POST', '', { device_id: deviceId })
  expect(Object.values(receipt.counts).every(({ before }) => before === 0)).toBe(true)
  expect(await rowsOf()).toHaveLength(2)
})

it('erasures of one tenant run one after another, and each caller gets its receipt', async () => {
  const receipts = await Promise.all(
    [deviceId, other].map((id) => call<ErasureReceipt>('POST', '', { device_id: id })),
  )
  expect(receipts.map(({ subject }) => subject.sha256)).toEqual(
    [deviceId, other].map((id) => hash('sha256', id)),
  )
  const [earlier, later] = receipts.sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
  expect(later!.started_at >= earlier!.finished_at).toBe(true)
  type Page = { data: Erasure[]; next_cursor: string | null }
  const { data, next_cursor } = await call<Page>('GET', '?limit=1')
  expect(data).toHaveLength(1)
  // As many as are left: the last page is full and knows that it is the last.
  const next = await call<Page>('GET', `?limit=1&cursor=${next_cursor}`)
  expect(next).toMatchObject({ next_cursor: null })
  expect([...data, ...next.data].map(({ receipt }) => receipt)).toEqual(
    expect.arrayContaining(receipts),
  )
})

it('an erasure shows why it cannot continue, and ends when it can', async () => {
  await rig.killClickhouse()
  let id: string
  try {
    id = (await request()).erasure_id
    const waiting = await until('an attempt has failed', async () => {
      const erasure = await read(id)
      return erasure.problem === null ? null : erasure
    })
    expect(waiting).toMatchObject({ state: 'waiting', receipt: null })
    expect(waiting.problem).toBe('ClickHouse does not answer at the moment.')
    await expect(call('POST', '', { device_id: deviceId })).rejects.toThrow(
      /503 .*does not answer.*tried again/,
    )
  } finally {
    await rig.restartClickhouse()
  }
  await isDone(id)
  expect(await historyOf(deviceId)).toBeNull()
})

it('many erasures of some tenants do not delay one of another', async () => {
  await admin.kill()
  const many = ['many-a', 'many-b']
  for (const id of [...many, 'one']) await rig.addTenant(id)
  const request = (tenant: string, n: number) =>
    requestForTest(rig, { tenantId: tenant, kind: 'device', id: `absent-${n}` })
  for (let n = 0; n < 3; n++) for (const tenant of many) await request(tenant, n)
  await request('one', 0)
  const job = createTestErasures(rig, { createStore: createReadingStore }).start()
  const begun = await until('all have begun', async () => {
    const { rows } = await rig.postgres.query<{ tenant_id: string; started_at: Date | null }>(
      'select tenant_id, started_at from erasures where tenant_id = any($1) order by started_at',
      [[...many, 'one']],
    )
    const isBegun = rows.every((row) => row.started_at !== null)
    return isBegun ? rows.map((row) => row.tenant_id) : null
  })
  await job.stop()
  // Each had its turn before the third one of another.
  const earlier = begun.slice(0, begun.indexOf('one'))
  for (const tenant of many) expect(earlier.filter((id) => id === tenant).length).toBeLessThan(3)
})

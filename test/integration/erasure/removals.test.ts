// What must stay gone stays gone when a store is put back to an earlier state: real servers and a
// real scorer.
import { hash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { openRemovalsBucket } from '#shared/io/nats/streams/buckets.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createRemovals } from '../../../services/console/jobs/removals.ts'
import { applyRecovery } from '../../../services/console/recovery/apply-recovery.ts'
import { readRecovery } from '../../../services/console/recovery/read-recovery.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'
import {
  createReadingStore,
  createTestErasures,
  eraseNow,
  erasureSealer,
} from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

let rig: ScorerRig
let round = 0
let ids: { phone: string; eve: string; tenant: string }

beforeAll(async () => {
  rig = await createScorerRig()
  await rig.startScorer()
})
afterAll(() => rig?.close())

beforeEach(async () => {
  const n = ++round
  ids = { phone: `phone-${n}`, eve: `eve-${n}@example.com`, tenant: `tenant-${n}` }
  await rig.addTenant(ids.tenant)
})

const toHash256 = (text: string) => hash('sha256', text, 'hex')

const findHistory = () =>
  rig.history.findDevice({
    tenantId: ids.tenant,
    deviceId: ids.phone,
    sessionsLimit: 100,
    before: null,
  })

async function publishNew(sessionId: string): Promise<void> {
  await rig.publish([{ tenantId: ids.tenant, deviceId: ids.phone, userId: ids.eve, sessionId }])
  await rig.drained()
}

/** Erases it before it has any row. @returns when the erasure began, ISO-8601 */
async function erasePhone(): Promise<string> {
  const subject = { tenantId: ids.tenant, kind: 'device', id: ids.phone } as const
  const receipt = await eraseNow(rig, subject, { createStore: createReadingStore })
  return receipt.started_at
}

const createJob = (metrics = createMetrics('test', { isThread: true })) =>
  createRemovals({
    postgres: rig.postgres,
    leases: { renewals: rig.postgres, work: rig.postgres },
    clickhouse: rig.clickhouse,
    findNats: () => rig.nats,
    sealer: erasureSealer,
    log: testLog,
    metrics,
    wallMs: Date.now,
  })

const eraseDue = async () => {
  const erasures = createTestErasures(rig)
  while (await erasures.runNext(ids.tenant));
}

const operator = 'ada@example.com'

/** As an operator does who has looked at the list. */
async function confirm(): Promise<void> {
  const leases = { renewals: rig.postgres, work: rig.postgres }
  const parts = { ...rig, sealer: erasureSealer, leases, log: testLog, wallMs: Date.now }
  const { digest } = await readRecovery(parts)
  await applyRecovery(parts, { digest, actor: operator })
}

const countRequests = async (actor = 'system') => {
  const { rows } = await rig.postgres.query<{ n: number }>(
    `select count(*) as n from erasures where tenant_id = $1 and requested_by = $2`,
    [ids.tenant, actor],
  )
  return rows[0]!.n
}

/** Events from before the erasure, as a store has them again that was put back. */
const publishOld = async (startedAt: string, { drained } = { drained: true }) => {
  const receivedAtMs = Date.parse(startedAt) - 60_000
  const old = { tenantId: ids.tenant, userId: ids.eve, signals: signalsOf.BLOCK, receivedAtMs }
  await rig.publish([{ ...old, deviceId: ids.phone, sessionId: 'old' }])
  if (drained) await rig.drained()
}

it('loses an erased subject again, whichever store it was, and keeps what is new', async () => {
  const metrics = createMetrics('test', { isThread: true })
  const job = createJob(metrics)
  const startedAt = await erasePhone()
  await job.runRound()
  // The subject is back by itself: that is new.
  await publishNew('new')
  await job.runRound()
  await createJob().runRound()
  expect(await countRequests()).toBe(0)

  // Postgres has forgotten the erasures: only NATS knows, and an operator confirms it.
  await rig.postgres.query('delete from erasures where tenant_id = $1', [ids.tenant])
  await publishOld(startedAt)
  expect(await findHistory()).not.toBeNull()
  await job.runRound()
  await createJob().runRound()
  expect(job.countPending()).toEqual({ api_key: 0, webhook: 0, erasure: 1 })
  expect(await countRequests()).toBe(0)
  expect(await countRequests(operator)).toBe(0)
  await confirm()
  await job.runRound()
  await job.runRound()
  expect(job.countPending()).toEqual({ api_key: 0, webhook: 0, erasure: 0 })
  expect([await countRequests(), await countRequests(operator)]).toEqual([0, 1])
  expect(await metrics.registry.metrics()).toMatch(/^di_revived_total\{.*kind="erasure".*\} 1$/m)
  await eraseDue()
  expect(await findHistory()).toBeNull()
  // It lists the new erasure and searches for it twice.
  await job.runRound()
  await job.runRound()

  // ClickHouse has the events again, and Postgres knows the erasure. A console that starts looks.
  await publishOld(startedAt)
  await job.runRound()
  expect(await countRequests()).toBe(0)
  await createJob().runRound()
  expect(await countRequests()).toBe(1)
  await eraseDue()
  expect(await findHistory()).toBeNull()
})

it('loses what scorers read again from a JetStream that was put back', async () => {
  const job = createJob()
  const startedAt = await erasePhone()
  await job.runRound()
  await job.runRound()

  // JetStream has forgotten the erasure, and has an event from before it that is not decided.
  const bucket = await openRemovalsBucket(rig.nats)
  await bucket.delete(`erasure.${ids.tenant}.device.${toHash256(ids.phone)}`)
  await rig.endScorers()
  await publishOld(startedAt, { drained: false })
  await job.runRound()
  await job.runRound()
  expect(await countRequests()).toBe(0)
  await rig.startScorer()
  await rig.drained()
  await job.runRound()
  expect(await countRequests()).toBe(1)
  await eraseDue()
  expect(await findHistory()).toBeNull()
  await job.runRound()
  expect(await countRequests()).toBe(1)
})

it('loses them also when every console has started since', async () => {
  const startedAt = await erasePhone()
  await createJob().runRound()
  await rig.endScorers()
  await publishOld(startedAt, { drained: false })
  const job = createJob()
  await job.runRound()
  await rig.startScorer()
  await rig.drained()
  await job.runRound()
  expect(await countRequests()).toBe(1)
})

it('has no API key that was retired, and sends nothing with an older webhook secret', async () => {
  const key = Buffer.from(toHash256(`key of ${ids.tenant}`), 'hex')
  await rig.postgres.query(
    `insert into api_keys (key_hash, tenant_id, state, prefix, last4, retired_at)
     values ($1, $2, 'retired', 'dpk', 'last', now())`,
    [key, ids.tenant],
  )
  const addSecret = (state: string, last4: string) =>
    rig.postgres.query(
      `insert into tenant_secrets (tenant_id, kind, state, sealed, last4, retired_at)
       values ($1, 'webhook', $2, 'sealed', $3, case when $2 = 'retired' then now() end)`,
      [ids.tenant, state, last4],
    )
  await rig.postgres.query(`delete from tenant_secrets where tenant_id = $1`, [ids.tenant])
  await addSecret('retired', 'old0')
  await addSecret('active', 'new0')
  await rig.postgres.query(
    `insert into webhooks (tenant_id, url, state) values ($1, 'https://a.example/hook', 'on')
     on conflict (tenant_id) do update set url = excluded.url, state = 'on', off_reason = null`,
    [ids.tenant],
  )
  const job = createJob()
  await job.runRound()
  const read = async () => {
    const { rows } = await rig.postgres.query<{ key: string; webhook: string }>(
      `select k.state as key, w.state as webhook from api_keys k join webhooks w using (tenant_id)
       where k.key_hash = $1`,
      [key],
    )
    return rows[0]
  }
  expect(await read()).toEqual({ key: 'retired', webhook: 'on' })

  // As before the rotation.
  await rig.postgres.query(
    `update api_keys set state = 'active', retired_at = null where key_hash = $1`,
    [key],
  )
  await rig.postgres.query(`delete from tenant_secrets where tenant_id = $1 and last4 = 'new0'`, [
    ids.tenant,
  ])
  await job.runRound()
  expect(await read()).toEqual({ key: 'active', webhook: 'on' })
  expect(job.countPending()).toEqual({ api_key: 1, webhook: 1, erasure: 0 })
  await confirm()
  expect(await read()).toEqual({ key: 'retired', webhook: 'paused' })
  await job.runRound()
  // An operator has dealt with it.
  await rig.postgres.query(`update webhooks set state = 'on' where tenant_id = $1`, [ids.tenant])
  await job.runRound()
  expect(await read()).toEqual({ key: 'retired', webhook: 'on' })
  const { rows } = await rig.postgres.query<{ n: number }>(
    `select count(*) as n from audit_log where tenant_id = $1 and action = 'tenant.recovered'`,
    [ids.tenant],
  )
  expect(rows).toEqual([{ n: 2 }])
})

// Postgres was put back to an earlier state: nothing that NATS knows changes it, or erases, before
// an operator has confirmed exactly what was shown; and then no replaced secret comes back.
import { hash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { hashToken } from '#shared/core/operators/operator-credentials.ts'
import { removalsBucket } from '#shared/core/telemetry/nats-names.ts'
import { tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { restoreStreams } from '#shared/io/nats/streams/restore-streams.ts'
import { insertOperator } from '#shared/io/operators/operator-store.ts'
import { insertSession, listSessions } from '#shared/io/operators/session-store.ts'
import { openDirectory, putProven } from '#shared/io/tenants/directory/directory-entries.ts'
import { putRemovals } from '#shared/io/tenants/removal-list.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { setTenantPolicy } from '../../../services/console/policies/manage-policies.ts'
import { applyRecovery } from '../../../services/console/recovery/apply-recovery.ts'
import { readRecovery } from '../../../services/console/recovery/read-recovery.ts'
import {
  type CreatedTenant,
  createTenant,
  setTenantRates,
  setTenantStatus,
} from '../../../services/console/tenants/manage-tenants.ts'
import { rotate, undoAbandonedRotations } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, startConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: ConsoleRig
let edge: TestEdge
let tenant: CreatedTenant
let tenantId: string
const operator = 'ada@example.com'
const new_ = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const

beforeAll(async () => {
  rig = await startConsoleRig()
  edge = await rig.startEdge()
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  tenant = await createTenant(rig.deps, { ...new_, tenantId })
})

const parts = () => ({ ...rig.deps, nats: rig.nats })
const look = () => readRecovery(parts())
const confirm = async (digest?: string) =>
  applyRecovery(parts(), { digest: digest ?? (await look()).digest, actor: operator })
const expected = async () => (await createTenantStore(rig.postgres).findProjection(tenantId))!
const repairFully = async () => {
  for (let round = 0; round < 4; round++) await rig.projection.repair()
}
const settled = () =>
  until('Postgres and the edges are equal', async () => {
    const written = await rig.projection.repair()
    return written === 0 && (await rig.projection.repair()) === 0
  })

/** Everything that Postgres has of tenants, keys and erasures. */
async function readPostgres(): Promise<string> {
  const tables = [
    'tenants',
    'tenant_secrets',
    'tenant_policies',
    'api_keys',
    'webhooks',
    'erasures',
  ]
  const texts = await Promise.all(
    [...tables, 'recovered_erasures', 'audit_log'].map(async (table) => {
      const { rows } = await rig.postgres.query(`select * from ${table} as t order by t::text`)
      return JSON.stringify(rows)
    }),
  )
  return texts.join('\n')
}

const readEntryText = async () => {
  const bucket = await openTenantsBucket(rig.nats)
  return (await bucket.get(tenantKey(tenantId)))!.string()
}

/** Rotates, then puts the tenant's rows back to what they were before. @returns the new secret */
async function putBackRotation(): Promise<string> {
  const read = async (sql: string) => (await rig.postgres.query(sql, [tenantId])).rows
  const secrets = await read(`select sealed, last4 from tenant_secrets
    where tenant_id = $1 and kind = 'hmac'`)
  const { entry } = await expected()
  const only = { hmac: true, webhook: false, apiKey: false }
  const rotated = await rotate(rig.deps, { tenantId, actor: 'test', ...only })
  await rig.postgres.transaction(async (tx) => {
    await tx.query('update tenants set epoch = $2 where tenant_id = $1', [tenantId, entry.epoch])
    await tx.query(`delete from tenant_secrets where tenant_id = $1 and kind = 'hmac'`, [tenantId])
    await tx.query(
      `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
       select $1, 'hmac', 'active', s.sealed, s.last4 from json_to_recordset($2)
         as s (sealed text, last4 text)`,
      [tenantId, JSON.stringify(secrets)],
    )
  })
  return rotated.hmac_secret!
}

it('a replaced secret stays dead, and nothing changes before it is confirmed', async () => {
  const secret = await putBackRotation()
  const before = await readPostgres()
  const text = await readEntryText()
  await repairFully()
  expect(await undoAbandonedRotations(rig.deps)).toBe(0)
  expect(await readPostgres()).toBe(before)
  expect(await readEntryText()).toBe(text)
  expect(rig.projection.countAhead()).toBe(1)
  const judge = () => [tenant.hmac_secret, secret].map((one) => edge.judge(tenantId, one))
  expect(judge()).toEqual(['refused', 'accepted'])

  const shown = await look()
  expect(shown.tenants).toMatchObject([
    {
      tenant_id: tenantId,
      directory: { hmac_last4: secret.slice(-4), status: 'active' },
      postgres: { hmac_last4: tenant.hmac_secret.slice(-4) },
    },
  ])
  expect(await confirm(shown.digest)).toMatchObject({ tenants: 1, erasures: 0 })
  await settled()
  expect(judge()).toEqual(['refused', 'accepted'])
  expect((await look()).tenants).toEqual([])
  expect(rig.projection.countAhead()).toBe(0)
  const { rows } = await rig.postgres.query<{ actor: string }>(
    `select actor from audit_log where action in ('tenant.recovered', 'recovery.applied')
     order by audit_id desc limit 2`,
  )
  expect(rows.map(({ actor }) => actor)).toEqual([operator, operator])
})

it('changes of its credentials, status, rates and policy are refused until then', async () => {
  await putBackRotation()
  const before = await readPostgres()
  const text = await readEntryText()
  const deps = rig.deps
  const of = { tenantId, actor: 'test' }
  const only = { hmac: false, webhook: true, apiKey: false }
  const attempts = [
    () => rotate(deps, { ...of, ...only, hmac: true }),
    () => rotate(deps, { ...of, ...only }),
    () => setTenantStatus(deps, { ...of, status: 'suspended' }),
    () => setTenantRates(deps, { ...of, ingest: null }),
    async () => {
      const { policy } = await expected()
      const document = { ...(JSON.parse(policy.text) as object), name: 'other' }
      return setTenantPolicy(deps, { ...of, document })
    },
  ]
  for (const attempt of attempts) {
    await expect(attempt()).rejects.toMatchObject({ code: 'recovery_pending' })
  }
  expect(await readPostgres()).toBe(before)
  expect(await readEntryText()).toBe(text)
  await confirm()
  await setTenantStatus(deps, { ...of, status: 'suspended' })
  expect((await expected()).entry.status).toBe('suspended')
})

it('a tenant that Postgres forgot keeps its intake and its id, and is given back', async () => {
  await rig.postgres.query('delete from tenants where tenant_id = $1', [tenantId])
  await repairFully()
  expect(await createTenantStore(rig.postgres).findTenant(tenantId)).toBeNull()
  expect(edge.judge(tenantId, tenant.hmac_secret)).toBe('accepted')
  const again = createTenant(rig.deps, { ...new_, tenantId })
  await expect(again).rejects.toMatchObject({ code: 'recovery_pending' })
  expect((await look()).tenants).toMatchObject([{ tenant_id: tenantId, postgres: null }])
  await confirm()
  await settled()
  expect(await createTenantStore(rig.postgres).findTenant(tenantId)).not.toBeNull()
  expect(edge.judge(tenantId, tenant.hmac_secret)).toBe('accepted')
})

it('only what was shown can be confirmed', async () => {
  await putBackRotation()
  const { digest } = await look()
  const other = `other-${tenantId}`
  await createTenant(rig.deps, { ...new_, tenantId: other })
  await rig.postgres.query('delete from tenants where tenant_id = $1', [other])
  const before = await readPostgres()
  await expect(confirm(digest)).rejects.toMatchObject({ code: 'recovery_changed' })
  expect(await readPostgres()).toBe(before)
  expect(await confirm()).toMatchObject({ tenants: 2 })
  await settled()
})

it('retired keys, replaced webhook secrets and erasures wait for it as well', async () => {
  const sha256 = hash('sha256', 'phone', 'hex')
  const { rows } = await rig.postgres.query<{ hash: string }>(
    `select encode(key_hash, 'hex') as hash from api_keys where tenant_id = $1`,
    [tenantId],
  )
  await rig.postgres.query(
    `update webhooks set state = 'on', url = 'https://a.example/'
    where tenant_id = $1`,
    [tenantId],
  )
  const startedAt = new Date().toISOString()
  await putRemovals(rig.nats, rig.deps.sealer.proverOf('removal'), [
    { kind: 'api_key', tenant_id: tenantId, sha256: rows[0]!.hash },
    { kind: 'webhook', tenant_id: tenantId, secret_id: 1_000_000 },
    { kind: 'erasure', tenant_id: tenantId, subject: 'device', sha256, started_at: startedAt },
  ])
  const shown = await look()
  expect(shown).toMatchObject({
    tenants: [],
    api_keys: [{ tenant_id: tenantId, sha256: rows[0]!.hash }],
    webhooks: [{ tenant_id: tenantId }],
    erasures: [{ tenant_id: tenantId, sha256, started_at: startedAt }],
  })
  expect(await confirm()).toEqual({ tenants: 0, api_keys: 1, webhooks: 1, erasures: 1 })
  const read = async (sql: string) => (await rig.postgres.query(sql, [tenantId])).rows
  expect(await read('select state from api_keys where tenant_id = $1')).toEqual([
    { state: 'retired' },
  ])
  expect(await read('select state from webhooks where tenant_id = $1')).toEqual([
    { state: 'paused' },
  ])
  expect(
    await read('select recovered_by, searched_at from recovered_erasures where tenant_id = $1'),
  ).toEqual([{ recovered_by: operator, searched_at: null }])
  const { api_keys, webhooks, erasures } = await look()
  expect([api_keys, webhooks, erasures]).toEqual([[], [], []])
})

/** Signs an operator in, and returns how many sessions the operator has. */
async function signIn(): Promise<() => Promise<number>> {
  const operatorId = `opr_${randomUUID().replaceAll('-', '').slice(0, 22)}`
  const nowMs = Date.now()
  await insertOperator(rig.postgres, {
    operatorId,
    email: `${operatorId}@example.com`,
    name: '',
    role: 'admin',
    tenants: 'all',
    passwordHash: '$argon2id$test',
    subject: null,
    nowMs,
    createdBy: 'test',
  })
  await insertSession(rig.postgres, {
    session: {
      sessionId: operatorId.replace('opr_', 'ses_'),
      operatorId,
      createdAtMs: nowMs,
      lastUsedAtMs: nowMs,
      stepUpUntilMs: null,
      signedInBy: 'password',
      address: 'test',
      userAgent: '',
    },
    tokenHash: hashToken(operatorId),
  })
  return async () => (await listSessions(rig.postgres, operatorId)).length
}

it('signs every operator out when a tenant is recovered, and no one before', async () => {
  await putBackRotation()
  const countSessions = await signIn()
  await repairFully()
  expect(await countSessions()).toBe(1)
  await confirm()
  expect(await countSessions()).toBe(0)
  await settled()
})

it('a tenant whose policy the directory has lost stays to be recovered', async () => {
  const directory = await openDirectory(rig.nats, rig.deps.sealer)
  const { entry } = await expected()
  const lost = { ...entry, tenant_id: `lost-${tenantId}`, policy_hash: 'gone' }
  const key = tenantKey(lost.tenant_id)
  await putProven(directory, key, JSON.stringify({ ...lost, hmac_secret_sealed: null }), 0)
  const countSessions = await signIn()
  expect(await confirm()).toMatchObject({ tenants: 0 })
  expect(await countSessions()).toBe(1)
  expect((await look()).tenants).toMatchObject([{ tenant_id: lost.tenant_id }])
  await directory.bucket.delete(key)
})

it('is unavailable, and no defect, while NATS has lost the list of what must stay gone', async () => {
  const { digest } = await look()
  await rig.nats.manager.streams.delete(`KV_${removalsBucket}`)
  await expect(look()).rejects.toMatchObject({ code: 'unavailable' })
  await expect(confirm(digest)).rejects.toMatchObject({ code: 'unavailable' })
  await restoreStreams(rig.nats)
  expect(await look()).toMatchObject({ erasures: [], api_keys: [] })
})

// Tenants and their credentials in Postgres: the constraints of the schema for any writer, and the
// behaviour of the connection when the server stops and starts.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { hashApiKey, toApiKey } from '#shared/core/tenants/credentials.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { insertAudit, listAudit } from '#shared/io/postgres/audit-store.ts'
import {
  createPostgres,
  type Postgres,
  PostgresUnavailableError,
  untilPostgresAnswers,
} from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import { tryTenantLease, withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { chooseTelemetryStream } from '#shared/io/tenants/tenant-streams.ts'
import { takeLeaseAway } from '../../support/leases/lost-lease.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const log = createLog('test', 'silent')
const policy = { hash: toPolicyHash(defaultPolicy), text: JSON.stringify(defaultPolicy) }
let server: TestPostgres
let url: string
let postgres: Postgres
let leases: Leases & { waitMs: number }

beforeAll(async () => {
  server = await startPostgres()
  url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log, lockTimeoutMs: 300 })
  leases = { renewals: postgres, work: postgres, waitMs: 300 }
})
afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

let key: string
let tenantId: string
let count = 0

beforeEach(async () => {
  tenantId = `tenant-${++count}`
  key = toApiKey('live', randomBytes(32))
  await postgres.transaction(async (tx) => {
    await createTenantStore(tx).insertTenant({
      tenantId,
      name: 'Acme',
      environment: 'live',
      webhookUrl: null,
      policy,
      createdBy: 'test',
    })
    await createCredentialStore(tx).insertCredentials(tenantId, {
      hmac: { sealed: 'sealed-1', last4: 'aaa1' },
      webhook: { sealed: 'sealed-w1', last4: 'www1' },
      apiKey: { hash: hashApiKey(key), prefix: 'dpk_live_', last4: 'kkk1' },
      installRoot: 'sealed-r1',
      addressKey: 'sealed-a1',
    })
  })
})

const next = { sealed: 'sealed-2', last4: 'aaa2' }
const findEntry = async () => (await createTenantStore(postgres).findProjection(tenantId))!.entry

describe('tenants', () => {
  it('are found by their key, and no longer after its replacement', async () => {
    const store = createTenantStore(postgres)
    expect(await store.findTenantByApiKey(hashApiKey(key))).toEqual({
      tenantId,
      environment: 'live',
      status: 'active',
      restRate: null,
      // The key that comes with a tenant has no name and only reads.
      keyName: null,
      scopes: [],
      lastUsedMs: null,
    })
    const other = toApiKey('live', randomBytes(32))
    await postgres.transaction((tx) =>
      createCredentialStore(tx).replaceApiKey(tenantId, {
        hash: hashApiKey(other),
        prefix: 'dpk_live_',
        last4: other.slice(-4),
      }),
    )
    expect(await store.findTenantByApiKey(hashApiKey(key))).toBeNull()
    expect((await store.findTenantByApiKey(hashApiKey(other)))?.tenantId).toBe(tenantId)
  })

  it('are rejected a second time with tenant_exists', async () => {
    const again = { tenantId, name: '', environment: 'live', webhookUrl: null } as const
    const insert = createTenantStore(postgres).insertTenant({ ...again, policy, createdBy: 'x' })
    await expect(insert).rejects.toMatchObject({ code: 'tenant_exists' })
  })

  it('are created many at once: none waits for another, and each stream gets its share', async () => {
    const { rows } = await postgres.query<{ taken: number }>(
      'select count(*) as taken from tenants',
    )
    const chosen: number[] = []
    const createRest = async (left: number): Promise<void> =>
      postgres.transaction(async (tx) => {
        const stream = await chooseTelemetryStream(tx, 4)
        await insertBareTenants(tx, [`${tenantId}-${left}`], 'live', stream)
        chosen.push(stream)
        // All the others while this one has not ended.
        if (left > 1) await createRest(left - 1)
      })
    // Every tenant of this file has the first stream. The policy of bare ones is there already.
    await insertBareTenants(postgres, [`${tenantId}-bare`])
    await createRest(8)
    expect(rows[0]!.taken).toBeGreaterThanOrEqual(3)
    expect(chosen).toEqual([2, 3, 4, 2, 3, 4, 2, 3])
    expect(await chooseTelemetryStream(postgres, 4)).toBe(4)
  })

  it('are shown without secrets and with the last use of their key', async () => {
    const store = createTenantStore(postgres)
    const atMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
    await store.recordApiKeyUse(hashApiKey(key), atMs)
    await store.recordApiKeyUse(hashApiKey(key), atMs + 59_000)
    await store.recordApiKeyUse(hashApiKey(key), atMs - 1_000_000)
    const view = (await store.findTenant(tenantId))!
    expect(view).toMatchObject({
      tenant_id: tenantId,
      status: 'active',
      webhook_url: null,
      webhook_state: 'off',
      policy_version: 1,
      policy_hash: policy.hash,
      public_api_key: { last4: 'kkk1', last_used_at: '2026-01-02T03:04:05.678Z' },
      hmac_secret: { last4: 'aaa1', state: 'active' },
      webhook_secret: { last4: 'www1' },
    })
    expect(JSON.stringify(view)).not.toContain('sealed')
    expect(await store.listTenants({ limit: 1, after: `${tenantId.slice(0, -1)}` })).toHaveLength(1)
  })

  it('raise their epoch with every change that affects edges, and with no other', async () => {
    const store = createTenantStore(postgres)
    const marker = await store.readMarker()
    expect(await store.setSetting(tenantId, 'status', 'active')).toBe(false)
    await store.setWebhook(tenantId, 'https://example.com/hook')
    expect(await findEntry()).toMatchObject({ epoch: 1, status: 'active' })
    expect(await store.readMarker()).toBe(marker)
    expect(await store.setSetting(tenantId, 'status', 'suspended')).toBe(true)
    expect(await findEntry()).toMatchObject({ epoch: 2, status: 'suspended' })
    expect(await store.readMarker()).not.toBe(marker)
  })

  it('remove everything with them, except the audit log', async () => {
    await insertAudit(postgres, { actor: 'test', tenantId, action: 'tenant.created' })
    await createTenantStore(postgres).removeTenant(tenantId)
    expect(await createTenantStore(postgres).findTenantByApiKey(hashApiKey(key))).toBeNull()
    expect(await listAudit(postgres, { tenantId, limit: 10 })).toHaveLength(1)
  })
})

describe('the constraints of the schema', () => {
  const insertSecret = (state: string) =>
    postgres.query(
      `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
       values ($1, 'hmac', $2, 'x', 'xxxx')`,
      [tenantId, state],
    )

  it('allow one active secret per kind, and no waiting one while it is active', async () => {
    for (const state of ['active', 'off']) {
      await expect(insertSecret(state)).rejects.toMatchObject({
        constraint: 'one_secret_in_use_per_tenant_and_kind',
      })
    }
    await expect(insertSecret('pending')).rejects.toMatchObject({
      constraint: 'a_new_secret_waits_until_the_old_one_is_off',
    })
  })

  it('forbid changing, removing or truncating the audit log', async () => {
    await insertAudit(postgres, {
      actor: 'test',
      tenantId,
      action: 'tenant.rates_set',
      after: { a: 1 },
    })
    for (const sql of [
      "update audit_log set actor = 'y'",
      'delete from audit_log',
      'truncate audit_log',
    ]) {
      await expect(postgres.query(sql)).rejects.toMatchObject({ code: '23001' })
    }
  })
})

describe('rotations', () => {
  it('go from one secret through none to the other', async () => {
    const { epoch } = await postgres.transaction((tx) =>
      createCredentialStore(tx).beginHmacRotation(tenantId, next),
    )
    expect(await findEntry()).toMatchObject({ epoch: 2, hmac_secret_sealed: null })
    expect(await createCredentialStore(postgres).listRotating()).toContain(tenantId)
    const step = await postgres.transaction((tx) =>
      createCredentialStore(tx).finishHmacRotation(tenantId, epoch),
    )
    expect(step).toEqual({ epoch: 3, oldLast4: 'aaa1' })
    expect(await findEntry()).toMatchObject({ epoch: 3, hmac_secret_sealed: 'sealed-2' })
    expect(await createCredentialStore(postgres).listRotating()).not.toContain(tenantId)
  })

  it('are undone exactly to their start, except the epoch', async () => {
    await postgres.transaction((tx) => createCredentialStore(tx).beginHmacRotation(tenantId, next))
    const undo = () =>
      postgres.transaction((tx) => createCredentialStore(tx).undoHmacRotation(tenantId))
    expect(await undo()).toEqual({ epoch: 3, oldLast4: 'aaa1' })
    expect(await findEntry()).toMatchObject({ epoch: 3, hmac_secret_sealed: 'sealed-1' })
    expect(await undo()).toBeNull()
    expect(await findEntry()).toMatchObject({ epoch: 3 })
  })

  it('cannot be finished by a console that was overtaken', async () => {
    const begin = () =>
      postgres.transaction((tx) => createCredentialStore(tx).beginHmacRotation(tenantId, next))
    const first = await begin()
    await begin()
    const late = await postgres.transaction((tx) =>
      createCredentialStore(tx).finishHmacRotation(tenantId, first.epoch),
    )
    expect(late).toBeNull()
    expect(await findEntry()).toMatchObject({ hmac_secret_sealed: null })
  })

  it('keep the newest retired HMAC secret and blank the older ones', async () => {
    for (let n = 2; n <= 4; n++) {
      await postgres.transaction(async (tx) => {
        const store = createCredentialStore(tx)
        const made = { sealed: `sealed-${n}`, last4: `aaa${n}` }
        const { epoch } = await store.beginHmacRotation(tenantId, made)
        await store.finishHmacRotation(tenantId, epoch)
        await store.replaceWebhookSecret(tenantId, { sealed: `sealed-w${n}`, last4: `www${n}` })
      })
    }
    const { rows } = await postgres.query(
      `select kind, state, sealed, last4 from tenant_secrets where tenant_id = $1
       order by kind, secret_id`,
      [tenantId],
    )
    expect(rows.map((row) => Object.values(row).join(' '))).toEqual([
      'hmac retired  aaa1',
      'hmac retired  aaa2',
      'hmac retired sealed-3 aaa3',
      'hmac active sealed-4 aaa4',
      'webhook retired  www1',
      'webhook retired  www2',
      'webhook retired  www3',
      'webhook active sealed-w4 www4',
    ])
  })
})

describe("a tenant's lease", () => {
  it('has one owner at a time, and is a conflict after a long wait', async () => {
    await withTenantLease(leases, tenantId, async () => {
      expect(await tryTenantLease(leases, tenantId, async () => true)).toBeNull()
      await expect(withTenantLease(leases, tenantId, async () => true)).rejects.toMatchObject({
        code: 'conflict',
      })
      expect(await tryTenantLease(leases, `${tenantId}-other`, async () => true)).toBe(true)
    })
    expect(await tryTenantLease(leases, tenantId, async () => true)).toBe(true)
  })

  it('stops an owner who lost it', async () => {
    const holder = withTenantLease(leases, tenantId, async (lease) => {
      await takeLeaseAway(postgres, `tenant:${tenantId}`)
      await lease.query('select 1')
    })
    await expect(holder).rejects.toBeInstanceOf(PostgresUnavailableError)
  })
})

describe('the connection', () => {
  it('survives a killed server: the outage is reported as such, and ends by itself', async () => {
    const working = createPostgres(url, { role: 'test', log, connectTimeoutMs: 1_000 })
    await working.query('select 1')
    const inside = working.transaction(async (tx) => {
      await server.kill('SIGKILL')
      // The process of a connection answers until it notices that its server has ended.
      for (;;) await tx.query('select 1')
    })
    await expect(inside).rejects.toBeInstanceOf(PostgresUnavailableError)
    await expect(working.query('select 1')).rejects.toMatchObject({ code: 'unavailable' })
    expect(await working.checkReady()).toBe('refuses the connection')
    const waiting = untilPostgresAnswers(() => working.query('select 1'), { log })
    await server.restart()
    expect((await waiting).rowCount).toBe(1)
    expect(await working.checkReady()).toBeNull()
    await working.close()
  })

  it('reports a full disk as long as statements hit it, even though reads succeed', async () => {
    const working = createPostgres(url, { role: 'test', log })
    const full = "do $$ begin raise exception 'no space' using errcode = 'disk_full'; end $$"
    await expect(working.query(full)).rejects.toBeInstanceOf(PostgresUnavailableError)
    expect(await working.checkReady()).toBe('has a full disk')
    await until('it is forgotten', async () => (await working.checkReady()) === null)
    await working.close()
  })

  it('detects a paused server, and continues once it is back', async () => {
    const working = createPostgres(url, {
      role: 'test',
      log,
      statementTimeoutMs: 500,
      connectTimeoutMs: 500,
    })
    await working.query('select 1')
    const { rows } = await working.query<{ pid: number }>('select pg_backend_pid() as pid')
    process.kill(rows[0]!.pid, 'SIGSTOP')
    await expect(working.query('select 1')).rejects.toBeInstanceOf(PostgresUnavailableError)
    // The paused connection is not used again.
    expect((await working.query('select 1')).rowCount).toBe(1)
    process.kill(rows[0]!.pid, 'SIGCONT')
    await working.close()
  })

  it('runs a transaction again that lost to a deadlock', async () => {
    const ids = [tenantId, 'deadlock-other']
    await insertBareTenants(postgres, ['deadlock-other'])
    const patient = createPostgres(url, { role: 'test', log })
    let tries = 0
    let locked = 0
    const bothHoldOne = Promise.withResolvers<void>()
    const touch = (order: string[]) =>
      patient.transaction(async (tx) => {
        const lock = (id: string) =>
          tx.query('update tenants set name = name || $2 where tenant_id = $1', [id, '.'])
        tries++
        await lock(order[0]!)
        // A deadlock for certain: each waits for what the other one holds.
        if (++locked === 2) bothHoldOne.resolve()
        await bothHoldOne.promise
        await lock(order[1]!)
      })
    await Promise.all([touch(ids), touch(ids.toReversed())])
    expect(tries).toBeGreaterThanOrEqual(3)
    const found = await patient.query('select name from tenants where tenant_id = $1', [ids[1]])
    expect(found.rows).toEqual([{ name: '..' }])
    await patient.close()
  })
})

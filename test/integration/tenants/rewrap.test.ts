// The rotation of MASTER_KEY while edges verify: every valid request is accepted, no other is, an
// interrupted rotation is finished by a retry, and at the end the new key alone suffices and the
// old one alone fails with a clear reason.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { findProposal, insertProposal, toSealOwner } from '#shared/io/approvals/proposal-store.ts'
import { requestErasure } from '#shared/io/erasure/erasure-job-store.ts'
import { createSealer, toMasterKeys } from '#shared/io/keys/console-keys.ts'
import { createWebhookOpener, toDerivedKey } from '#shared/io/keys/process-keys.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import {
  listTenantsToReproject,
  proveOthersAgain,
} from '#shared/io/tenants/directory/directory-scan.ts'
import { createTenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import {
  createSecretsCheck,
  findSecretsFault,
  listTenantsToRewrap,
  rewrapTenant,
} from '#shared/io/tenants/sealed-secret-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { readConsoleConfig } from '../../../services/console/config.ts'
import { requireMasterKey } from '../../../services/console/keys/require-master-key.ts'
import { type RewrapDeps, rewrapSecrets } from '../../../services/console/keys/rewrap.ts'
import { createDirectoryWriter } from '../../../services/console/tenants/directory.ts'
import {
  type CreatedTenant,
  createTenant,
} from '../../../services/console/tenants/manage-tenants.ts'
import { rotate, undoAbandonedRotations } from '../../../services/console/tenants/rotation.ts'
import {
  type ConsoleRig,
  startConsoleRig,
  type TestEdge,
  testLog,
} from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { nowMs, putSynced, removeTenant } from '../../support/telemetry/edge-rig.ts'

const newKey = () => randomBytes(32).toString('base64')
const actor = 'test'
let rig: ConsoleRig
let edges: TestEdge[]
let tenants: CreatedTenant[]
/** The key of the stored secrets, and its replacement. */
let before: string
let after: string

beforeAll(async () => {
  rig = await startConsoleRig()
})
afterAll(() => rig?.close())

/** A console with these keys. */
function sealedUnder(...keys: [string, ...string[]]): RewrapDeps & ConsoleRig['deps'] {
  const sealer = createSealer(keys)
  return {
    ...rig.deps,
    sealer,
    directory: createDirectoryWriter(() => rig.nats, sealer, nowMs),
    listTenantsToReproject: () => listTenantsToReproject(rig.nats, sealer),
    proveOthersAgain: () => proveOthersAgain(rig.nats, sealer),
  }
}

beforeEach(async () => {
  before = newKey()
  after = newKey()
  const deps = sealedUnder(before)
  await putSynced({ nats: rig.nats, sealer: deps.sealer }, 0)
  edges = await Promise.all([1, 2, 3].map(() => rig.startEdge([before, after])))
  tenants = await Promise.all(
    Array.from({ length: 8 }, () =>
      createTenant(deps, {
        tenantId: `tenant-${randomUUID().slice(0, 8)}`,
        name: '',
        environment: 'sandbox',
        webhookUrl: null,
        actor,
      }),
    ),
  )
  return async () => {
    await Promise.all(
      tenants.map(async ({ tenant_id: tenantId }) => {
        await createTenantStore(rig.postgres).removeTenant(tenantId)
        await removeTenant({ nats: rig.nats, sealer: createSealer([after]) }, tenantId)
      }),
    )
    await Promise.all(edges.map((edge) => edge.close()))
  }
})

async function startEdge(masterKey: string): Promise<TestEdge> {
  const edge = await rig.startEdge([masterKey])
  onTestFinished(edge.close)
  return edge
}

/** Verifies valid and invalid signatures at every edge while it runs. */
function judgeAllTheWhile() {
  let on = true
  let judged = 0
  const wrong: string[] = []
  const run = async () => {
    while (on) {
      for (const { tenant_id, hmac_secret } of tenants) {
        for (const edge of edges) {
          // On a slow machine its lease can run out: it says so, and judges nothing.
          if (!edge.directory.leaseValid()) continue
          const right = edge.judge(tenant_id, hmac_secret)
          if (right !== 'accepted') wrong.push(`${tenant_id}: its own secret is ${right}`)
          const other = edge.judge(
            tenant_id,
            tenants.find((one) => one.tenant_id !== tenant_id)!.hmac_secret,
          )
          if (other !== 'refused') wrong.push(`${tenant_id}: the secret of another is ${other}`)
          judged++
        }
      }
      await pause(1)
    }
  }
  const running = run()
  return {
    end: async () => {
      on = false
      await running
      expect(wrong).toEqual([])
      expect(judged).toBeGreaterThan(20)
    },
  }
}

async function readSealed(tenantId: string) {
  const { rows } = await rig.postgres.query<{
    kind: 'hmac' | 'webhook'
    state: string
    sealed: string
  }>(
    `select kind, state, sealed from tenant_secrets
     where tenant_id = $1 and sealed is not null order by secret_id`,
    [tenantId],
  )
  return rows
}

async function expectNewKeyAlone() {
  const alone = createSealer([after])
  expect(await findSecretsFault(rig.postgres, alone)).toBeNull()
  expect(await listTenantsToRewrap(rig.postgres, alone.currentHeads())).toEqual([])
  for (const { tenant_id, hmac_secret, webhook_secret } of tenants) {
    for (const { kind, state, sealed } of await readSealed(tenant_id)) {
      const secret = alone.unseal(sealed, { tenantId: tenant_id, kind })
      if (state === 'active') expect(secret).toBe(kind === 'hmac' ? hmac_secret : webhook_secret)
    }
  }
  // As the console's next round does.
  await putSynced({ nats: rig.nats, sealer: alone }, 0)
  const edge = await startEdge(after)
  for (const { tenant_id, hmac_secret } of tenants) {
    expect(edge.judge(tenant_id, hmac_secret)).toBe('accepted')
  }
  expect(edge.directory.fault()).toBeNull()
}

describe('sealing again', () => {
  it('keeps every edge verifying correctly; afterwards the new key alone suffices', async () => {
    const judging = judgeAllTheWhile()
    const answer = await rewrapSecrets(sealedUnder(after, before), { actor })
    await judging.end()
    expect(answer).toMatchObject({ already: 0, remaining: 0 })
    expect(answer.rewrapped).toBeGreaterThanOrEqual(2 * tenants.length)
    expect(answer.tenants).toBeGreaterThanOrEqual(tenants.length)
    await expectNewKeyAlone()
    const again = await rewrapSecrets(sealedUnder(after, before), { actor })
    expect(again).toMatchObject({ rewrapped: 0, already: answer.rewrapped, remaining: 0 })
    const projection = createTenantProjection({
      findNats: () => rig.nats,
      sealer: createSealer([after, before]),
      postgres: rig.postgres,
      log: testLog,
      metrics: createMetrics('test'),
      nowMs,
    })
    onTestFinished(projection.stop)
    // Tombstones of tenants that earlier tests removed get new proofs; existing tenants are
    // unchanged.
    await projection.repair()
    expect(await projection.repair()).toBe(0)
  })

  it('gives edges a new epoch, so that no older writer restores the old entry', async () => {
    const { tenant_id: tenantId } = tenants[0]!
    const stale = (await createTenantStore(rig.postgres).findProjection(tenantId))!
    await rewrapSecrets(sealedUnder(after, before), { actor })
    await expect(sealedUnder(after, before).directory.project(stale)).rejects.toMatchObject({
      name: 'StaleEntryError',
    })
    for (const edge of edges) {
      expect(edge.directory.find(tenantId)?.epoch).toBe(stale.entry.epoch + 1)
    }
  })

  it('makes a process with only the old key refuse start and requests, with a reason', async () => {
    await rewrapSecrets(sealedUnder(after, before), { actor })
    const alone = createSealer([before])
    await expect(requireMasterKey(rig.postgres, alone)).rejects.toThrow(
      /MASTER_KEY does not open what is stored/,
    )
    const metrics = createMetrics('delivery')
    const nowMs = () => performance.now()
    const check = createSecretsCheck({
      postgres: rig.postgres,
      opener: createWebhookOpener({ WEBHOOK_KEY: toDerivedKey(before, 'WEBHOOK_KEY') }),
      log: testLog,
      metrics,
      nowMs,
    })
    expect(await check()).toContain('WEBHOOK_KEY')
    expect(await metrics.registry.metrics()).toMatch(/di_master_key_opens_stored\{.*\} 0/)
    const edge = await startEdge(before)
    expect(edge.directory.fault()).toContain('the keys of this edge')
    const [tenant] = tenants
    expect(edge.judge(tenant!.tenant_id, tenant!.hmac_secret)).toBe('refused')
  })

  it('also covers retired, waiting and revoked secrets', async () => {
    const [first, second] = tenants
    const answer = await rotate(sealedUnder(before), {
      hmac: true,
      webhook: false,
      apiKey: false,
      actor,
      tenantId: first!.tenant_id,
    })
    first!.hmac_secret = answer.hmac_secret!
    // A rotation whose console died: one secret revoked, one waiting.
    await rig.postgres.transaction((tx) =>
      createCredentialStore(tx).beginHmacRotation(second!.tenant_id, {
        sealed: createSealer([before]).seal('x', { tenantId: second!.tenant_id, kind: 'hmac' }),
        last4: 'xxxx',
      }),
    )
    const done = await rewrapSecrets(sealedUnder(after, before), { actor })
    expect(done.remaining).toBe(0)
    const states = (await readSealed(first!.tenant_id)).map(({ state }) => state)
    expect(states.sort()).toEqual(['active', 'active', 'retired'])
    const waiting = (await readSealed(second!.tenant_id)).map(({ state }) => state)
    expect(waiting.sort()).toEqual(['active', 'off', 'pending'])
    expect(await undoAbandonedRotations(sealedUnder(after))).toBe(1)
    await until('the undone rotation is at the edges', () =>
      edges.every((edge) => edge.judge(second!.tenant_id, second!.hmac_secret) === 'accepted'),
    )
    await expectNewKeyAlone()
  })

  it('covers ids of unfinished and of proposed erasures, except one that no key opens', async () => {
    const tenantId = tenants[0]!.tenant_id
    const request = (erasureId: string, key: string) =>
      requestErasure(rig.postgres, createSealer([key]), {
        subject: { tenantId, kind: 'device', id: erasureId },
        waitingMax: 10,
        erasureId,
        actor,
      })
    await request('era_1', before)
    await request('era_2', newKey())
    const proposalId = `prp_${randomUUID()}`
    await insertProposal(rig.postgres, createSealer([before]), {
      proposalId,
      tenantId,
      kind: 'erasure',
      parameters: { subject: 'user' },
      base: {},
      reason: 'why',
      author: actor,
      days: 1,
      openMax: 1,
      subject: { kind: 'user', id: 'proposed', sha256: 'hash' },
    })
    const done = await rewrapSecrets(sealedUnder(after, before), { actor })
    expect(done.remaining).toBe(1)
    const { rows } = await rig.postgres.query<{ sealed: string }>(
      `select sealed from erasures where tenant_id = $1 and erasure_id = 'era_1'`,
      [tenantId],
    )
    const owner = { erasureId: 'era_1', kind: 'subject' } as const
    expect(createSealer([after]).unseal(rows[0]!.sealed, owner)).toBe('era_1')
    const proposal = await findProposal(rig.postgres, { tenantId, proposalId })
    const opened = createSealer([after]).unseal(proposal!.sealed!, toSealOwner(proposalId))
    expect(opened).toBe('proposed')
    await rig.postgres.query('delete from proposals where tenant_id = $1', [tenantId])
    await rig.postgres.query('delete from erasures where tenant_id = $1', [tenantId])
    await expectNewKeyAlone()
  })

  it('is finished by a retry after an interruption between Postgres and the edges', async () => {
    const judging = judgeAllTheWhile()
    const { directory } = sealedUnder(after, before)
    let calls = 0
    const cut: RewrapDeps = {
      ...sealedUnder(after, before),
      directory: {
        ...directory,
        project: async (projection) => {
          if (++calls > 2) throw new Error('timeout')
          return directory.project(projection)
        },
      },
    }
    await expect(rewrapSecrets(cut, { actor })).rejects.toMatchObject({ code: 'unavailable' })
    const done =
      tenants.length -
      (await listTenantsToRewrap(rig.postgres, createSealer([after]).currentHeads())).length
    expect(done).toBeGreaterThan(2)
    expect(done).toBeLessThan(tenants.length)
    const answer = await rewrapSecrets(sealedUnder(after, before), { actor })
    expect(answer.remaining).toBe(0)
    expect(answer.already).toBeGreaterThan(0)
    await judging.end()
    await expectNewKeyAlone()
  })

  it('reports the remaining tenants when it runs out of time', async () => {
    const answer = await rewrapSecrets(sealedUnder(after, before), { actor, callMs: 0 })
    expect(answer).toMatchObject({ rewrapped: 0 })
    expect(answer.remaining).toBeGreaterThanOrEqual(tenants.length)
  })

  it('by two concurrent consoles seals each secret again once', async () => {
    const judging = judgeAllTheWhile()
    const deps = sealedUnder(after, before)
    const pending = await rig.postgres.query<{ n: number }>(
      `select (select count(*) from tenant_secrets where sealed is not null)
           + (select count(*) from install_roots where sealed is not null)
           + (select count(*) from address_keys) as n`,
    )
    const answers = await Promise.all([1, 2].map(() => rewrapSecrets(deps, { actor })))
    await judging.end()
    expect(answers.map(({ remaining }) => remaining)).toEqual([0, 0])
    const rewrapped = answers[0]!.rewrapped + answers[1]!.rewrapped
    expect(rewrapped).toBe(pending.rows[0]!.n)
    await expectNewKeyAlone()
  })

  it('beside rotations keeps their answers valid, under the new key', async () => {
    const deps = sealedUnder(after, before)
    const [answer, ...rotated] = await Promise.all([
      rewrapSecrets(deps, { actor }),
      ...tenants.map(({ tenant_id: tenantId }) =>
        rotate(deps, { hmac: true, webhook: false, apiKey: false, tenantId, actor }),
      ),
    ])
    expect(answer.remaining).toBe(0)
    for (const [at, { hmac_secret }] of rotated.entries()) tenants[at]!.hmac_secret = hmac_secret!
    for (const { tenant_id, hmac_secret } of tenants) {
      for (const edge of edges) expect(edge.judge(tenant_id, hmac_secret)).toBe('accepted')
    }
    await expectNewKeyAlone()
  })

  it('is in the audit log with counts alone, and no secret', async () => {
    const answer = await rewrapSecrets(sealedUnder(after, before), { actor })
    const { rows } = await rig.postgres.query<{ tenant_id: string | null; after: object }>(
      "select tenant_id, after from audit_log where action = 'secrets.rewrapped' order by audit_id",
    )
    const { duration_ms: _, ...counts } = answer
    expect(rows.at(-1)).toEqual({
      tenant_id: null,
      after: { ...counts, key_id: createSealer([after]).keyId },
    })
    const own = rows.filter((row) => row.tenant_id === tenants[0]!.tenant_id)
    expect(own.map((row) => row.after)).toEqual([{ rewrapped: 4 }])
  })

  it('leaves a secret that no key opens unchanged, and reports its tenant', async () => {
    const { tenant_id: tenantId } = tenants[0]!
    const lost = createSealer([newKey()]).seal('lost', { tenantId, kind: 'webhook' })
    const swap = (sealed: string) =>
      rig.postgres.query<{ sealed: string }>(
        `update tenant_secrets as s set sealed = $2 from tenant_secrets as old
         where s.tenant_id = $1 and s.kind = 'webhook' and old.secret_id = s.secret_id
         returning old.sealed`,
        [tenantId, sealed],
      )
    const { rows } = await swap(lost)
    const answer = await rewrapSecrets(sealedUnder(after, before), { actor })
    expect(answer.remaining).toBe(1)
    expect((await readSealed(tenantId)).map(({ sealed }) => sealed)).toContain(lost)
    await swap(rows[0]!.sealed)
    expect((await rewrapSecrets(sealedUnder(after, before), { actor })).remaining).toBe(0)
    await expectNewKeyAlone()
  })

  it('is rolled back when one secret of a tenant cannot be opened', async () => {
    const [one, other] = tenants
    const moved = (await readSealed(one!.tenant_id)).find(({ kind }) => kind === 'webhook')!.sealed
    const sealer = createSealer([after, before])
    const tampered = rig.postgres.transaction(async (tx) => {
      await tx.query(
        "update tenant_secrets set sealed = $2 where tenant_id = $1 and kind = 'webhook'",
        [other!.tenant_id, moved],
      )
      return rewrapTenant(tx, sealer, { tenantId: other!.tenant_id, actor })
    })
    // A secret that was moved to another tenant is never sealed for that one.
    await expect(tampered).rejects.toMatchObject({ name: 'UnsealError' })
    for (const { sealed } of await readSealed(other!.tenant_id)) {
      expect(createSealer([before]).isCurrent(sealed)).toBe(true)
    }
  })
})

describe('an entry at the edges', () => {
  it('that is still sealed under the old key is detected and repaired', async () => {
    const { tenant_id: tenantId, hmac_secret: secret } = tenants[0]!
    const bucket = await openTenantsBucket(rig.nats)
    const old = (await bucket.get(tenantKey(tenantId)))!.string()
    await rewrapSecrets(sealedUnder(after, before), { actor })
    await bucket.put(tenantKey(tenantId), old)
    expect((await rewrapSecrets(sealedUnder(after, before), { actor })).remaining).toBe(0)
    const edge = await startEdge(after)
    expect(edge.judge(tenantId, secret)).toBe('accepted')
  })
})

describe('the configuration', () => {
  const env = (more: object) => ({
    MASTER_KEY: after,
    ADMIN_TOKEN: 'x'.repeat(32),
    ...more,
  })

  it('accepts a key before the current one, which unseals and never seals', () => {
    const config = readConsoleConfig(env({ MASTER_KEY_PREVIOUS: before }))
    expect(toMasterKeys(config)).toEqual([after, before])
    expect(toMasterKeys(readConsoleConfig(env({ MASTER_KEY_PREVIOUS: '' })))).toEqual([after])
    const sealer = createSealer(toMasterKeys(config))
    const owner = { tenantId: 'acme', kind: 'hmac' } as const
    expect(sealer.unseal(createSealer([before]).seal('s', owner), owner)).toBe('s')
    expect(createSealer([after]).isCurrent(sealer.seal('s', owner))).toBe(true)
  })

  it('rejects an invalid key without repeating it', () => {
    const start = () => readConsoleConfig(env({ MASTER_KEY_PREVIOUS: 'short-secret' }))
    expect(start).toThrow(/MASTER_KEY_PREVIOUS must be 32 bytes/)
    expect(start).not.toThrow(/short-secret/)
  })
})

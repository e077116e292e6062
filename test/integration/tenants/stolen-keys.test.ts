// Whoever has all keys of one process besides the console, and writes any bucket in NATS, can forge
// nothing that a console says: edges refuse it, Postgres stays as it is, and nothing is erased.
import { hash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type DerivedKey, processKeys } from '#shared/core/permissions/process-keys.ts'
import { removalsBucket, tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { listKey, policyKey, syncedKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { createEdgeKeys } from '#shared/io/keys/edge-keys.ts'
import { createWebhookOpener, readEdgeKeys, toDerivedKey } from '#shared/io/keys/process-keys.ts'
import { createProver, deriveKey, type KeyPurpose, type Prover } from '#shared/io/keys/proofs.ts'
import { createOpener, type SecretOwner, secretKinds } from '#shared/io/keys/sealed-secrets.ts'
import { createSigner } from '#shared/io/keys/signatures.ts'
import { openRemovalsBucket, openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { encodeReport } from '#shared/io/tenants/directory/kv-reporter.ts'
import { type Removal, readRemovals, toRemovalKey } from '#shared/io/tenants/removal-list.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { readRecovery } from '../../../services/console/recovery/read-recovery.ts'
import {
  type CreatedTenant,
  createTenant,
  setTenantStatus,
} from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, startConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: ConsoleRig
let edge: TestEdge
/** Suspended, and with a replaced secret. */
let suspended: CreatedTenant
let rotated: CreatedTenant

beforeAll(async () => {
  rig = await startConsoleRig()
  const create = (tenantId: string) =>
    createTenant(rig.deps, {
      tenantId,
      name: '',
      environment: 'live',
      webhookUrl: null,
      actor: 'test',
    })
  suspended = await create('suspended')
  rotated = await create('rotated')
  await setTenantStatus(rig.deps, { tenantId: 'suspended', status: 'suspended', actor: 'test' })
  const only = { hmac: true, webhook: false, apiKey: false }
  await rotate(rig.deps, { tenantId: 'rotated', actor: 'test', ...only })
  edge = await rig.startEdge()
})
afterAll(() => rig?.close())
beforeEach(settle)

async function settle(): Promise<void> {
  await until('Postgres and the edges are equal', async () => {
    const written = await rig.projection.repair()
    return written === 0 && (await rig.projection.repair()) === 0
  })
}

const thieves = (['ingest', 'scorer', 'delivery'] as const).map((process) => ({ process }))

/** The keys that the table gives to a process. */
const keysOf = (process: 'ingest' | 'scorer' | 'delivery') =>
  (Object.keys(processKeys[process]) as DerivedKey[]).map((name) =>
    toDerivedKey(rig.masterKey, name),
  )

const purposes: KeyPurpose[] = [
  ...(['directory entry', 'edge announcement', 'edge report', 'telemetry batch'] as const),
  ...(['request log', 'removal', 'console analyst', 'sign-in attempt'] as const),
  ...(['directory signature', 'edge', 'hmac secret', 'webhook secret'] as const),
  ...(['totp secret', 'erasure subject', 'rotated credentials'] as const),
]

/** Every key that can be made from some keys: they themselves, and what derives from them. */
const derivable = (keys: readonly string[]) => [
  ...keys,
  ...keys.flatMap((key) => purposes.map((purpose) => deriveKey(key, purpose))),
]

/** Everything that could prove something, made from some keys. */
const toForgers = (keys: readonly string[]): Prover[] =>
  derivable(keys).flatMap((key) => [createProver([key]), createSigner([key])])

/** Everything that Postgres has of tenants, keys and erasures. */
async function readPostgres(): Promise<string> {
  const tables = ['tenants', 'tenant_secrets', 'tenant_policies', 'api_keys', 'webhooks']
  const texts = await Promise.all(
    [...tables, 'erasures', 'recovered_erasures', 'audit_log'].map(async (table) => {
      const { rows } = await rig.postgres.query(`select * from ${table} as t order by t::text`)
      return JSON.stringify(rows)
    }),
  )
  return texts.join('\n')
}

/** Writes an entry of the directory at the revision that its proof names. */
async function forge(forger: Prover, key: string, value: object): Promise<void> {
  const { created, state } = await rig.nats.manager.streams.info(`KV_${tenantsBucket}`)
  const text = JSON.stringify(value)
  const revision = state.last_seq + 1
  const proof = forger.prove([String(created), key, revision], text)
  const written = await rig.nats.jetstream.publish(
    `$KV.${tenantsBucket}.${key}`,
    `${proof}\n${text}`,
  )
  // An announcement may have taken the revision; the proof is then wrong for that reason alone.
  if (written.seq !== revision) await forge(forger, key, value)
}

describe.each(thieves)('with the keys of $process', ({ process }) => {
  it('no entry of the directory can be forged', async () => {
    const before = await readPostgres()
    const [dead, alive] = await Promise.all(
      ['suspended', 'rotated'].map(
        async (tenantId) => (await createTenantStore(rig.postgres).findProjection(tenantId))!,
      ),
    )
    const newer = { epoch: 1_000_000, status: 'active' } as const
    const old = await rig.postgres.query<{ sealed: string }>(
      `select sealed from tenant_secrets where tenant_id = 'rotated' and state = 'retired'`,
    )
    const bucket = await openTenantsBucket(rig.nats)
    for (const forger of toForgers(keysOf(process))) {
      await forge(forger, tenantKey('suspended'), { ...dead!.entry, ...newer })
      const revived = { ...alive!.entry, ...newer, hmac_secret_sealed: old.rows[0]!.sealed }
      await forge(forger, tenantKey('rotated'), revived)
      await forge(forger, tenantKey('made-up'), { ...alive!.entry, tenant_id: 'made-up' })
      const shard = { tenant_id: 'rotated', shard: 0, version: 1_000_000, entries: [] }
      await forge(forger, listKey('rotated', 0), shard)
      await forge(forger, syncedKey, { tenants: 0 })
    }
    await bucket.put(policyKey(alive!.policy.hash), '{"schema":1,"name":"loose"}')
    await until('the edge has applied it', () => !edge.directory.synced())
    const { directory } = edge
    expect(directory.find('suspended')?.fault).toBe('unproven_entry')
    expect(directory.find('rotated')?.fault).toBe('unproven_entry')
    expect(directory.find('made-up')?.fault).toBe('unproven_entry')
    expect(edge.judge('suspended', suspended.hmac_secret)).toBe('refused')
    expect(edge.judge('rotated', rotated.hmac_secret)).toBe('refused')
    await settle()
    expect(await readPostgres()).toBe(before)
    expect(rig.projection.countAhead()).toBe(0)
    expect(directory.find('suspended')?.status).toBe('suspended')
    expect(edge.judge('rotated', rotated.hmac_secret)).toBe('refused')
  })

  it('no removal can be forged, and nothing is to be recovered', async () => {
    const before = await readPostgres()
    const sha256 = hash('sha256', 'phone', 'hex')
    const { rows } = await rig.postgres.query<{ hash: string }>(
      `select encode(key_hash, 'hex') as hash from api_keys where tenant_id = 'rotated'`,
    )
    const at = new Date().toISOString()
    const forged: Removal[] = [
      { kind: 'api_key', tenant_id: 'rotated', sha256: rows[0]!.hash },
      { kind: 'webhook', tenant_id: 'rotated', secret_id: 1_000_000 },
      { kind: 'erasure', tenant_id: 'rotated', subject: 'device', sha256, started_at: at },
    ]
    const bucket = await openRemovalsBucket(rig.nats)
    for (const forger of toForgers(keysOf(process))) {
      for (const removal of forged) {
        const key = toRemovalKey(removal)
        await bucket.put(key, encodeReport(forger, { bucketName: removalsBucket, key }, removal))
        const listed = await readRemovals(rig.nats, rig.deps.sealer.proverOf('removal'))
        expect(listed.has(key)).toBe(false)
      }
    }
    const recovery = await readRecovery({ ...rig.deps, nats: rig.nats })
    const { tenants, api_keys, webhooks, erasures } = recovery
    expect({ tenants, api_keys, webhooks, erasures }).toEqual({
      tenants: [],
      api_keys: [],
      webhooks: [],
      erasures: [],
    })
    expect(await readPostgres()).toBe(before)
  })

  it('no secret opens but those of its own kind', () => {
    const own = { ingest: 'hmac', scorer: null, delivery: 'webhook' }[process]
    const keys = derivable(keysOf(process))
    const opener = createOpener(() => ({ v1: keys, v2: keys }))
    const opened = secretKinds.filter((kind) => {
      const owner = { tenantId: 'acme', operatorId: 'acme', erasureId: 'acme', kind } as SecretOwner
      const sealed = rig.deps.sealer.seal('secret', owner)
      try {
        return opener.unseal(sealed, owner) === 'secret'
      } catch {
        return false
      }
    })
    expect(opened).toEqual(own === null ? [] : [own])
  })

  it('no password of the console’s analyst and no sign-in attempt can be made', () => {
    for (const purpose of ['console analyst', 'sign-in attempt'] as const) {
      const right = rig.deps.sealer.proverOf(purpose)
      for (const forger of toForgers(keysOf(process))) {
        expect(right.isProven(forger.prove(['acme', 1], ''), ['acme', 1], '')).toBe(false)
      }
    }
  })
})

describe('a process', () => {
  const seal = (kind: 'hmac' | 'webhook') =>
    [
      rig.deps.sealer.seal('secret', { tenantId: 'acme', kind }),
      { tenantId: 'acme', kind },
    ] as const

  it('of delivery opens webhook secrets and no others', () => {
    const opener = createWebhookOpener({ WEBHOOK_KEY: toDerivedKey(rig.masterKey, 'WEBHOOK_KEY') })
    expect(opener.unseal(...seal('webhook'))).toBe('secret')
    expect(() => opener.unseal(...seal('hmac'))).toThrow('no key of its kind')
  })

  it('of ingest opens HMAC secrets and no others, and signs nothing', () => {
    const of = (name: DerivedKey) => ({ [name]: toDerivedKey(rig.masterKey, name) })
    const config = { ...of('DIRECTORY_PUBLIC_KEY'), ...of('EDGE_KEY'), ...of('TELEMETRY_KEY') }
    const keys = createEdgeKeys(readEdgeKeys(config))
    expect(keys.unseal(...seal('hmac'))).toBe('secret')
    expect(() => keys.unseal(...seal('webhook'))).toThrow('no key of its kind')
    expect(keys.entries).not.toHaveProperty('prove')
  })

  it('with another key of its own has no valid keys at all', () => {
    const other = randomBytes(32).toString('base64')
    const opener = createWebhookOpener({ WEBHOOK_KEY: other })
    expect(() => opener.unseal(...seal('webhook'))).toThrow('sealed under another key')
  })
})

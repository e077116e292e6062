// Policy documents in the tenant directory: those in use, and no earlier ones.
import type { KvEntry } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { policyKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { listKeys, readEntries } from '#shared/io/nats/kv-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { createUnusedPolicies } from '#shared/io/tenants/directory/unused-policies.ts'
import { setTenantPolicy } from '../../../services/console/policies/manage-policies.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { type ConsoleRig, startConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

const versions = 100

let rig: ConsoleRig
let edge: TestEdge

beforeAll(async () => {
  rig = await startConsoleRig(undefined, { unusedPolicyMs: 300 })
  edge = await rig.startEdge()
  for (const tenantId of ['acme', 'globex']) {
    const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
    await createTenant(rig.deps, { ...made, tenantId })
  }
})
afterAll(() => rig?.close())

const policyKeys = () => listKeys(rig.nats, 'tenants', policyKey('*'))

async function readHash(tenantId: string): Promise<string> {
  const entry = await (await openTenantsBucket(rig.nats)).get(tenantKey(tenantId))
  return /"policy_hash":\s*\\?"([^"\\]+)/.exec(entry!.string())![1]!
}

const setVersion = (tenantId: string, version: number) =>
  setTenantPolicy(rig.deps, {
    tenantId,
    document: { ...defaultPolicy, name: `version ${version}` },
    actor: 'test',
  })

it('as many documents as are in use remain after a hundred versions, at edges and in the bucket', {
  timeout: 240_000,
}, async () => {
  const before = await setVersion('acme', -1)
  for (let version = 0; version < versions; version++) {
    const { policy_hash: hash } = await setVersion('acme', version)
    if (version % 33 === 0) await rig.projection.repair()
    expect(edge.directory.find('acme')?.policyHash).toBe(hash)
    expect(edge.directory.find('acme')?.policy).not.toBeNull()
  }
  const inUse = [await readHash('acme'), await readHash('globex')].map(policyKey)
  await until('only policies in use are left, and no marker of the others', async () => {
    await rig.projection.repair()
    const keys = await policyKeys()
    return keys.length === 2 && inUse.every((key) => keys.includes(key))
  })
  expect(await rig.projection.repair()).toBe(0)
  expect(edge.directory.countPolicies()).toEqual({ documents: 2, compiled: 2 })
  // Events in transit are decided by documents from Postgres.
  const documents = createPolicyDocuments(rig.postgres)
  expect((await documents.findPolicy(before.policy_hash))?.name).toBe('version -1')
})

it('documents come back when a tenant uses an earlier one again', async () => {
  const { policy_hash: earlier } = await setVersion('acme', 7)
  expect(edge.directory.find('acme')).toMatchObject({ policyHash: earlier, fault: null })
  expect(edge.directory.find('acme')?.policy?.hash).toBe(earlier)
})

/** The removal by a console that listed the entries before the change. */
async function removeAsSeen(held: Map<string, KvEntry>, inUse: string[]): Promise<number> {
  const bucket = await openTenantsBucket(rig.nats)
  const { remove } = createUnusedPolicies(0, () => performance.now())
  return await remove({ nats: rig.nats, bucket, held }, new Set(inUse))
}

const look = async () => ({
  held: await readEntries(rig.nats, await openTenantsBucket(rig.nats), policyKey('*')),
  inUse: [await readHash('acme'), await readHash('globex')],
})

it('documents stay when they come into use while a console removes them', async () => {
  const { policy_hash: first } = await setVersion('acme', 1)
  await setVersion('acme', 2)
  const { held, inUse } = await look()
  expect(held.get(policyKey(first))?.operation).toBe('PUT')
  await setVersion('acme', 1)
  await removeAsSeen(held, inUse)
  expect(await policyKeys()).toContain(policyKey(first))
  expect((await look()).held.get(policyKey(first))?.operation).toBe('PUT')
  expect(edge.directory.find('acme')).toMatchObject({ policyHash: first, fault: null })
})

it('documents stay when they come into use while a console purges their marker', async () => {
  const { policy_hash: first } = await setVersion('acme', 3)
  await setVersion('acme', 4)
  await removeAsSeen((await look()).held, (await look()).inUse)
  const { held, inUse } = await look()
  expect(held.get(policyKey(first))?.operation).toBe('DEL')
  await setVersion('acme', 3)
  await removeAsSeen(held, inUse)
  expect((await look()).held.get(policyKey(first))?.operation).toBe('PUT')
})

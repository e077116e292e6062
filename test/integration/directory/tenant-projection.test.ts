// The projection of the tenant directory: after any damage in NATS it equals Postgres again after
// one or two rounds, and a repair never undoes a concurrent change.
import { randomUUID } from 'node:crypto'
import type { KV } from 'nats'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { leaseMarginMs, leaseMs } from '#shared/core/base/limits/tenants.ts'
import {
  policyKey,
  syncedKey,
  type TenantEntry,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { openDirectory, readProven } from '#shared/io/tenants/directory/directory-entries.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createTenant, setTenantStatus } from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, startConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { removeTenant } from '../../support/telemetry/edge-rig.ts'

let rig: ConsoleRig
let bucket: KV
let edge: TestEdge
let tenantId: string
let secret: string

beforeAll(async () => {
  rig = await startConsoleRig()
  edge = await rig.startEdge()
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
  secret = (await createTenant(rig.deps, { ...made, tenantId })).hmac_secret
  bucket = await openTenantsBucket(rig.nats)
})

async function readText(key: string): Promise<string | null> {
  const entry = await bucket.get(key)
  if (entry === null || entry.operation !== 'PUT') return null
  if (key.startsWith(policyKey(''))) return entry.string()
  return readProven(await openDirectory(rig.nats, rig.deps.sealer), entry)?.text ?? null
}
const readEntry = async () =>
  JSON.parse((await readText(tenantKey(tenantId))) ?? 'null') as TenantEntry

const countTenants = () => createTenantStore(rig.postgres).countTenants()

const expected = async () => (await createTenantStore(rig.postgres).findProjection(tenantId))!

async function repaired(): Promise<void> {
  await until('the projection equals Postgres', async () => {
    await rig.projection.repair()
    const { entry, policy } = await expected()
    return (
      (await readText(tenantKey(tenantId))) === JSON.stringify(entry) &&
      (await readText(policyKey(policy.hash))) === policy.text
    )
  })
  await until('the edge serves the tenant', () => edge.judge(tenantId, secret) === 'accepted')
}

describe('the projection', () => {
  it('is unchanged while it is correct', async () => {
    await rig.projection.repair()
    expect(await rig.projection.repair()).toBe(0)
    expect(await rig.projection.repair()).toBe(0)
  })

  it('restores a removed entry', async () => {
    await bucket.delete(tenantKey(tenantId))
    await repaired()
    await removeTenant({ nats: rig.nats, sealer: rig.deps.sealer }, tenantId)
    await repaired()
  })

  it('restores an edited entry, with any epoch in the edit', async () => {
    const entry = await readEntry()
    const forged = { ...entry, epoch: 999, status: 'suspended' }
    await bucket.put(tenantKey(tenantId), JSON.stringify(forged))
    await until('the edge follows the bucket', () => edge.judge(tenantId, secret) === 'refused')
    await repaired()
  })

  it('restores an entry and a policy that are not even JSON', async () => {
    const { policy } = await expected()
    await bucket.put(tenantKey(tenantId), 'x')
    await bucket.put(policyKey(policy.hash), '{}')
    await repaired()
  })

  it('removes an entry whose tenant is not in Postgres', async () => {
    const entry = { ...(await readEntry()), tenant_id: 'left-over' }
    await bucket.put(tenantKey('left-over'), JSON.stringify(entry))
    await until('the entry is gone', async () => {
      await rig.projection.repair()
      return (await readText(tenantKey('left-over'))) === 'null'
    })
  })

  it('is created again when the whole bucket is destroyed', async () => {
    await bucket.destroy()
    await repaired()
  })

  it('is filled again when its stream is purged, of which no watch is notified', async () => {
    await rig.nats.manager.streams.purge('KV_tenants')
    await repaired()
  })

  it('of a lost bucket is marked as synced once every earlier lease has expired', async () => {
    await repaired()
    const startMs = performance.now()
    await bucket.destroy()
    await until('the edge has noticed', () => !edge.directory.leaseValid())
    await repaired()
    expect(edge.directory.synced()).toBe(false)
    await until('the edge knows that all is there', async () => {
      await rig.projection.repair()
      return edge.directory.synced()
    })
    expect(performance.now() - startMs).toBeGreaterThan(leaseMs + leaseMarginMs)
    expect(JSON.parse((await readText(syncedKey))!)).toEqual({ tenants: await countTenants() })
  })

  it('keeps its claimed number of tenants correct, after any damage', async () => {
    const isRight = async () => {
      await rig.projection.repair()
      const synced = JSON.parse((await readText(syncedKey)) ?? '{}') as { tenants?: number }
      return synced.tenants === (await countTenants())
    }
    await until('the number is right', isRight)
    for (const text of ['{"tenants":99999}', '{"tenants":0}', 'x', '[]']) {
      await bucket.put(syncedKey, text)
      await until('the number is right again', isRight)
      await until('the edge has all', edge.directory.synced)
    }
    await bucket.delete(syncedKey)
    await until('the number is back', isRight)
    // One tenant fewer: the number changes before its entry is removed, so that the edge detects no
    // loss.
    await rig.postgres.transaction(async (tx) => {
      await createTenantStore(tx).removeTenant(tenantId)
      await insertAudit(tx, { actor: 'test', tenantId, action: 'tenant.creation_undone' })
    })
    let missed = false
    const watching = setInterval(() => {
      missed ||= !edge.directory.synced()
    }, 1)
    await until('the tenant is gone', async () => {
      await rig.projection.repair()
      return edge.directory.find(tenantId) === undefined
    })
    clearInterval(watching)
    expect(missed).toBe(false)
    await until('the number is right', isRight)
  })

  it('is compared while changes run, which do not count as faults', async () => {
    let repairs = 0
    let changing = true
    const repair = async () => {
      while (changing) {
        repairs += await rig.projection.repair()
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    await repaired()
    const repairing = repair()
    for (let n = 0; n < 5; n++) {
      await setTenantStatus(rig.deps, { tenantId, status: 'suspended', actor: 'test' })
      await setTenantStatus(rig.deps, { tenantId, status: 'active', actor: 'test' })
      const request = { tenantId, actor: 'test', hmac: true, webhook: false, apiKey: false }
      secret = (await rotate(rig.deps, request)).hmac_secret!
      expect(edge.judge(tenantId, secret)).toBe('accepted')
    }
    changing = false
    await repairing
    expect(repairs).toBe(0)
  })

  it('shows the revision that each edge has applied', async () => {
    await until('the edge is listed as current', async () => {
      const { revision, edges } = await rig.deps.listEdges()
      return edges.length === 1 && edges[0]!.applied_revision >= revision
    })
  })
})

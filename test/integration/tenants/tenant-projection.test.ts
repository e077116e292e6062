// The tenant directory's projection: whatever happens to it in NATS, it is equal to Postgres again
// after a look or two, and a repair never undoes what a change has just written.
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
import { openDirectory, readProven } from '#shared/io/tenants/directory/directory-entries.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createTenant, setTenantStatus } from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, createConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { removeTenant } from '../../support/telemetry/edge-rig.ts'

let servers: { postgres: TestPostgres; nats: TestNats }
let rig: ConsoleRig
let bucket: KV
let edge: TestEdge
let tenantId: string
let secret: string

beforeAll(async () => {
  const [postgres, nats] = await Promise.all([startPostgres(), startNats()])
  servers = { postgres, nats }
  rig = await createConsoleRig(servers)
  edge = await rig.startEdge()
})
afterAll(async () => {
  await rig?.close()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})
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
  it('is left alone while it is right', async () => {
    await rig.projection.repair()
    expect(await rig.projection.repair()).toBe(0)
    expect(await rig.projection.repair()).toBe(0)
  })

  it('gets back an entry that was removed', async () => {
    await bucket.delete(tenantKey(tenantId))
    await repaired()
    await removeTenant({ nats: rig.nats, sealer: rig.deps.sealer }, tenantId)
    await repaired()
  })

  it('gets back what an entry said before it was edited, whatever epoch the edit claims', async () => {
    const entry = await readEntry()
    const forged = { ...entry, epoch: 999, status: 'suspended' }
    await bucket.put(tenantKey(tenantId), JSON.stringify(forged))
    await until('the edge follows the bucket', () => edge.judge(tenantId, secret) === 'refused')
    await repaired()
  })

  it('gets back an entry and a policy that are not even JSON', async () => {
    const { policy } = await expected()
    await bucket.put(tenantKey(tenantId), 'x')
    await bucket.put(policyKey(policy.hash), '{}')
    await repaired()
  })

  it('loses an entry whose tenant is not in Postgres', async () => {
    const entry = { ...(await readEntry()), tenant_id: 'left-over' }
    await bucket.put(tenantKey('left-over'), JSON.stringify(entry))
    await until('the entry is gone', async () => {
      await rig.projection.repair()
      return (await readText(tenantKey('left-over'))) === 'null'
    })
  })

  it('is made anew when the whole bucket is destroyed', async () => {
    await bucket.destroy()
    await repaired()
  })

  it('is filled again when its stream is purged, which no watch is told of', async () => {
    await rig.nats.manager.streams.purge('KV_tenants')
    await repaired()
  })

  it('of a lost bucket is called whole once every lease from before has run out', async () => {
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

  it('keeps the number of tenants that it says it has right, whatever becomes of it', async () => {
    const isRight = async () => {
      await rig.projection.repair()
      const said = JSON.parse((await readText(syncedKey)) ?? '{}') as { tenants?: number }
      return said.tenants === (await countTenants())
    }
    await until('the number is right', isRight)
    for (const text of ['{"tenants":99999}', '{"tenants":0}', 'x', '[]']) {
      await bucket.put(syncedKey, text)
      await until('the number is right again', isRight)
      await until('the edge has all', edge.directory.synced)
    }
    await bucket.delete(syncedKey)
    await until('the number is back', isRight)
    // One tenant fewer: said before its entry goes, so that the edge misses nothing meanwhile.
    await createTenantStore(rig.postgres).removeTenant(tenantId)
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

  it('is compared in time with changes, which are not mistaken for faults', async () => {
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

  it('shows which edge has applied what', async () => {
    await until('the edge is listed as current', async () => {
      const { revision, edges } = await rig.deps.listEdges()
      return edges.length === 1 && edges[0]!.applied_revision >= revision
    })
  })
})

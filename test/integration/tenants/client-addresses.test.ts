/**
 * Which address of a tenant's clients counts, whether events keep it, and the key of its hash: at
 * every edge when a call returns, sealed everywhere else, and gone with its tenant.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { recoverTenant } from '#shared/io/recovery/recover-tenant.ts'
import { rewrapTenant } from '#shared/io/tenants/sealed-secret-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { addAddressKeys } from '../../../services/console/tenants/addresses/address-keys.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import {
  type ConsoleRig,
  startConsoleRig,
  type TestEdge,
  testLog,
} from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

const adminToken = randomBytes(32).toString('base64url')
const newMasterKey = randomBytes(32).toString('base64')
let rig: ConsoleRig
let edges: TestEdge[]
let app: FastifyInstance
let tenantId: string

beforeAll(async () => {
  rig = await startConsoleRig()
  edges = await Promise.all([1, 2].map(() => rig.startEdge([rig.masterKey, newMasterKey])))
  const deps = {
    ...rig.deps,
    adminToken,
    slowedMs: 10,
  }
  app = await createConsoleApp(deps, { log: testLog, metrics: createMetrics('console') })
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
})
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  expect((await call('POST', '/tenants', { tenant_id: tenantId })).status).toBe(201)
})

async function call(method: 'GET' | 'POST' | 'PUT', path: string, body?: object) {
  const answer = await app.inject({
    method,
    url: `/admin/v1${path}`,
    headers: {
      authorization: `Bearer ${adminToken}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  })
  return { status: answer.statusCode, body: JSON.parse(answer.payload) }
}

const auditOf = async (action: string) => {
  const { rows } = await rig.postgres.query<{ actor: string; before: unknown; after: unknown }>(
    `select actor, before, after from audit_log where action = $1 and tenant_id = $2
     order by audit_id`,
    [action, tenantId],
  )
  return rows
}
const atEdges = () => edges.map(({ directory }) => directory.find(tenantId)!)
/** The keys as the edges have them. */
const keysAtEdges = () => atEdges().map(({ addressKey }) => addressKey?.export().toString('hex'))
const entryOf = async () => (await createTenantStore(rig.postgres).findProjection(tenantId))!.entry

describe.each([
  {
    path: 'client-address',
    name: 'client_address',
    values: ['connection', 'body'],
    wrong: 'header',
    action: 'tenant.client_address_set',
    read: ({ clientAddress }: ReturnType<typeof atEdges>[number]): unknown => clientAddress,
  },
  {
    path: 'store-client-address',
    name: 'store_client_address',
    values: [false, true],
    wrong: 'yes',
    action: 'tenant.store_client_address_set',
    read: ({ isAddressStored }: ReturnType<typeof atEdges>[number]): unknown => isAddressStored,
  },
])('$name', ({ path, name, values: [before, after], wrong, action, read }) => {
  const set = (value: unknown, id = tenantId) =>
    call('PUT', `/tenants/${id}/${path}`, { [name]: value })

  it('is at every edge when the call returns', async () => {
    expect((await call('GET', `/tenants/${tenantId}`)).body[name]).toBe(before)
    expect(atEdges().map(read)).toEqual([before, before])
    const answer = { status: 200, body: { tenant_id: tenantId, [name]: after } }
    expect(await set(after)).toEqual(answer)
    expect(atEdges().map(read)).toEqual([after, after])
    expect((await call('GET', `/tenants/${tenantId}`)).body[name]).toBe(after)
    expect(await set(after)).toEqual(answer)
    expect((await set(before)).status).toBe(200)
    expect(atEdges().map(read)).toEqual([before, before])
    expect(await auditOf(action)).toEqual([
      { actor: 'admin', before: { [name]: before }, after: { [name]: after } },
      { actor: 'admin', before: { [name]: after }, after: { [name]: before } },
    ])
  })

  it('is refused for another value and an unknown tenant', async () => {
    expect((await set(wrong)).status).toBe(400)
    expect(await set(after, 'nobody')).toMatchObject({
      status: 404,
      body: { code: 'tenant_not_found' },
    })
  })
})

describe('the key of addresses', () => {
  it('is made with its tenant, and each tenant has its own', async () => {
    const [first, second] = keysAtEdges()
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(second).toBe(first)
    tenantId = `tenant-${randomUUID().slice(0, 8)}`
    await call('POST', '/tenants', { tenant_id: tenantId })
    expect(keysAtEdges()[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(keysAtEdges()[0]).not.toBe(first)
  })

  it('is sealed in Postgres and in the directory', async () => {
    const [key] = keysAtEdges()
    const { address_key_sealed: sealed } = await entryOf()
    const plain = rig.deps.sealer.unseal(sealed!, { tenantId, kind: 'address' })
    expect(Buffer.from(plain, 'base64').toString('hex')).toBe(key)
    expect(sealed).not.toContain(plain)
    const { rows } = await rig.postgres.query('select * from address_keys where tenant_id = $1', [
      tenantId,
    ])
    expect(rows).toMatchObject([{ tenant_id: tenantId, sealed }])
  })

  it('stays through a rotation of every credential', async () => {
    const before = keysAtEdges()
    const { epoch } = await entryOf()
    await rotate(rig.deps, { hmac: true, webhook: true, apiKey: true, tenantId, actor: 'ada' })
    expect((await entryOf()).epoch).toBeGreaterThan(epoch)
    expect(keysAtEdges()).toEqual(before)
  })

  it('comes once to a tenant that is older, from however many consoles', async () => {
    await rig.postgres.query('delete from address_keys where tenant_id = $1', [tenantId])
    const { epoch } = await entryOf()
    const added = await Promise.all([addAddressKeys(rig.deps), addAddressKeys(rig.deps)])
    expect(added.reduce((sum, count) => sum + count)).toBe(1)
    expect(await addAddressKeys(rig.deps)).toBe(0)
    const { address_key_sealed: sealed, epoch: after } = await entryOf()
    expect(after).toBe(epoch + 1)
    const plain = rig.deps.sealer.unseal(sealed!, { tenantId, kind: 'address' })
    const key = Buffer.from(plain, 'base64').toString('hex')
    await until('every edge has it', () => keysAtEdges().every((one) => one === key))
    expect(await auditOf('address_key.created')).toEqual([
      { actor: 'system', before: null, after: null },
    ])
  })

  it('goes with its tenant', async () => {
    await createTenantStore(rig.postgres).removeTenant(tenantId)
    const { rows } = await rig.postgres.query(
      'select tenant_id from address_keys where tenant_id = $1',
      [tenantId],
    )
    expect(rows).toEqual([])
  })

  it('and both settings are those of the directory where Postgres was put back', async () => {
    await call('PUT', `/tenants/${tenantId}/client-address`, { client_address: 'body' })
    await call('PUT', `/tenants/${tenantId}/store-client-address`, { store_client_address: true })
    const entry = await entryOf()
    await rig.postgres.query('delete from address_keys where tenant_id = $1', [tenantId])
    await rig.postgres.query(
      `update tenants set epoch = 1, client_address = 'connection', store_client_address = false
       where tenant_id = $1`,
      [tenantId],
    )
    const recovered = { entry, policyText: null, hmacLast4: null, actor: 'ada' }
    expect(await rig.postgres.transaction((tx) => recoverTenant(tx, recovered))).toBe(true)
    expect(await entryOf()).toMatchObject({
      client_address: 'body',
      store_client_address: true,
      address_key_sealed: entry.address_key_sealed!,
    })
  })

  it('is the same one under a new master key', async () => {
    const [key] = keysAtEdges()
    const { address_key_sealed: sealed, epoch } = await entryOf()
    const sealer = createSealer([newMasterKey, rig.masterKey])
    const again = () =>
      rig.postgres.transaction((tx) => rewrapTenant(tx, sealer, { tenantId, actor: 'ada' }))
    expect(await again()).toBe(4)
    expect(await again()).toBe(0)
    const entry = await entryOf()
    expect(entry.address_key_sealed).not.toBe(sealed)
    expect(entry.epoch).toBe(epoch + 1)
    const owner = { tenantId, kind: 'address' as const }
    const plain = createSealer([newMasterKey]).unseal(entry.address_key_sealed!, owner)
    expect(Buffer.from(plain, 'base64').toString('hex')).toBe(key)
  })
})

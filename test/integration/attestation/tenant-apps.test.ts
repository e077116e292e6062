// The apps of a tenant: through the admin API to an edge, sealed on the way, and back by a recovery.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tenantAppsMax } from '#shared/core/base/limits/attestation.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { listTenantsToRewrap, rewrapTenant } from '#shared/io/tenants/sealed-secret-store.ts'
import { listApps, restoreApps } from '#shared/io/tenants/tenant-app-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'
import type { TestEdge } from '../../support/http/console-rig.ts'
import { createOperatorsRig, type OperatorsRig } from '../../support/http/operators-rig.ts'
import { androidApp, appleApp, playKeys } from '../../support/installs/evidence-fixtures.ts'
import { until } from '../../support/process/until.ts'

let rig: OperatorsRig
let edge: TestEdge

beforeAll(async () => {
  rig = await createOperatorsRig()
  edge = await rig.startEdge()
})
afterAll(() => rig?.close())

const admin = () => ({ token: rig.adminToken })
async function createTenant(tenantId: string): Promise<string> {
  const body = { tenant_id: tenantId }
  await rig.must(201, 'POST', '/tenants', { ...admin(), body })
  return tenantId
}
const put = (tenantId: string, body: object, status = 200) =>
  rig.must(status, 'PUT', `/tenants/${tenantId}/apps`, { ...admin(), body })
const list = async (tenantId: string) =>
  (await rig.must(200, 'GET', `/tenants/${tenantId}/apps`, admin())).body.data as unknown[]
const atEdge = (tenantId: string) => edge.directory.find(tenantId)!.apps

describe('the apps of a tenant', () => {
  it('are at every edge when the call returns, and gone when their removal does', async () => {
    await createTenant('acme')
    expect(atEdge('acme').listed).toEqual([])
    const colons = androidApp.signers[0]!.match(/../g)!.join(':').toUpperCase()
    await put('acme', { ...androidApp, signers: [colons], play_keys: playKeys })
    await put('acme', { ...appleApp, development: true })
    expect(atEdge('acme').listed).toEqual([androidApp, { ...appleApp, allowsDevelopment: true }])
    expect([...atEdge('acme').playKeys]).toEqual([[androidApp.id, playKeys]])
    await put('acme', appleApp)
    expect(atEdge('acme').listed).toEqual([androidApp, { ...appleApp, allowsDevelopment: false }])
    await rig.must(200, 'DELETE', `/tenants/acme/apps/android/${androidApp.id}`, admin())
    expect(atEdge('acme').listed).toHaveLength(1)
    expect(atEdge('acme').playKeys.size).toBe(0)
    await rig.must(404, 'DELETE', `/tenants/acme/apps/android/${androidApp.id}`, admin())
  })

  it('raise the epoch with each change: one epoch names one content at the edges', async () => {
    await createTenant('epochs')
    const readEpoch = () => edge.directory.find('epochs')!.epoch
    const first = readEpoch()
    await put('epochs', appleApp)
    expect(readEpoch()).toBe(first + 1)
    await put('epochs', { ...appleApp, development: true })
    expect(readEpoch()).toBe(first + 2)
    await rig.must(200, 'DELETE', `/tenants/epochs/apps/ios/${appleApp.id}`, admin())
    expect(readEpoch()).toBe(first + 3)
  })

  it('never show their Play keys: in no answer, audit entry, table or entry of the directory', async () => {
    await createTenant('sealed')
    const answer = await put('sealed', { ...androidApp, play_keys: playKeys })
    const shown = { ...androidApp, team: null, play_keys: true, development: false }
    expect(answer.body).toMatchObject({ tenant_id: 'sealed', ...shown })
    const audit = await rig.must(200, 'GET', '/tenants/sealed/audit', admin())
    expect(audit.body.data[0]).toMatchObject({
      action: 'app.added',
      after: { ...shown, play_keys_set: true },
    })
    const { rows } = await rig.postgres.query('select * from tenant_apps')
    const projection = await createTenantStore(rig.postgres).findProjection('sealed')
    const texts = [answer.text, audit.text, JSON.stringify(rows), JSON.stringify(projection)]
    for (const text of texts) {
      for (const key of Object.values(playKeys)) expect(text).not.toContain(key)
    }
  })

  it('keep the keys of a replaced app, until they are replaced or removed', async () => {
    await createTenant('keeping')
    await put('keeping', { ...androidApp, play_keys: playKeys })
    await put('keeping', { ...androidApp, signers: ['cd'.repeat(32)] })
    expect(await list('keeping')).toMatchObject([{ signers: ['cd'.repeat(32)], play_keys: true }])
    expect(atEdge('keeping').playKeys.get(androidApp.id)).toEqual(playKeys)
    const verification_key = toKeyInfo(makeKey().publicKey).toString('base64')
    const next = { ...playKeys, verification_key }
    await put('keeping', { ...androidApp, play_keys: next })
    expect(atEdge('keeping').playKeys.get(androidApp.id)).toEqual(next)
    await put('keeping', { ...androidApp, play_keys: null })
    expect(atEdge('keeping').playKeys.size).toBe(0)
  })

  it('are those of one tenant, and at most as many as its entry can carry', async () => {
    await createTenant('full')
    for (let app = 0; app < tenantAppsMax; app++) {
      await put('full', { ...appleApp, id: `com.example.app${app}` })
    }
    const refused = await put('full', { ...appleApp, id: 'com.example.more' }, 409)
    expect(refused.body.detail).toBe(`A tenant has at most ${tenantAppsMax} apps.`)
    // One that is there can still be replaced.
    await put('full', { ...appleApp, id: 'com.example.app3', development: true })
    expect(await list('full')).toHaveLength(tenantAppsMax)
    await createTenant('others')
    expect(await list('others')).toEqual([])
    expect(atEdge('others').listed).toEqual([])
  })

  it('are changed by administrators that have just proved who they are, and read by viewers', async () => {
    await createTenant('roles')
    const body = appleApp
    const { cookie } = await rig.join('engineer', ['roles'])
    await rig.must(403, 'PUT', '/tenants/roles/apps', { cookie, body })
    await rig.must(200, 'GET', '/tenants/roles/apps', { cookie })
    const stranger = await rig.join('viewer', ['others'])
    await rig.must(404, 'GET', '/tenants/roles/apps', { cookie: stranger.cookie })
    const error = await put('roles', { ...androidApp, signers: ['ab'] }, 400)
    expect(error.body.errors).toMatchObject([{ path: '$.signers[0]' }])
  })
})

describe('the sealed Play keys', () => {
  it('are sealed again with the other secrets, and open at the edge for their own app alone', async () => {
    await createTenant('rewrapped')
    await put('rewrapped', { ...androidApp, play_keys: playKeys })
    const key = randomBytes(32).toString('base64')
    const sealer = createSealer([key, rig.masterKey], () => 'new')
    const tenantId = 'rewrapped'
    expect(await listTenantsToRewrap(rig.postgres, sealer.currentHeads())).toContain(tenantId)
    const before = (await createTenantStore(rig.postgres).findTenant(tenantId))!.epoch
    // HMAC secret, webhook secret, install root, address key and Play keys.
    const actor = 'test'
    const done = await rig.postgres.transaction((tx) =>
      rewrapTenant(tx, sealer, { tenantId, actor }),
    )
    expect(done).toBe(5)
    expect(await listTenantsToRewrap(rig.postgres, sealer.currentHeads())).not.toContain(tenantId)
    expect((await createTenantStore(rig.postgres).findTenant(tenantId))!.epoch).toBe(before + 1)
    const { entry } = (await createTenantStore(rig.postgres).findProjection(tenantId))!
    const [app] = entry.apps!
    const sealed = app!.platform === 'android' ? app!.play_keys_sealed! : ''
    const owner = { tenantId, kind: 'play' as const }
    expect(createSealer([key]).unseal(sealed, owner)).toContain(playKeys.decryption_key)
    for (const other of [
      { ...owner, tenantId: 'acme' },
      { tenantId, kind: 'hmac' as const },
    ]) {
      expect(() => sealer.unseal(sealed, other)).toThrow()
    }
  })

  it('that cannot be opened cost a tenant its Play tokens, and not its telemetry', async () => {
    await createTenant('damaged')
    await put('damaged', { ...androidApp, play_keys: playKeys })
    const sealer = createSealer([randomBytes(32).toString('base64')])
    const sealed = sealer.seal('{}', { tenantId: 'damaged', kind: 'play' })
    await rig.postgres.query(
      `update tenant_apps set play_keys_sealed = $1 where tenant_id = 'damaged'`,
      [sealed],
    )
    // Any change projects the tenant.
    await put('damaged', appleApp)
    await until('the edge has it', () => atEdge('damaged').listed.length === 2)
    expect(atEdge('damaged').playKeys.size).toBe(0)
    expect(edge.directory.find('damaged')).toMatchObject({ fault: null, status: 'active' })
  })
})

it('a recovered tenant has the apps of its entry: one that was removed stays so', async () => {
  const tenantId = await createTenant('recovered')
  await put(tenantId, { ...androidApp, play_keys: playKeys })
  await put(tenantId, { ...appleApp, development: true })
  const { entry } = (await createTenantStore(rig.postgres).findProjection(tenantId))!
  await put(tenantId, { ...appleApp, id: 'com.example.removed' })
  await rig.postgres.transaction((tx) => restoreApps(tx, entry))
  expect((await createTenantStore(rig.postgres).findProjection(tenantId))!.entry.apps).toEqual(
    entry.apps,
  )
  await rig.postgres.transaction((tx) => restoreApps(tx, { tenant_id: tenantId }))
  expect(await listApps(rig.postgres, tenantId)).toEqual([])
})

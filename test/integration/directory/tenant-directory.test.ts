/**
 * The tenant directory between a console and edges on a real nats-server: projected entries are
 * served, invalid ones are not, an awaited change is in force, and after any damage to the bucket
 * or the watch no edge keeps an old copy in use.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KV } from 'nats'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { edgeKey, policyKey, syncedKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { leaseMarginMs, leaseMs } from '../../../shared/core/base/limits/tenants.ts'
import { createSealer } from '../../../shared/io/keys/console-keys.ts'
import { openTenantsBucket } from '../../../shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '../../../shared/io/nats/streams/ensure-streams.ts'
import { createMetrics } from '../../../shared/io/process/metrics.ts'
import { openDirectory } from '../../../shared/io/tenants/directory/directory-entries.ts'
import { openTenantDirectory } from '../../../shared/io/tenants/directory/edge-directory.ts'
import { awaitEdges, forgetEdge } from '../../../shared/io/tenants/directory/tenant-directory.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  edgeKeysOf,
  nowMs,
  putEntry,
  putSynced,
  quietLog,
  removeTenant,
  send,
  startEdgeRig,
  type TestEdge,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let open: TestEdge[] = []

beforeAll(async () => {
  rig = await startEdgeRig()
})

afterEach(async () => {
  await Promise.all(open.map((edge) => edge.close()))
  open = []
})

afterAll(() => rig.stop())

async function startEdge(options: Parameters<EdgeRig['startEdge']>[0] = {}): Promise<TestEdge> {
  const edge = await rig.startEdge(options)
  open.push(edge)
  return edge
}

const waitFor = (revision: number, nats = rig.nats) =>
  awaitEdges({ nats, sealer: rig.sealer, revision, nowMs, leaseMs, marginMs: leaseMarginMs })

const statusOf = async (edge: TestEdge, tenant: { tenantId: string; secret: string }) =>
  (await send(edge, bodyOf(tenant.tenantId), { secret: tenant.secret })).status

const stream = `KV_${tenantsBucket}`

describe('a projected entry', () => {
  it('is served by every edge once it was awaited', async () => {
    const edges = [await startEdge(), await startEdge(), await startEdge()]
    let secret = ''
    for (let epoch = 1; epoch <= 20; epoch++) {
      const before = secret
      const tenant = await rig.projectTenant('acme', { epoch })
      const { confirmed, leaseExpired } = await waitFor(tenant.revision)
      secret = tenant.secret
      expect(confirmed.sort()).toEqual(edges.map(({ edgeId }) => edgeId).sort())
      expect(leaseExpired).toEqual([])
      for (const edge of edges) {
        expect(edge.directory.find('acme')?.epoch).toBe(epoch)
        expect(edge.directory.revision()).toBeGreaterThanOrEqual(tenant.revision)
        expect(await statusOf(edge, tenant)).toBe(200)
        if (before !== '') {
          expect(await statusOf(edge, { tenantId: 'acme', secret: before })).toBe(401)
        }
      }
    }
  })

  it('is loaded with thousands of others by a starting edge', async () => {
    const count = 3_000
    const tenants = Array.from({ length: count }, (_, index) => `many-${index}`)
    for (let at = 0; at < count; at += 250) {
      await Promise.all(tenants.slice(at, at + 250).map((id) => rig.projectTenant(id)))
    }
    const edge = await startEdge()
    for (const id of tenants) {
      const tenant = edge.directory.find(id)
      expect(tenant?.fault).toBeNull()
      expect(tenant?.policy).toBe(edge.directory.find('many-0')?.policy)
    }
    expect(await edge.count('di_directory_tenants', { state: 'active' })).toBeGreaterThanOrEqual(
      count,
    )
  })

  it('of a kind that only a later release knows is no fault', async () => {
    const edge = await startEdge()
    const bucket = await openTenantsBucket(rig.nats)
    await bucket.put('later.acme', '{"later":true}')
    const tenant = await rig.projectTenant('beside')
    const { confirmed } = await waitFor(tenant.revision)
    expect(confirmed).toEqual([edge.edgeId])
    expect(await statusOf(edge, tenant)).toBe(200)
    expect(edge.directory.fault()).toBeNull()
    await bucket.delete('later.acme')
  })

  it('suspends, resumes and removes a tenant', async () => {
    const edge = await startEdge()
    const tenant = await rig.projectTenant('fickle')
    await waitFor(tenant.revision)
    expect(await statusOf(edge, tenant)).toBe(200)
    const { secret } = tenant
    const suspended = await rig.projectTenant('fickle', { secret, status: 'suspended', epoch: 2 })
    await waitFor(suspended.revision)
    expect(await statusOf(edge, tenant)).toBe(401)
    const resumed = await rig.projectTenant('fickle', { secret, epoch: 3 })
    await waitFor(resumed.revision)
    expect(await statusOf(edge, tenant)).toBe(200)
    await removeTenant(rig, 'fickle')
    await until('the tenant is gone', () => edge.directory.find('fickle') === undefined)
    expect(await statusOf(edge, tenant)).toBe(401)
  })

  it('brings its own policy, and the edge waits for a late document', async () => {
    const edge = await startEdge()
    const policy = { ...defaultPolicy, name: 'late', thresholds: { review: 10, block: 20 } }
    const hash = toPolicyHash(policy)
    const bucket = await openTenantsBucket(rig.nats)
    const tenant = await rig.projectTenant('late', { policy })
    await bucket.delete(policyKey(hash))
    const other = await startEdge()
    expect(other.directory.find('late')?.fault).toBe('policy_missing')
    const refused = await send(other, bodyOf('late'), { secret: tenant.secret })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await other.count('di_directory_tenants', { state: 'policy_missing' })).toBe(1)
    await bucket.put(policyKey(hash), JSON.stringify(policy))
    await until('the policy has come', () => other.directory.find('late')?.fault === null)
    expect(other.directory.find('late')?.policy?.thresholds).toEqual(policy.thresholds)
    for (const one of [edge, other]) {
      // A busy edge may be without its lease for a moment.
      await until('it is served', async () => (await statusOf(one, tenant)) === 200)
    }
  })
})

describe('an invalid entry', () => {
  it('with a secret under another key is a 503 for its tenant; others are served', async () => {
    const foreign = createSealer([randomBytes(32).toString('base64')])
    const sealed = foreign.seal('x'.repeat(43), { tenantId: 'sealed', kind: 'hmac' })
    const tenant = await rig.projectTenant('sealed', { hmac_secret_sealed: sealed })
    const fine = await rig.projectTenant('fine')
    const edge = await startEdge()
    const answer = await send(edge, bodyOf('sealed'), { secret: 'x'.repeat(43) })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(JSON.stringify(answer.body)).not.toContain('sealed')
    expect(await statusOf(edge, fine)).toBe(200)
    // A stranger learns of no tenant: one without a readable key answers like any other.
    const strangers = () =>
      Promise.all(
        ['sealed', 'fine', 'nobody'].map(async (tenantId) => {
          const { status, body } = await send(edge, bodyOf(tenantId), { secret: 'wrong' })
          return { status, code: body.code, detail: body.detail }
        }),
      )
    const [guess, ...others] = await strangers()
    expect(guess!.status).toBe(503)
    for (const other of others) expect(other).toEqual(guess)
    expect((await fetch(`${edge.internalUrl}/readyz`)).status).toBe(200)
    const faults = { reason: 'unsealable_secret' }
    expect(await edge.count('di_directory_faults_total', faults)).toBe(1)
    // After the repair it is served without a restart.
    const right = await rig.projectTenant('sealed', { epoch: 2 })
    expect(right.revision).toBeGreaterThan(tenant.revision)
    await waitFor(right.revision)
    expect(await statusOf(edge, right)).toBe(200)
    for (const { status } of await strangers()) expect(status).toBe(401)
  })

  it('for every tenant, under another key, is reported in readiness', async () => {
    const edge = await startEdge({ keys: edgeKeysOf(randomBytes(32).toString('base64')) })
    expect(edge.directory.fault()).toContain('the keys of this edge')
    const readiness = await fetch(`${edge.internalUrl}/readyz`)
    expect(readiness.status).toBe(503)
    expect(await readiness.text()).toContain('the keys of this edge')
  })

  it('takes its tenant out of service, and never back to its previous state', async () => {
    const edge = await startEdge()
    const tenant = await rig.projectTenant('garbled')
    await waitFor(tenant.revision)
    expect(await statusOf(edge, tenant)).toBe(200)
    const bucket = await openTenantsBucket(rig.nats)
    for (const text of ['', 'no json', '[]', '{"tenant_id":"acme"}', JSON.stringify({})]) {
      const revision = await bucket.put(tenantKey('garbled'), text)
      await waitFor(revision)
      expect(await statusOf(edge, tenant), text).toBe(503)
    }
    const other = { ...tenant.entry, tenant_id: 'somebody-else' }
    await waitFor(await putEntry(rig, tenantKey('garbled'), other))
    expect(await statusOf(edge, tenant)).toBe(503)
    await waitFor(await putEntry(rig, tenantKey('garbled'), {}))
    expect(await statusOf(edge, tenant)).toBe(503)
    await waitFor(await putEntry(rig, tenantKey('garbled'), tenant.entry))
    expect(await statusOf(edge, tenant)).toBe(200)
  })
})

describe('waiting for edges', () => {
  it('ends at once without edges', async () => {
    const tenant = await rig.projectTenant('alone')
    const waited = await waitFor(tenant.revision)
    expect(waited).toMatchObject({ confirmed: [], leaseExpired: [] })
    expect(waited.waitedMs).toBeLessThan(leaseMs)
  })

  it('includes an edge that appears meanwhile; a dead edge costs a lease, once', async () => {
    const bucket = await openTenantsBucket(rig.nats)
    const tryOnce = async () => {
      await bucket.put(edgeKey('gone'), JSON.stringify({ edge_id: 'gone', applied_revision: 1 }))
      // An unreadable entry confirms nothing.
      await bucket.put(edgeKey('odd'), '{"edge_id":"odd","applied_revision":"9999999"}')
      const tenant = await rig.projectTenant('acme', { epoch: ++epoch })
      const waiting = waitFor(tenant.revision)
      const edge = await startEdge()
      const waited = await waiting
      if (waited.confirmed.includes(edge.edgeId)) return { edge, waited }
      // It started for longer than a lease lasts, as on a busy machine.
      await edge.close()
      return null
    }
    let epoch = 100
    const { edge, waited } = await until('an edge appears in time', tryOnce)
    expect(waited.confirmed).toEqual([edge.edgeId])
    expect(waited.leaseExpired.sort()).toEqual(['gone', 'odd'])
    expect(waited.waitedMs).toBeGreaterThanOrEqual(leaseMs + leaseMarginMs)
    for (const id of ['gone', 'odd']) {
      await until(
        'it is said to be gone',
        async () => (await bucket.get(edgeKey(id)))?.string().includes('"gone":true') === true,
      )
    }
    const again = await rig.projectTenant('acme', { epoch: ++epoch })
    expect((await waitFor(again.revision)).leaseExpired).toEqual([])
  })

  it('includes an edge that announces itself again while they are listed', async () => {
    const bucket = await openTenantsBucket(rig.nats)
    const announce = () =>
      bucket.put(edgeKey('late'), JSON.stringify({ edge_id: 'late', applied_revision: 1 }))
    await announce()
    const tenant = await rig.projectTenant('acme', { epoch: 200 })
    // The watch sends an announcement of that moment after the console's mark, and only once the
    // console has all other answers.
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const get: KV['get'] = async (...asked) => {
      const entry = await bucket.get(...asked)
      if (asked[0] === syncedKey) answer()
      return entry
    }
    const watch = async (...asked: Parameters<KV['watch']>) => {
      const real = await bucket.watch(...asked)
      const withheld = async function* () {
        for await (const entry of real) {
          if (entry.key === edgeKey('late')) continue
          if (entry.key.startsWith(edgeKey('='))) await announce()
          yield entry
          if (!entry.key.startsWith(edgeKey('='))) continue
          await answered
          yield (await bucket.get(edgeKey('late')))!
        }
      }
      return Object.assign(withheld(), { stop: () => real.stop() })
    }
    const late: KV = Object.create(bucket, { get: { value: get }, watch: { value: watch } })
    const views = { kv: async () => late }
    const jetstream = Object.create(rig.nats.jetstream, { views: { value: views } })
    const waited = await waitFor(tenant.revision, { ...rig.nats, jetstream })
    expect(waited.leaseExpired).toEqual(['late'])
    expect(waited.waitedMs).toBeGreaterThanOrEqual(leaseMs + leaseMarginMs)
    const directory = await openDirectory(rig.nats, rig.sealer)
    await forgetEdge(directory, 'late', (await bucket.get(edgeKey('late')))!.revision)
  })

  it('ends for an edge that is closed in order', async () => {
    const edge = await startEdge()
    await edge.close()
    const tenant = await rig.projectTenant('acme', { epoch: 300 })
    expect((await waitFor(tenant.revision)).waitedMs).toBeLessThan(leaseMs)
  })

  it('lasts the whole lease when NATS is down, and does not throw', async () => {
    await rig.server.kill('SIGKILL')
    await until('the test notices', () => !rig.nats.connected())
    const waited = await waitFor(1)
    expect(waited.waitedMs).toBeGreaterThanOrEqual(leaseMs + leaseMarginMs)
    await rig.server.restart()
    await until('the test is connected', rig.nats.connected)
  })
})

describe('after a loss of the bucket or the watch', () => {
  it('a recreated bucket is loaded again: no entry of the old one is served', async () => {
    const edge = await startEdge()
    const old = await rig.projectTenant('acme', { epoch: 400 })
    const unknown = { tenantId: 'nobody-at-all', secret: old.secret }
    await waitFor(old.revision)
    expect(await statusOf(edge, old)).toBe(200)
    expect(await statusOf(edge, unknown)).toBe(401)
    const ids = edge.directory.revision()
    await rig.nats.manager.streams.delete(stream)
    // A renewal detects the loss: no client waits for the lease to expire.
    await until('the lease is given up', () => !edge.directory.leaseValid(), leaseMs - 500)
    expect(await statusOf(edge, old)).toBe(503)
    await until('the edge holds a lease on the empty bucket', edge.directory.leaseValid)
    for (const tenant of [old, unknown]) expect(await statusOf(edge, tenant)).toBe(503)
    expect((await fetch(`${edge.internalUrl}/readyz`)).status).toBe(503)
    // The console fills the new bucket; the sequence begins at one again.
    const fresh = await rig.projectTenant('acme', { epoch: 401 })
    expect(fresh.revision).toBeLessThan(ids)
    const other = await startEdge()
    for (const one of [edge, other]) {
      await until('the tenant has come back', () => one.directory.find('acme') !== undefined)
      expect(await statusOf(one, fresh)).toBe(200)
      // The copy is incomplete: no signature is called wrong, even of a known tenant.
      for (const tenant of [old, unknown]) expect(await statusOf(one, tenant)).toBe(503)
      expect(await one.count('di_ingest_refused_total', { reason: 'not_synced' })).toBeGreaterThan(
        0,
      )
    }
    await putSynced(rig, 1)
    for (const one of [edge, other]) {
      await until('the edge knows that it has everything', one.directory.synced)
      for (const tenant of [old, unknown]) expect(await statusOf(one, tenant)).toBe(401)
      expect((await fetch(`${one.internalUrl}/readyz`)).status).toBe(200)
    }
    expect(await edge.count('di_directory_reloads_total', { reason: 'lost' })).toBeGreaterThan(0)
  })

  it('a single lost entry is detected: no signature is called wrong until it is back', async () => {
    const edge = await startEdge()
    const [one, two] = [await rig.projectTenant('one-lost'), await rig.projectTenant('two-kept')]
    await waitFor(two.revision)
    await putSynced(rig, edge.directory.find('acme') === undefined ? 2 : 3)
    const wrong = { tenantId: 'two-kept', secret: one.secret }
    expect([await statusOf(edge, one), await statusOf(edge, wrong)]).toEqual([200, 401])
    // A purge by subject leaves no marker, unlike a deletion.
    await rig.nats.manager.streams.purge(stream, { filter: `$KV.tenants.${tenantKey('one-lost')}` })
    const other = await startEdge({ ready: false })
    await until('the edge holds a lease', other.directory.leaseValid)
    expect(other.directory.synced()).toBe(false)
    expect([await statusOf(other, one), await statusOf(other, wrong)]).toEqual([503, 503])
    expect(await statusOf(other, two)).toBe(200)
    const back = await rig.projectTenant('one-lost', { ...one.entry })
    await waitFor(back.revision)
    for (const at of [edge, other]) {
      expect([await statusOf(at, one), await statusOf(at, wrong)]).toEqual([200, 401])
    }
    await putSynced(rig, 0)
  })

  it('a change right after the loss waits for all leases of unregistered edges', async () => {
    const edge = await startEdge()
    const old = await rig.projectTenant('acme', { epoch: 450 })
    await waitFor(old.revision)
    await rig.nats.manager.streams.delete(stream)
    const off = await rig.projectTenant('acme', { epoch: 451, secret: null })
    const { waitedMs } = await waitFor(off.revision)
    expect(waitedMs).toBeGreaterThanOrEqual(leaseMs + leaseMarginMs)
    expect(await statusOf(edge, old)).toBe(503)
    await putSynced(rig, 1)
    const on = await rig.projectTenant('acme', { epoch: 452 })
    expect((await waitFor(on.revision)).waitedMs).toBeLessThan(leaseMs)
    expect(await statusOf(edge, on)).toBe(200)
  })

  it('a change of which no edge is told is applied with the next announcement', async () => {
    const edge = await startEdge()
    const old = await rig.projectTenant('acme', { epoch: 500 })
    await waitFor(old.revision)
    const { manager } = rig.nats
    const { config } = await manager.streams.info(stream)
    await manager.streams.update(stream, { ...config, republish: undefined as never })
    expect((await manager.streams.info(stream)).config.republish).toBeUndefined()
    const fresh = await rig.projectTenant('acme', { epoch: 501 })
    expect((await waitFor(fresh.revision)).leaseExpired).toEqual([])
    expect(await statusOf(edge, old)).toBe(401)
    expect(await statusOf(edge, fresh)).toBe(200)
    expect(await edge.count('di_directory_reloads_total')).toBe(0)
    await ensureStreams(rig.nats)
    expect((await manager.streams.info(stream)).config.republish).toEqual(config.republish)
  })

  it('an edge whose entry was removed registers again before it gets another lease', async () => {
    const edge = await startEdge()
    const bucket = await openTenantsBucket(rig.nats)
    const present = await bucket.get(edgeKey(edge.edgeId))
    const directory = await openDirectory(rig.nats, rig.sealer)
    let heldRevision = present!.revision
    await until('the edge is said to be gone', async () => {
      await forgetEdge(directory, edge.edgeId, heldRevision)
      const now = (await bucket.get(edgeKey(edge.edgeId)))!
      heldRevision = now.revision
      return now.string().includes('"gone":true')
    })
    const again = `${edge.edgeId}-2`
    await until('the edge is registered', async () => (await bucket.get(edgeKey(again))) !== null)
    await until('the edge holds a lease', edge.directory.leaseValid)
    const tenant = await rig.projectTenant('acme', { epoch: 600 })
    const waited = await waitFor(tenant.revision)
    expect(waited.confirmed).toEqual([again])
  })

  it('a close ends at any moment of loading', async () => {
    for (let waitMs = 0; waitMs < 20; waitMs += 0.25) {
      const directory = openTenantDirectory({
        nats: rig.nats,
        keys: edgeKeysOf(rig.masterKey),
        log: quietLog,
        metrics: createMetrics('test-edge'),
        edgeId: `closed-${waitMs}`,
        nowMs,
      })
      const untilMs = nowMs() + waitMs
      while (nowMs() < untilMs) await new Promise(setImmediate)
      const ended = directory.close().then(() => 'ended')
      expect(await Promise.race([ended, sleep(60_000, `open after ${waitMs} ms`)])).toBe('ended')
    }
  })

  it('a restart of the server costs nothing but a moment', async () => {
    const edge = await startEdge()
    const tenant = await rig.projectTenant('acme', { epoch: 700 })
    await rig.server.restart()
    await until('intake is back', async () => (await statusOf(edge, tenant)) === 200)
    await until('the test is connected', rig.nats.connected)
    const next = await rig.projectTenant('acme', { epoch: 701 })
    const { confirmed } = await waitFor(next.revision)
    expect(confirmed).toEqual([edge.edgeId])
    expect(await statusOf(edge, tenant)).toBe(401)
    expect(await statusOf(edge, next)).toBe(200)
  })
})

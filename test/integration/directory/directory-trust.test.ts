/**
 * What an attacker can do who may write the tenants bucket in NATS but has no MASTER_KEY: make
 * edges reject a tenant until a console repairs it, and nothing else. The attacker can restore no
 * retired secret, change no tenant, and shorten no rotation.
 */
import { randomBytes } from 'node:crypto'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { headers, type KV } from 'nats'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { edgeKey, policyKey, syncedKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { leaseMarginMs, leaseMs } from '../../../shared/core/base/limits/tenants.ts'
import { createSealer } from '../../../shared/io/keys/console-keys.ts'
import { openTenantsBucket } from '../../../shared/io/nats/streams/buckets.ts'
import { restoreTenantsBucket } from '../../../shared/io/nats/streams/restore-streams.ts'
import {
  type Directory,
  openDirectory,
  putAnnouncement,
} from '../../../shared/io/tenants/directory/directory-entries.ts'
import { awaitEdges, forgetEdge } from '../../../shared/io/tenants/directory/tenant-directory.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  nowMs,
  putEntry,
  putSynced,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
/** The attacker's access to the bucket. */
let bucket: KV
let open: TestEdge[] = []
let acme: TestTenant
let epoch = 1

beforeAll(async () => {
  rig = await startEdgeRig({ syncAlways: false })
  bucket = await openTenantsBucket(rig.nats)
})
beforeEach(async () => {
  acme = await rig.projectTenant('acme', { epoch: ++epoch })
})
afterEach(async () => {
  await Promise.all(open.map((edge) => edge.close()))
  open = []
})
afterAll(() => rig.stop())

async function startEdge(): Promise<TestEdge> {
  const edge = await rig.startEdge()
  open.push(edge)
  return edge
}

type Signer = { tenantId: string; secret: string }
const statusOf = async (edge: TestEdge, { tenantId, secret }: Signer) =>
  (await send(edge, bodyOf(tenantId), { secret })).status

const waitFor = (revision: number) =>
  awaitEdges({
    nats: rig.nats,
    sealer: rig.sealer,
    revision,
    nowMs,
    leaseMs,
    marginMs: leaseMarginMs,
  })

/** Revokes the old secret at every edge, then activates the new one, as a console does. */
async function rotate(): Promise<TestTenant> {
  const off = await rig.projectTenant('acme', { epoch: ++epoch, secret: null })
  await waitFor(off.revision)
  const on = await rig.projectTenant('acme', { epoch: ++epoch })
  await waitFor(on.revision)
  return on
}

/** As `bucket.purge` writes it, without the header that removes other entries: it is refused. */
function putPurgeMarker(key: string): Promise<unknown> {
  const meta = headers()
  meta.set('KV-Operation', 'PURGE')
  return rig.nats.jetstream.publish(`$KV.tenants.${key}`, '', { headers: meta })
}

const readRaw = async (key: string) => (await bucket.get(key))!.string()

describe('a restored old entry', () => {
  it('under load restores no retired secret, at running edges and a fresh one', async () => {
    const edges = [await startEdge(), await startEdge()]
    const old = await readRaw(tenantKey('acme'))
    const retired = acme
    expect(await statusOf(edges[0]!, retired)).toBe(200)
    const fresh = await rotate()
    let running = true
    let judged = 0
    const accepted: number[] = []
    const client = async (edge: TestEdge) => {
      while (running) {
        const status = await statusOf(edge, retired)
        judged++
        if (status === 200) accepted.push(status)
      }
    }
    const clients = edges.map(client)
    for (let n = 0; n < 40; n++) await bucket.put(tenantKey('acme'), old)
    const starter = await startEdge()
    edges.push(starter)
    clients.push(client(starter))
    for (let n = 0; n < 40; n++) await bucket.put(tenantKey('acme'), old)
    await until('the load was heavy', () => judged > 371)
    for (const edge of edges) {
      // The edge does not guess: the overwritten entry may have been newer.
      expect(await statusOf(edge, fresh)).toBe(503)
      expect(edge.directory.find('acme')?.fault).toBe('unproven_entry')
    }
    const next = await rig.projectTenant('acme', { epoch: ++epoch })
    await waitFor(next.revision)
    running = false
    await Promise.all(clients)
    expect(accepted).toEqual([])
    for (const edge of edges) {
      expect([await statusOf(edge, next), await statusOf(edge, retired)]).toEqual([200, 401])
      const faults = { reason: 'unproven_entry' }
      expect(await edge.count('di_directory_faults_total', faults)).toBeGreaterThan(0)
    }
  })

  it('is rejected at its own revision of a recreated stream', async () => {
    const [old, { revision }] = [await readRaw(tenantKey('acme')), acme]
    const policy = await readRaw(policyKey(acme.entry.policy_hash))
    await rig.nats.manager.streams.delete('KV_tenants')
    bucket = await restoreTenantsBucket(rig.nats)
    await bucket.put(policyKey(acme.entry.policy_hash), policy)
    while ((await bucket.put('filler', '')) < revision - 1);
    expect(await bucket.put(tenantKey('acme'), old)).toBe(revision)
    const edge = await startEdge()
    expect(await statusOf(edge, acme)).toBe(503)
    expect(edge.directory.find('acme')?.fault).toBe('unproven_entry')
    await putSynced(rig, 0)
  })
})

describe('a bucket that was put back to an earlier copy', () => {
  it('restores no retired secret at a running edge, which waits for a console', async () => {
    const files = join(rig.server.dir, 'jetstream')
    const copy = join(rig.server.dir, 'copy')
    const restart = async (change: () => void) => {
      await rig.server.kill('SIGTERM')
      change()
      await rig.server.restart()
      await until('NATS is connected', rig.nats.connected)
    }
    const edge = await startEdge()
    const retired = acme
    await restart(() => cpSync(files, copy, { recursive: true }))
    await until('the edge holds a lease', edge.directory.leaseValid)
    const fresh = await rotate()
    expect([await statusOf(edge, retired), await statusOf(edge, fresh)]).toEqual([401, 200])
    await restart(() => {
      rmSync(files, { recursive: true })
      cpSync(copy, files, { recursive: true })
    })
    const statuses = new Set<number>()
    await until('the edge has read the old entry', async () => {
      statuses.add(await statusOf(edge, retired))
      return edge.directory.find('acme')?.fault === 'older_epoch'
    })
    await until('the edge holds a lease', edge.directory.leaseValid)
    expect([await statusOf(edge, retired), await statusOf(edge, fresh)]).toEqual([503, 503])
    expect(statuses).not.toContain(200)
    const repaired = await rig.projectTenant('acme', { epoch })
    await waitFor(repaired.revision)
    expect([await statusOf(edge, retired), await statusOf(edge, repaired)]).toEqual([401, 200])
  })
})

describe('an entry that no console wrote', () => {
  const attempts: Record<string, (text: string) => Promise<unknown>> = {
    'another status': (text) =>
      bucket.put(tenantKey('acme'), text.replace('"active"', '"suspended"')),
    'another rate': (text) =>
      bucket.put(
        tenantKey('acme'),
        text.replace('"ingest_rate":null', '"ingest_rate":{"perSecond":1,"burst":1}'),
      ),
    'no proof': (text) => bucket.put(tenantKey('acme'), text.slice(text.indexOf('\n') + 1)),
    nothing: () => bucket.put(tenantKey('acme'), ''),
    'a deletion': () => bucket.delete(tenantKey('acme')),
    'a purge': () => putPurgeMarker(tenantKey('acme')),
    'a removal that is not proven': () => bucket.put(tenantKey('acme'), 'null'),
  }
  it.each(Object.keys(attempts))('%s: 503 at every edge until it is repaired', async (name) => {
    const edge = await startEdge()
    await waitFor(acme.revision)
    expect(await statusOf(edge, acme)).toBe(200)
    await attempts[name]!(await readRaw(tenantKey('acme')))
    await until('it has come', () => edge.directory.find('acme')?.fault === 'unproven_entry')
    for (const one of [edge, await startEdge()]) expect(await statusOf(one, acme)).toBe(503)
    await waitFor(await putEntry(rig, tenantKey('acme'), acme.entry))
    expect(await statusOf(edge, acme)).toBe(200)
  })

  it('an entry of another tenant, or of another MASTER_KEY', async () => {
    const other = await rig.projectTenant('other')
    await bucket.put(tenantKey('acme'), await readRaw(tenantKey('other')))
    const edge = await startEdge()
    for (const secret of [acme.secret, other.secret]) {
      expect(await statusOf(edge, { tenantId: 'acme', secret })).toBe(503)
    }
    expect(await statusOf(edge, other)).toBe(200)
    const foreign = { nats: rig.nats, sealer: createSealer([randomBytes(32).toString('base64')]) }
    await putEntry(foreign, tenantKey('acme'), acme.entry)
    await until('it has come', () => edge.directory.find('acme')?.fault === 'unproven_entry')
    expect(await statusOf(edge, acme)).toBe(503)
  })

  it('another policy document at the address of one changes no score', async () => {
    const edge = await startEdge()
    const address = policyKey(acme.entry.policy_hash)
    const right = await readRaw(address)
    await bucket.put(address, right.replace('"review":40', '"review":99'))
    const faults = { reason: 'unproven_policy' }
    await until(
      'it has come',
      async () => (await edge.count('di_directory_faults_total', faults)) > 0,
    )
    expect(await statusOf(edge, acme)).toBe(200)
    expect(edge.directory.find('acme')?.policy?.thresholds.review).toBe(40)
    // A fresh edge has no document to use.
    expect(await statusOf(await startEdge(), acme)).toBe(503)
    await bucket.put(address, right)
  })
})

describe('a rotation', () => {
  let directory: Directory
  /** The last revision that an edge without further announcements has announced. */
  let announced = 0

  beforeEach(async () => {
    directory = await openDirectory(rig.nats, rig.sealer)
    const heldRevision = (await bucket.get(edgeKey('quiet')))?.revision ?? 0
    const quiet = { edge_id: 'quiet', applied_revision: 1 }
    announced = await putAnnouncement(directory, edgeKey('quiet'), quiet, heldRevision)
  })
  afterEach(async () => {
    const heldRevision = (await bucket.get(edgeKey('quiet')))!.revision
    await forgetEdge(directory, 'quiet', heldRevision)
  })

  const forgeries: Record<string, () => Promise<unknown>> = {
    'an announcement that is not proven': () =>
      bucket.put(edgeKey('quiet'), JSON.stringify({ edge_id: 'quiet', applied_revision: 1e9 })),
    'the announcement of another edge': async () => {
      const other = { edge_id: 'busy', applied_revision: 1e9 }
      await putAnnouncement(directory, edgeKey('busy'), other, 0)
      await bucket.put(edgeKey('quiet'), await readRaw(edgeKey('busy')))
    },
    'an earlier announcement': async () =>
      bucket.put(edgeKey('quiet'), await readRaw(edgeKey('quiet'))),
    'a deletion': () => bucket.delete(edgeKey('quiet')),
    'a purge': () => putPurgeMarker(edgeKey('quiet')),
    'a farewell that is not proven': () =>
      bucket.put(edgeKey('quiet'), JSON.stringify({ edge_id: 'quiet', gone: true })),
  }
  it.each(Object.keys(forgeries))(
    'waits for an edge, with any entry written for it: %s',
    async (name) => {
      await forgeries[name]!()
      const change = await rig.projectTenant('acme', { epoch: ++epoch })
      const { leaseExpired, waitedMs } = await waitFor(change.revision)
      expect(leaseExpired).toEqual(['quiet'])
      expect(waitedMs).toBeGreaterThanOrEqual(leaseMs + leaseMarginMs)
    },
  )

  it('waits for every lease where a bucket only claims to be complete', async () => {
    await forgetEdge(directory, 'quiet', announced)
    const whole = await readRaw(syncedKey)
    for (const claim of ['{"tenants":0}', whole]) {
      await bucket.put(syncedKey, claim)
      const change = await rig.projectTenant('acme', { epoch: ++epoch })
      expect((await waitFor(change.revision)).waitedMs).toBeGreaterThanOrEqual(leaseMs)
    }
    await putSynced(rig, 0)
    const change = await rig.projectTenant('acme', { epoch: ++epoch })
    expect((await waitFor(change.revision)).waitedMs).toBeLessThan(leaseMs)
  })
})

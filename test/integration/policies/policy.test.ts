// Setting a policy, on real databases with three real edges: once it is answered every edge scores
// by it, versions have no gap under concurrent changes, and no version ever changes or disappears.
import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { startDirectoryReconciler } from '../../../services/console/jobs/directory-reconciler.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  startProxy,
  type TestEdge,
} from '../../support/telemetry/edge-rig.ts'

const adminToken = randomBytes(32).toString('base64url')
let postgres: TestPostgres
let edgeRig: EdgeRig
let rig: ConsoleRig
let edges: TestEdge[]
let deps: ConsoleDeps
/** Two consoles on one database. */
let apps: FastifyInstance[]
let tenantId: string
let secret: string

beforeAll(async () => {
  ;[postgres, edgeRig] = await Promise.all([startPostgres(), startEdgeRig()])
  rig = await createConsoleRig({ postgres, nats: edgeRig.server }, edgeRig.masterKey)
  edges = await Promise.all([edgeRig.startEdge(), edgeRig.startEdge(), edgeRig.startEdge()])
  deps = {
    ...rig.deps,
    adminToken,
    wallMs: Date.now,
  }
  apps = [await createApp(deps), await createApp(deps)]
})
afterAll(async () => {
  await Promise.all((apps ?? []).map((app) => app.close()))
  await rig?.close()
  await Promise.all([edgeRig?.stop(), postgres?.stop()])
})
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const tenant = { tenantId, name: '', environment: 'live' as const, webhookUrl: null }
  secret = (await createTenant(rig.deps, { ...tenant, actor: 'test' })).hmac_secret
})

function createApp(of: ConsoleDeps): Promise<FastifyInstance> {
  const metrics = createMetrics('console')
  return createConsoleApp(of, { log: testLog, metrics })
}

type Answer<T> = { status: number; body: T }
type Fault = { code: string; detail: string; errors?: { path: string; message: string }[] }
type Shown = {
  version: number
  policy_hash: string
  name: string
  created_by: string
  in_force: boolean
  document: Policy
}
type Set = {
  version: number
  policy_hash: string
  previous_version: number
  duration_ms: number
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

type Checked = { valid: boolean; policy_hash: string | null; errors: unknown[] }

async function call<T>(
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: unknown,
  to = apps[0]!,
): Promise<Answer<T>> {
  const answer = await to.inject({
    method,
    url: `/admin/v1${path}`,
    headers: {
      authorization: `Bearer ${adminToken}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined
      ? {}
      : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: answer.statusCode, body: JSON.parse(answer.payload) as T }
}

const path = () => `/tenants/${tenantId}/policy`
const put = (body: unknown, query = '', to = apps[0]!) =>
  call<Set & Fault>('PUT', `${path()}${query}`, body, to)

const check = (body: unknown) => call<Checked>('POST', `${path()}/check`, body)

async function show(version?: number): Promise<Shown> {
  const answer = await call<Shown>(
    'GET',
    version === undefined ? path() : `${path()}/versions/${version}`,
  )
  expect(answer.status).toBe(200)
  return answer.body
}

async function audit() {
  const rows = await listAudit(rig.postgres, { tenantId, limit: 100 })
  return rows.filter(({ action }) => action === 'policy.set')
}

/** A policy under which a VPN alone scores `vpn`. */
const policyOf = (vpn: number): Policy => {
  const { network } = presets.balanced.categories
  const signals = { ...network.signals, vpn_active: vpn }
  const categories = { ...presets.balanced.categories, network: { ...network, signals } }
  return { ...presets.balanced, name: `vpn-${vpn}`, categories }
}
const vpnUser = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
const withVpn = { signals: { ...vpnUser, network: { vpn_active: true } } }

const versionsAtEdges = () => edges.map((edge) => edge.directory.find(tenantId)!.policyVersion)
const scoresAtEdges = async () => {
  const bodies = edges.map(() => bodyOf(tenantId, withVpn))
  const answers = await Promise.all(edges.map((edge, at) => send(edge, bodies[at]!, { secret })))
  return answers.map(({ body }) => body.rasp_score)
}

describe('setting a policy', () => {
  it('is in force on every edge when it returns, and every event names its version', async () => {
    expect(await scoresAtEdges()).toEqual([8, 8, 8])
    const tookMs: number[] = []
    for (let version = 2; version <= 12; version++) {
      const startedMs = performance.now()
      const set = await put(policyOf(version + 10))
      tookMs.push(performance.now() - startedMs)
      expect(versionsAtEdges()).toEqual([version, version, version])
      expect(set.status).toBe(200)
      expect(set.body).toEqual({
        tenant_id: tenantId,
        version,
        policy_hash: toPolicyHash(policyOf(version + 10)),
        name: `vpn-${version + 10}`,
        previous_version: version - 1,
        duration_ms: expect.any(Number),
        confirmed_edges: expect.arrayContaining(edges.map(({ edgeId }) => edgeId)),
        lease_expired_edges: [],
      })
    }
    tookMs.sort((a, b) => a - b)
    process.stdout.write(
      `a policy is in force at three edges after ${tookMs[5]!.toFixed(0)} ms (median of 11), ` +
        `${tookMs[10]!.toFixed(0)} ms at most\n`,
    )
    expect(await scoresAtEdges()).toEqual([22, 22, 22])
    const stored = (await edgeRig.readStored()).filter((event) => event.tenant_id === tenantId)
    expect(stored.map((event) => [event.policy_version, event.rasp_score])).toEqual([
      ...[1, 1, 1].map((version) => [version, 8]),
      ...[12, 12, 12].map((version) => [version, 22]),
    ])
    const { policy_hash: hash } = await show()
    expect(stored.slice(3).map((event) => event.policy_hash)).toEqual([hash, hash, hash])
  })

  it('waits for a disconnected edge until that edge refuses to score', async () => {
    const proxy = await startProxy(edgeRig.server.url)
    const edge = await edgeRig.startEdge({ natsUrl: proxy.url })
    expect((await send(edge, bodyOf(tenantId, withVpn), { secret })).status).toBe(200)
    proxy.freeze()
    const set = await put(policyOf(30))
    const scoringByOld = [...edges, edge].filter(
      ({ directory }) => directory.leaseValid() && directory.find(tenantId)!.policyVersion !== 2,
    )
    expect(scoringByOld.map(({ edgeId }) => edgeId)).toEqual([])
    const late = await send(edge, bodyOf(tenantId, withVpn), { secret })
    expect(late.status).toBe(503)
    expect(set.body.lease_expired_edges).toEqual([edge.edgeId])
    expect(set.body.confirmed_edges).toHaveLength(3)
    proxy.thaw()
    await until('the edge is back', () => edge.directory.leaseValid())
    const back = await send(edge, bodyOf(tenantId, withVpn), { secret })
    expect(back.body).toMatchObject({ rasp_score: 30 })
    await edge.close()
    proxy.close()
  })

  it('creates versions without a gap under concurrent changes, each recorded once', async () => {
    const sets = await Promise.all(
      Array.from({ length: 16 }, (_, n) => put(policyOf(n + 1), '', apps[n % 2]!)),
    )
    expect(sets.map(({ status }) => status)).toEqual(sets.map(() => 200))
    const made = sets.map(({ body }) => body).sort((a, b) => a.version - b.version)
    expect(made.map(({ version }) => version)).toEqual(made.map((_, n) => n + 2))
    expect(made.map((one) => one.previous_version)).toEqual(made.map((_, n) => n + 1))
    const last = made.at(-1)!
    expect(await show()).toMatchObject({ version: 17, policy_hash: last.policy_hash })
    expect(versionsAtEdges()).toEqual([17, 17, 17])
    const rows = (await audit()).reverse()
    expect(rows.map((row) => row.after)).toMatchObject(
      made.map(({ version, policy_hash }) => ({ version, policy_hash })),
    )
    expect(rows.slice(1).map((row) => row.before)).toEqual(rows.slice(0, -1).map((r) => r.after))
  })

  it('rejects a concurrent change: of two requests only one succeeds', async () => {
    const sets = await Promise.all(
      [20, 21].map((vpn, n) => put(policyOf(vpn), '?if_version=1', apps[n])),
    )
    expect(sets.map(({ status }) => status).sort()).toEqual([200, 409])
    const refused = sets.find(({ status }) => status === 409)!.body
    expect(refused).toMatchObject({ code: 'policy_conflict' })
    expect(refused.detail).toContain('Version 2 is in force, not 1')
    expect((await show()).version).toBe(2)
    expect((await put(policyOf(22), '?if_version=2')).body.version).toBe(3)
    expect((await put(policyOf(23), '?if_version=0')).body).toMatchObject({ code: 'invalid_query' })
  })

  it('adds nothing for the active document, in any order of its keys', async () => {
    const set = await put(policyOf(20))
    const turned = Object.fromEntries(Object.entries(policyOf(20)).reverse())
    for (const same of [policyOf(20), turned]) {
      const again = await put(same, '?if_version=1')
      expect(again.status).toBe(200)
      expect(again.body).toMatchObject({ version: 2, previous_version: 2 })
      expect(again.body.policy_hash).toBe(set.body.policy_hash)
      expect(again.body.confirmed_edges).toHaveLength(3)
    }
    expect((await put({ preset: 'balanced' })).body.version).toBe(3)
    expect((await put({ preset: 'balanced' })).body.version).toBe(3)
    expect(await audit()).toHaveLength(2)
  })

  it('is recorded while the edges are unreachable, and reaches them later', async () => {
    const directory = {
      ...deps.directory,
      project: async () => {
        throw new Error('timeout')
      },
    }
    const failing = await createApp({ ...deps, directory })
    const answer = await put(policyOf(40), '', failing)
    await failing.close()
    expect(answer.status).toBe(503)
    expect(answer.body.detail).toContain('they follow as soon as NATS is back')
    expect(await show()).toMatchObject({ version: 2, name: 'vpn-40' })
    const { projection } = rig
    const metrics = createMetrics('console')
    const reconciler = startDirectoryReconciler({
      rotation: rig.deps,
      maker: rig.deps,
      projection,
      log: testLog,
      metrics,
      nowMs: () => performance.now(),
    })
    await until('the edges follow', () => versionsAtEdges().every((one) => one === 2))
    await reconciler.stop()
    expect(await scoresAtEdges()).toEqual([40, 40, 40])
    expect((await put(policyOf(40))).body.version).toBe(2)
  })

  it('is in the audit log with the previous policy', async () => {
    await put({ preset: 'strict' })
    const [row] = await audit()
    expect(row).toMatchObject({
      actor: 'admin',
      action: 'policy.set',
      before: { version: 1, policy_hash: toPolicyHash(presets.balanced), name: 'balanced' },
      after: { version: 2, policy_hash: toPolicyHash(presets.strict), name: 'strict' },
    })
  })
})

describe('an invalid policy', () => {
  const refused = async (body: unknown, paths: string[]) => {
    const answer = await put(body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(400)
    expect(answer.body).toMatchObject({ code: 'invalid_policy' })
    expect(answer.body.errors!.map((fault) => fault.path).sort()).toEqual(paths.sort())
    const checked = await check(body)
    expect(checked.body).toEqual({ valid: false, policy_hash: null, errors: answer.body.errors })
  }

  it('is found by a check, which accepts valid ones and sets neither', async () => {
    const { status, body } = await check(policyOf(7))
    expect([status, body.valid, body.errors]).toEqual([200, true, []])
    expect(await show()).toMatchObject({ version: 1 })
    const set = await put(policyOf(7))
    expect(body.policy_hash).toBe(set.body.policy_hash)
  })

  it('is rejected with every fault and its path, and changes nothing', async () => {
    const { network } = presets.balanced.categories
    const signals = { ...network.signals, vpn_active: 101, vpn_actvie: 5 }
    await refused(
      {
        ...presets.balanced,
        thresholds: { review: 0, block: 75 },
        categories: { ...presets.balanced.categories, network: { ...network, signals } },
        speed: 9,
      },
      ['$.categories.network.signals.vpn_active', '$.speed', '$.thresholds.review'],
    )
    await refused({ ...policyOf(1), floors: [{ score: 60, signals: ['root.nothing'] }] }, [
      '$.floors[0].signals[0]',
    ])
    await refused({ ...policyOf(1), name: 'a\0b' }, ['$.name'])
    await refused(`{"preset":"strict","name":"x"}`, ['$.name'])
    await refused({ preset: 'nonsense' }, ['$.preset'])
    await refused({ preset: 7 }, ['$.preset'])
    for (const body of ['[]', '7', '"strict"', 'null']) await refused(body, ['$'])
    expect((await put('{"schema":1')).status).toBe(400)
    expect((await put(undefined)).status).toBe(400)
    expect(await show()).toMatchObject({ version: 1 })
    expect(await audit()).toEqual([])
    expect(versionsAtEdges()).toEqual([1, 1, 1])
  })

  it('is one that is too large for the edges', async () => {
    const values = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, n) => [`INSTALLER_${n}_OF_MANY`, 0]),
    )
    const { tamper } = presets.balanced.categories
    const signals = { ...tamper.signals, pi_licensing: { values } }
    const categories = { ...presets.balanced.categories, tamper: { ...tamper, signals } }
    await refused({ ...policyOf(1), categories }, ['$'])
  })
})

describe('older versions', () => {
  it('stay unchanged, are listed newest first, and may be set again', async () => {
    const documents = [presets.balanced, policyOf(20), presets.strict, policyOf(21), policyOf(22)]
    for (const document of documents.slice(1)) await put(document)
    for (const [at, document] of documents.entries()) {
      const shown = await show(at + 1)
      expect(shown).toMatchObject({ version: at + 1, in_force: at === 4 })
      expect(shown.document).toEqual(document)
      expect(JSON.stringify(shown.document)).toBe(JSON.stringify(document))
      expect(shown.policy_hash).toBe(toPolicyHash(shown.document))
    }
    const seen: number[] = []
    for (let query = '?limit=2'; query !== ''; ) {
      const { body } = await call<{ data: Shown[]; next_cursor: string | null }>(
        'GET',
        `${path()}/versions${query}`,
      )
      seen.push(...body.data.map(({ version }) => version))
      query = body.next_cursor === null ? '' : `?limit=2&cursor=${body.next_cursor}`
    }
    expect(seen).toEqual([5, 4, 3, 2, 1])
    const old = await show(2)
    const again = await put(old.document)
    expect(again.body).toMatchObject({ version: 6, policy_hash: old.policy_hash })
    expect(await scoresAtEdges()).toEqual([20, 20, 20])
    expect(await show(2)).toEqual(old)
    const missing = await call<Fault>('GET', `${path()}/versions/99`)
    expect(missing.body).toMatchObject({ code: 'policy_not_found' })
    expect((await call<Fault>('GET', `${path()}/versions/x`)).body.code).toBe('invalid_path')
  })

  it('of an older release are shown as stored, and are equal when set again', async () => {
    const { halving, suppressions, scoreMismatch, signalsMissing, ...rest } = policyOf(25)
    const old = { ...rest, halving: halving[0] }
    const text = JSON.stringify(old)
    const hash = toPolicyHash(old as never)
    await rig.postgres.query(
      `insert into policy_documents (policy_hash, document, text) values ($1, $2::text::jsonb, $2::text)
       on conflict do nothing`,
      [hash, text],
    )
    await rig.postgres.query(
      'update tenant_policies set policy_hash = $2 where tenant_id = $1 and version = 1',
      [tenantId, hash],
    )
    const shown = await show()
    expect(JSON.stringify(shown.document)).toBe(text)
    expect((await put(shown.document)).body).toMatchObject({ version: 1, policy_hash: hash })
    await put(policyOf(26))
    expect((await put(shown.document)).body).toMatchObject({ version: 3, policy_hash: hash })
    expect(await scoresAtEdges()).toEqual([25, 25, 25])
  })
})

describe('presets', () => {
  it('are listed, shown in full and set by name, each with one hash throughout', async () => {
    type Preset = { name: string; policy_hash: string; document: Policy }
    const { body } = await call<{ data: Preset[] }>('GET', '/policy-presets')
    expect(body.data.map(({ name }) => name)).toEqual([
      'permissive',
      'balanced',
      'strict',
      'regulated-banking',
      'mobility',
    ])
    for (const { name, policy_hash: hash } of body.data) {
      const preset = await call<Preset>('GET', `/policy-presets/${name}`)
      expect(preset.body.document).toEqual(presets[name as keyof typeof presets])
      const set = await put({ preset: name })
      expect([preset.body.policy_hash, set.body.policy_hash]).toEqual([hash, hash])
    }
    const missing = await call<Fault>('GET', '/policy-presets/nonsense')
    expect(missing.body).toMatchObject({ code: 'policy_not_found' })
  })

  it('come with the JSON Schema that validates documents', async () => {
    const { status, body } = await call<Record<string, unknown>>('GET', '/policy.schema.json')
    expect(status).toBe(200)
    expect(body).toMatchObject({ type: 'object', properties: { thresholds: {} } })
  })
})

/**
 * The console's side of verdicts: what clients of a tenant are answered, the keys over the admin
 * API, their private halves under a new master key, and the job that looks after them.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  listTenantsToReproject,
  proveOthersAgain,
} from '#shared/io/tenants/directory/directory-scan.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { startVerdictKeys } from '../../../services/console/jobs/verdict-keys.ts'
import { rewrapSecrets } from '../../../services/console/keys/rewrap.ts'
import { createDirectoryWriter } from '../../../services/console/tenants/directory.ts'
import {
  type ConsoleRig,
  startConsoleRig,
  type TestEdge,
  testLog,
} from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { nowMs } from '../../support/telemetry/edge-rig.ts'

const adminToken = randomBytes(32).toString('base64url')
const newMasterKey = randomBytes(32).toString('base64')
let rig: ConsoleRig
let edges: TestEdge[]
let app: FastifyInstance

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
    'select actor, before, after from audit_log where action = $1 order by audit_id',
    [action],
  )
  return rows
}
const kidsAtEdges = () => edges.map(({ directory }) => directory.verdictSigner()?.kid)

describe('what clients are answered', () => {
  const answersAtEdges = () => edges.map(({ directory }) => directory.find('acme')?.ingestAnswer)
  const set = (answer: string) =>
    call('PUT', '/tenants/acme/ingest-answer', { ingest_answer: answer })

  it('is everything by default, and what an operator set at every edge when the call returns', async () => {
    expect((await call('POST', '/tenants', { tenant_id: 'acme' })).status).toBe(201)
    expect((await call('GET', '/tenants/acme')).body.ingest_answer).toBe('full')
    expect(answersAtEdges()).toEqual(['full', 'full'])
    const answer = { tenant_id: 'acme', ingest_answer: 'interface' }
    expect(await set('interface')).toEqual({ status: 200, body: answer })
    expect(answersAtEdges()).toEqual(['interface', 'interface'])
    expect((await call('GET', '/tenants/acme')).body.ingest_answer).toBe('interface')
    expect(await set('interface')).toEqual({ status: 200, body: answer })
    expect((await set('full')).status).toBe(200)
    expect(answersAtEdges()).toEqual(['full', 'full'])
    expect(await auditOf('tenant.ingest_answer_set')).toEqual([
      { actor: 'admin', before: { ingest_answer: 'full' }, after: { ingest_answer: 'interface' } },
      { actor: 'admin', before: { ingest_answer: 'interface' }, after: { ingest_answer: 'full' } },
    ])
  })

  it('is refused for an unknown answer and an unknown tenant', async () => {
    expect((await set('nothing')).status).toBe(400)
    const nobody = await call('PUT', '/tenants/nobody/ingest-answer', { ingest_answer: 'full' })
    expect(nobody).toMatchObject({ status: 404, body: { code: 'tenant_not_found' } })
  })
})

describe('the keys', () => {
  it('are made and given to the edges by the job, and given again when they are lost', async () => {
    expect((await call('GET', '/verdict-keys')).body).toEqual({ data: [] })
    const { postgres, directory, sealer } = rig.deps
    const metrics = createMetrics('jobs')
    const job = startVerdictKeys({
      postgres,
      directory,
      sealer,
      log: testLog,
      metrics,
      wallMs: Date.now,
    })
    try {
      await until('the edges have a key', () => kidsAtEdges().every((kid) => kid !== undefined))
      const { data } = (await call('GET', '/verdict-keys')).body
      expect(data.map(({ state }: { state: string }) => state)).toEqual(['next', 'current'])
      expect(Object.keys(data[0]).sort()).toEqual(
        ['kid', 'state', 'created_at', 'current_since', 'replaced_at', 'kept_until'].sort(),
      )
      expect(kidsAtEdges()).toEqual([data[1].kid, data[1].kid])
      // The whole bucket is lost: edges read an empty one.
      await rig.nats.manager.streams.purge('KV_tenants', { filter: '$KV.tenants.verdict-key' })
      const fresh = await rig.startEdge()
      await until('an edge that starts has the key', () => fresh.directory.verdictSigner() !== null)
      expect(await metrics.registry.metrics()).toMatch(/di_verdict_keys_projected_total\S* [2-9]/)
      await fresh.close()
    } finally {
      await job.stop()
    }
  })

  it('are rotated over the admin API, not too early, and with revoke at once', async () => {
    const before = (await call('GET', '/verdict-keys')).body.data
    const early = await call('POST', '/verdict-keys/rotate')
    expect(early).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect((await call('GET', '/verdict-keys')).body.data).toEqual(before)
    const rotated = await call('POST', '/verdict-keys/rotate', { revoke: true })
    expect(rotated.status).toBe(200)
    const [next, current, previous] = rotated.body.data
    expect(current.kid).toBe(before[0].kid)
    expect(previous).toMatchObject({ kid: before[1].kid, state: 'previous' })
    expect(next.kid).not.toBe(current.kid)
    expect(kidsAtEdges()).toEqual([current.kid, current.kid])
    expect(await auditOf('verdict_keys.rotated')).toEqual([
      {
        actor: 'admin',
        before: { kid: before[1].kid },
        after: { kid: current.kid, revoked: true },
      },
    ])
  })

  it('are sealed again under a new master key, and the edges have them when the call returns', async () => {
    const kids = kidsAtEdges()
    const sealer = createSealer([newMasterKey, rig.masterKey])
    const result = await rewrapSecrets(
      {
        ...rig.deps,
        sealer,
        directory: createDirectoryWriter(() => rig.nats, sealer, nowMs),
        listTenantsToReproject: () => listTenantsToReproject(rig.nats, sealer),
        proveOthersAgain: () => proveOthersAgain(rig.nats, sealer),
      },
      { actor: 'test' },
    )
    expect(result.remaining).toBe(0)
    const { rows } = await rig.postgres.query<{ sealed: string }>(
      'select sealed from verdict_keys where sealed is not null',
    )
    expect(rows).toHaveLength(2)
    for (const { sealed } of rows) expect(sealer.isCurrent(sealed)).toBe(true)
    expect(kidsAtEdges()).toEqual(kids)
    const fresh = await rig.startEdge([newMasterKey])
    expect(fresh.directory.verdictSigner()?.kid).toBe(kids[0])
    await fresh.close()
  })
})

/**
 * The request log on real servers: the console lists the answers of two edges, accepted and
 * rejected; an edge that does not answer is named, and no other process can answer for it.
 */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requestLogPauseMs, requestLogTenantEntriesMax } from '#shared/core/base/limits/ingest.ts'
import { makeChallenge } from '#shared/core/installs/challenge.ts'
import {
  requestLogAnswerSubject,
  requestLogQuerySubject,
} from '#shared/core/telemetry/nats-names.ts'
import {
  type RequestLogQuery,
  requestLogAnswerContext,
  requestLogQueryContext,
} from '#shared/core/telemetry/request-log.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { attachProof, splitProof } from '#shared/io/keys/proofs.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { forgetRequests } from '../../../services/console/erasure/forget-requests.ts'
import { createTenant, setTenantRates } from '../../../services/console/tenants/manage-tenants.ts'
import type { Requests } from '../../../services/console/tenants/request-log-routes.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { registrationOf, sendRegistration } from '../../support/installs/install-client.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
} from '../../support/telemetry/edge-rig.ts'

const adminToken = 'the-admin-token-of-this-test'
let postgres: TestPostgres
let edges: EdgeRig
let rig: ConsoleRig
let app: FastifyInstance
let edge: TestEdge
let other: TestEdge

beforeAll(async () => {
  ;[postgres, edges] = await Promise.all([startPostgres(), startEdgeRig()])
  rig = await createConsoleRig({ postgres, nats: edges.server }, edges.masterKey)
  const deps = {
    ...rig.deps,
    adminToken,
  }
  app = await createConsoleApp(deps, { log: testLog, metrics: createMetrics('console') })
  edge = await edges.startEdge()
  other = await edges.startEdge()
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
  await Promise.all([edges?.stop(), postgres?.stop()])
})

async function create() {
  const tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
  const { hmac_secret: secret } = await createTenant(rig.deps, { ...made, tenantId })
  return { tenantId, secret }
}

async function read(tenantId: string, query = ''): Promise<Requests> {
  const answer = await app.inject({
    url: `/admin/v1/tenants/${tenantId}/requests${query}`,
    headers: { authorization: `Bearer ${adminToken}` },
  })
  expect([answer.statusCode, answer.body]).toEqual([200, answer.body])
  return answer.json()
}

const forget = (tenantId: string, deviceIds: string[]) =>
  forgetRequests({ nats: edges.nats, sealer: edges.sealer }, { tenantId, deviceIds })

const named = (requestId: string) => ({ headers: { 'x-request-id': requestId } })

describe('the request log of a tenant', () => {
  it('forgets an erased device at every edge, and the erasure waits for each', async () => {
    const { tenantId, secret } = await create()
    for (const one of [edge, other]) {
      for (const device_id of ['erased', 'kept']) {
        const sent = await send(one, bodyOf(tenantId, { device_id }), { secret })
        expect(sent.status).toBe(200)
        await send(one, bodyOf(tenantId, { device_id }), { secret: 'wrong' })
      }
    }
    await until('all are noted', async () => (await read(tenantId)).data.length === 8)
    await forget(tenantId, ['erased'])
    const left = (await read(tenantId)).data.map((entry) => entry.device_id)
    expect(left).toEqual(['kept', 'kept', 'kept', 'kept'])
    const mute = await edges.startEdge()
    mute.beSilent()
    await expect(forget(tenantId, ['kept'])).rejects.toThrow(mute.edgeId)
    await mute.close()
  })

  it('lists accepted submissions of all edges, newest first, with score and event', async () => {
    const { tenantId, secret } = await create()
    const first = await send(edge, bodyOf(tenantId, { device_id: 'phone-1' }), { secret })
    const second = await send(other, bodyOf(tenantId, { device_id: 'phone-2' }), { secret })
    const log = await read(tenantId)
    expect(log.silent_edges).toEqual([])
    expect(log.edges.map(({ edge_id: id }) => id).sort()).toEqual(
      [edge.edgeId, other.edgeId].sort(),
    )
    expect(log.data).toMatchObject([
      {
        edge_id: other.edgeId,
        request_id: second.headers.get('x-request-id'),
        device_id: 'phone-2',
        event_id: second.body.event_id,
      },
      {
        edge_id: edge.edgeId,
        request_id: first.headers.get('x-request-id'),
        status: 200,
        code: 'accepted',
        reason: null,
        verified: true,
        device_id: 'phone-1',
        sdk_version: '4.2.0',
        event_id: first.body.event_id,
        rasp_score: first.body.rasp_score,
        rasp_action: first.body.rasp_action,
      },
    ])
    expect(Math.abs(Date.parse(log.data[0]!.at) - Date.now())).toBeLessThan(120_000)
    expect((await read(tenantId, '?outcome=refused')).data).toEqual([])
    expect((await read((await create()).tenantId)).data).toEqual([])
  })

  it('lists each rejection with its reason, and marks unverified ones', async () => {
    const { tenantId, secret: old } = await create()
    const request = { tenantId, actor: 'test', hmac: true, webhook: false, apiKey: false }
    const secret = (await rotate(rig.deps, request)).hmac_secret!
    const invalid = bodyOf(tenantId, { signals: { root: {} } })
    await send(edge, bodyOf(tenantId), { secret: 'x'.repeat(43), ...named('wrong') })
    await send(edge, bodyOf(tenantId), named('missing'))
    await send(other, bodyOf(tenantId), { secret: old, ...named('retired') })
    await send(other, invalid, { secret, ...named('invalid') })
    const limited = await create()
    await setTenantRates(rig.deps, {
      tenantId: limited.tenantId,
      actor: 'test',
      ingest: { perSecond: 0.1, burst: 1 },
    })
    for (const id of ['within', 'over']) {
      const { tenantId: ofLimited } = limited
      await send(edge, bodyOf(ofLimited), { secret: limited.secret, ...named(id) })
    }
    const toFacts = ({ data }: Requests) =>
      Object.fromEntries(
        data.map((row) => [row.request_id, [row.status, row.code, row.reason, row.verified]]),
      )
    expect(toFacts(await read(tenantId, '?outcome=refused'))).toEqual({
      wrong: [401, 'signature_invalid', 'signature_invalid', false],
      missing: [401, 'signature_missing', 'signature_missing', false],
      retired: [401, 'signature_invalid', 'retired_secret', false],
      invalid: [400, 'invalid_body', 'body', true],
    })
    expect(toFacts(await read(limited.tenantId))).toEqual({
      within: [200, 'accepted', null, true],
      over: [429, 'rate_limited', 'rate', true],
    })
    const { data } = await read(tenantId)
    expect(data.find(({ request_id: id }) => id === 'invalid')?.detail).toContain('$.signals')
    const text = JSON.stringify(data)
    for (const kept of [old, secret]) expect(text).not.toContain(kept.slice(0, 20))
  })

  it('lists each refused registration of an install with its reason, and no accepted one', async () => {
    const { tenantId, secret } = await create()
    const signer = { tenantId, secret }
    await until('the edge has the root', async () => {
      const body = await registrationOf(edge, signer, { device_id: 'registered' })
      return (await sendRegistration(edge, signer, body)).status === 200
    })
    const forged = await registrationOf(edge, signer, { device_id: 'stranger' })
    await sendRegistration(edge, { tenantId, secret: 'x'.repeat(43) }, forged, {
      'x-request-id': 'forged',
    })
    const foreign = makeChallenge(Buffer.alloc(32), Buffer.alloc(16), Date.now())
    const stale = { device_id: 'stale', challenge: foreign.challenge }
    const old = await registrationOf(edge, signer, stale)
    await sendRegistration(edge, signer, old, { 'x-request-id': 'old' })
    const bad = await registrationOf(other, signer, { device_id: 'bad', evidence: {} })
    await sendRegistration(other, signer, bad, { 'x-request-id': 'bad' })
    const found = await until('all are noted', async () => {
      const { data } = await read(tenantId, '?outcome=refused')
      return data.some(({ request_id: id }) => id === 'bad') ? data : null
    })
    const shown = found.map((one) => [
      ...[one.request_id, one.kind, one.status, one.reason, one.verified, one.device_id],
    ])
    expect(shown).toEqual(
      expect.arrayContaining([
        ['bad', 'registration', 400, 'body', true, 'bad'],
        ['old', 'registration', 400, 'challenge', true, 'stale'],
        ['forged', 'registration', 401, 'signature_invalid', false, 'stranger'],
      ]),
    )
    expect(found.find((one) => one.request_id === 'bad')?.detail).toMatch(/\$\.evidence\.provider/)
    expect((await read(tenantId, '?outcome=accepted')).data).toEqual([])
    const sent = await send(edge, bodyOf(tenantId), { secret })
    expect(sent.status).toBe(200)
    expect((await read(tenantId, '?outcome=accepted')).data).toMatchObject([{ kind: 'telemetry' }])
    // An erasure of the device reaches them as well.
    await forget(tenantId, ['bad', 'stale', 'stranger'])
    const left = (await read(tenantId, '?outcome=refused')).data.map((one) => one.device_id)
    expect(left.filter((id) => id !== 'registered')).toEqual([])
  })

  it('keeps verified entries, however many unverified ones a stranger sends', async () => {
    const { tenantId, secret } = await create()
    await send(edge, bodyOf(tenantId), { secret, ...named('mine') })
    await send(edge, bodyOf(tenantId, { signals: null }), { secret, ...named('fault') })
    const device = `\u202e<script>${'x'.repeat(100)}`
    for (let at = 0; at < requestLogTenantEntriesMax * 4; at++) {
      const body = bodyOf(tenantId, { device_id: device })
      await send(edge, body, { secret: 'x'.repeat(43), ...named('stranger') })
    }
    const { data } = await read(tenantId, '?limit=500')
    const ids = data.map(({ request_id: id }) => id)
    expect(ids).toContain('mine')
    expect(ids).toContain('fault')
    const strangers = data.filter(({ verified }) => !verified)
    expect(strangers).toHaveLength(requestLogTenantEntriesMax)
    expect(strangers[0]!.device_id).toMatch(/^[ -~]{64,80}$/)
    expect(strangers[0]!.device_id).toMatch(/\.\.\.$/)
  })
})

describe('the queries of a console', () => {
  it('are two a second for a tenant at most, each with what came before it', async () => {
    const { tenantId, secret } = await create()
    let queries = 0
    const spy = edges.nats.connection.subscribe(requestLogQuerySubject, {
      callback: () => void queries++,
    })
    await edges.nats.connection.flush()
    const startedMs = performance.now()
    for (let at = 0; at < 4; at++) {
      await send(edge, bodyOf(tenantId), { secret, ...named(`sent-${at}`) })
      expect((await read(tenantId)).data[0]?.request_id).toBe(`sent-${at}`)
    }
    const tookMs = performance.now() - startedMs
    // The copy of the last query may be on its way.
    await edges.nats.connection.flush()
    spy.unsubscribe()
    expect(queries).toBe(4)
    expect(tookMs).toBeGreaterThan(3 * requestLogPauseMs - 50)
  })
})

describe('an edge', () => {
  it('that does not answer is named, and only its key can sign its answers', async () => {
    const { tenantId, secret } = await create()
    const silent = await edges.startEdge()
    await send(silent, bodyOf(tenantId), { secret })
    expect((await read(tenantId)).data).toHaveLength(1)
    silent.beSilent()

    const forged = { request_id: 'forged', status: 200, code: 'accepted', verified: true }
    const none = { reason: null, detail: null, device_id: null, sdk_version: null }
    const entry = { ...forged, ...none, at_ms: 1, event_id: null, rasp_score: 0, rasp_action: null }
    const answer = { edge_id: silent.edgeId, since_ms: 1, left_out: 0, entries: [entry] }
    const stranger = createSealer([Buffer.alloc(32).toString('base64')]).proverOf('request log')
    const reports = edges.sealer.proverOf('edge report')
    const own = edges.sealer.proverOf('request log')
    const text = JSON.stringify(answer)
    let queries = 0
    const spy = edges.nats.connection.subscribe(requestLogQuerySubject, {
      callback: (_, message) => {
        queries++
        const query = JSON.parse(splitProof(message.string()).text) as RequestLogQuery
        const context = requestLogAnswerContext(query)
        const earlier = requestLogAnswerContext({ ...query, query_id: 'earlier' })
        for (const whole of [
          text,
          `\n${text}`,
          attachProof(stranger, context, text),
          attachProof(reports, context, text),
          attachProof(own, earlier, text),
        ]) {
          edges.nats.connection.publish(requestLogAnswerSubject(query.query_id), whole)
        }
      },
    })
    const log = await read(tenantId)
    spy.unsubscribe()
    expect(queries).toBe(1)
    expect(log.silent_edges).toEqual([silent.edgeId])
    expect(log.data).toEqual([])
    await silent.close()
  })

  it('answers no query without a proof', async () => {
    const { tenantId, secret } = await create()
    await send(edge, bodyOf(tenantId), { secret })
    const query = { query_id: randomUUID(), tenant_id: tenantId }
    const text = JSON.stringify(query)
    const { connection } = edges.nats
    const answers: string[] = []
    const subscription = connection.subscribe(requestLogAnswerSubject(query.query_id), {
      callback: (_, message) => answers.push(message.string()),
    })
    connection.publish(requestLogQuerySubject, text)
    const reports = edges.sealer.proverOf('edge report')
    connection.publish(requestLogQuerySubject, attachProof(reports, requestLogQueryContext, text))
    // Both edges have answered this query, so they have handled the earlier ones.
    await read(tenantId)
    expect(answers).toEqual([])
    subscription.unsubscribe()
  })
})

/**
 * Rejected requests in the log of a process: each has one line with the id of its answer; a flood
 * has a bounded number of lines and a count of the others; no line has a secret.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toEventId } from '../../../shared/core/base/ids.ts'
import {
  unauthenticatedMs,
  unauthenticatedPerSourceMax,
} from '../../../shared/core/base/limits/http.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeOptions,
  type EdgeRig,
  type SpawnedEdge,
  send,
  startEdgeRig,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edge: SpawnedEdge
let acmeSecret: string

beforeAll(async () => {
  rig = await startEdgeRig()
  ;({ secret: acmeSecret } = await rig.projectTenant('acme'))
  edge = await rig.spawnEdge()
})

afterAll(() => rig.stop())

type Line = Record<string, unknown> & { left_out?: Record<string, number> }

const lines = (): Line[] =>
  edge
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line)

const lineOf = (requestId: string | null) =>
  until('its line', () => lines().find((line) => line.request_id === requestId) ?? null)

const secret = 'a-secret-that-must-not-be-logged-anywhere'

describe('a refused request', () => {
  it('has one line with its id, reason, route and source', async () => {
    const wrong = await send(edge, bodyOf('acme', { user_id: 'nobody-logs-me' }), { secret })
    expect(wrong.status).toBe(401)
    expect(await lineOf(wrong.headers.get('x-request-id'))).toMatchObject({
      service: 'ingest',
      status: 401,
      code: 'signature_invalid',
      reason: 'signature_invalid',
      method: 'POST',
      route: '/v1/rasp/ingest',
      source: '127.0.0.0/24',
    })
    const lost = await fetch(`${edge.url}/v1/no?token=${secret}`, {
      headers: { authorization: `Bearer ${secret}`, 'x-request-id': 'mine-1' },
    })
    expect(lost.status).toBe(404)
    expect(await lineOf('mine-1')).toMatchObject({ code: 'not_found', route: 'unknown' })
  })

  it('is answered with headers that forbid caching', async () => {
    const answers = [
      await send(edge, bodyOf('acme'), { secret }),
      await fetch(`${edge.url}/nothing`),
      await fetch(`${edge.url}/v1/rasp/ingest`),
    ]
    for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store')
  })
})

describe('a valid submission', () => {
  const userId = 'a-user-that-must-not-be-logged'
  const sendOne = async (
    level: string,
    { isConnected = true, ...options }: EdgeOptions & { isConnected?: boolean } = {},
  ) => {
    const written: Line[] = []
    const log = pino({ level }, { write: (line: string) => void written.push(JSON.parse(line)) })
    const own = await rig.startEdge({ log, ...options })
    if (!isConnected) await own.nats.connection.close()
    const body = bodyOf('acme', { user_id: userId })
    const answer = await send(own, body, { secret: acmeSecret })
    const requestId = answer.headers.get('x-request-id')
    const lines = written.filter(({ request_id: id }) => id === requestId)
    expect(JSON.stringify(written)).not.toContain(userId)
    return { status: answer.status, eventId: toEventId(Buffer.from(body)), lines }
  }

  it('has its event id in a line at debug when it is stored, and none above', async () => {
    const shown = await sendOne('debug')
    expect(shown.status).toBe(200)
    expect(shown.lines).toMatchObject([{ level: 20, event_id: shown.eventId }])
    expect((await sendOne('info')).lines).toEqual([])
  })

  it('has its event id in the line of its refusal when it cannot be stored', async () => {
    const wrapPublish = () => () =>
      Promise.reject(Object.assign(new Error('no room'), { fault: 'full', final: true }))
    for (const [options, reason] of [
      [{ wrapPublish }, 'not_stored'],
      [{ isConnected: false }, 'disconnected'],
    ] as const) {
      const refused = await sendOne('info', options)
      expect(refused.status).toBe(503)
      expect(refused.lines).toMatchObject([{ reason, event_id: refused.eventId }])
    }
  })
})

describe('the internal listener', () => {
  it('answers and logs rejections like the public one', async () => {
    const answer = await fetch(`${edge.internalUrl}/v1/rasp/ingest`, { method: 'POST' })
    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const requestId = answer.headers.get('x-request-id')
    expect(await answer.json()).toMatchObject({ code: 'not_found', request_id: requestId })
    expect(await lineOf(requestId)).toMatchObject({ code: 'not_found' })
  })
})

describe('a trusted proxy', () => {
  const call = async (of: SpawnedEdge, id: string) => {
    const headers = { 'x-request-id': id, 'x-forwarded-for': '198.51.100.7, 203.0.113.9:4711' }
    await fetch(`${of.url}/nothing`, { headers })
  }

  it('supplies the client’s address; other senders cannot', async () => {
    await call(edge, 'direct-1')
    expect(await lineOf('direct-1')).toMatchObject({ source: '127.0.0.0/24' })
    const behind = await rig.spawnEdge({ env: { TRUSTED_PROXIES: '10.0.0.0/8, 127.0.0.1' } })
    await call(behind, 'proxied-1')
    const find = () =>
      behind
        .output()
        .split('\n')
        .find((line) => line.includes('proxied-1'))
    const line = await until('its line', () => find() ?? null)
    // The address that the proxy itself has added, not the one its client sent.
    expect(JSON.parse(line)).toMatchObject({ source: '203.0.113.0/24' })
    expect(line).not.toContain('203.0.113.9')
  })

  it('may open as many connections as the process accepts, and keeps them', async () => {
    const proxy = await rig.spawnEdge({ env: { TRUSTED_PROXIES: '127.0.0.1' } })
    const port = Number(new URL(proxy.url).port)
    const sockets: Socket[] = []
    for (let n = 0; n < unauthenticatedPerSourceMax + 300; n++) {
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      socket.resume()
      await once(socket, 'connect')
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    }
    await new Promise((resolve) => setTimeout(resolve, unauthenticatedMs + 2_500))
    expect(sockets.filter(({ readyState }) => readyState !== 'open')).toEqual([])
    for (const socket of sockets) socket.destroy()
  })
})

describe('a flood of refused requests', () => {
  it('has a bounded number of lines, and a count of the omitted ones', async () => {
    const before = lines().length
    const sent = 600
    await Promise.all(Array.from({ length: sent }, () => send(edge, '{}', { secret })))
    const leftOut = () =>
      lines().reduce((sum, line) => sum + (line.left_out?.signature_invalid ?? 0), 0)
    await until('the rest is counted', () => {
      const written = lines().slice(before)
      const logged = written.filter(({ code }) => code === 'signature_invalid').length
      return logged + leftOut() >= sent
    })
    expect(lines().length - before).toBeLessThan(200)
  })

  it('leaves no secret, no signature and no part of a body in the log', () => {
    for (const text of [secret, 'nobody-logs-me', 'device-', 'x-service-signature']) {
      expect(edge.output()).not.toContain(text)
    }
  })
})

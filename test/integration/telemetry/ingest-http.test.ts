/**
 * The HTTP behaviour of ingest on a real edge: media types, sizes, addresses and endless senders.
 * All kinds of hostile input are in `edge-input.test.ts`.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import {
  type Answer,
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edge: TestEdge
let acme: TestTenant

beforeAll(async () => {
  rig = await startEdgeRig()
  acme = await rig.projectTenant('acme')
  edge = await rig.startEdge()
})

afterAll(() => rig.stop())

const sendAs = (tenant: TestTenant, body: string | Uint8Array, headers = {}) =>
  send(edge, body, { secret: tenant.secret, headers })

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
  expect(answer.body).toMatchObject({ status, code })
}

describe('415', () => {
  it.each([
    ['content-type', 'text/plain'],
    ['content-encoding', 'gzip'],
  ])('%s: %s', async (name, value) => {
    const answer = await sendAs(acme, bodyOf('acme'), { [name]: value })
    expectProblem(answer, 415, 'unsupported_media_type')
  })

  it('no content type at all', async () => {
    const body = bodyOf('acme')
    const text = await sendRaw([
      `POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nConnection: close\r\n` +
        `X-Service-Signature: ${signBody(body, acme.secret)}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ])
    expect(text).toMatch(/^HTTP\/1.1 415 /)
  })
})

/** Writes pieces to the edge's socket and returns all received bytes until the connection ends. */
function sendRaw(pieces: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    for (const piece of pieces) socket.write(piece)
  })
}

describe('413', () => {
  const head = (more: string) =>
    `POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${more}\r\n\r\n`

  it('for a declared length, before any of the body', async () => {
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    const answer = new Promise<string>((resolve) => {
      socket.once('data', (chunk) => resolve(String(chunk)))
    })
    socket.write(head('Content-Length: 10485760'))
    expect(await answer).toMatch(/^HTTP\/1.1 413 /)
    socket.destroy()
  })

  it('for chunks that add up, after which the connection ends', async () => {
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    const body = bodyOf('acme')
    const text = await sendRaw([
      head('Transfer-Encoding: chunked') + chunk.repeat(10),
      '0\r\n\r\n',
      head(
        `Connection: close\r\nX-Service-Signature: ${signBody(body, acme.secret)}\r\n` +
          `Content-Length: ${body.length}`,
      ) + body,
    ])
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413'])
    expect(text).toMatch(/connection: close/i)
  })

  it('for ten megabytes, which are not read: the answer arrives', async () => {
    const answer = await sendAs(acme, 'x'.repeat(10 * 1024 * 1024))
    expectProblem(answer, 413, 'body_too_large')
  })

  it('and a body without end is cut off', async () => {
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    socket.on('error', () => undefined)
    socket.write(head('Transfer-Encoding: chunked'))
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
      if (!socket.destroyed) socket.once('drain', more)
    }
    more()
    await closed
    expect(text).toMatch(/^HTTP\/1.1 413 /)
  })

  it('a wrong length makes no second request of the rest', async () => {
    const body = bodyOf('acme')
    const text = await sendRaw([
      head(`X-Service-Signature: ${signBody(body, acme.secret)}\r\nContent-Length: 20`) + body,
    ])
    expect(text.match(/HTTP\/1.1 \d+/g)?.at(-1)).toBe('HTTP/1.1 400')
    expect(text).not.toContain('HTTP/1.1 200')
  })
})

describe('other requests', () => {
  it('another method gets the allowed methods', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const response = await fetch(`${edge.url}/v1/rasp/ingest`, { method })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toContain('POST')
      expect(((await response.json()) as Answer['body']).code).toBe('method_not_allowed')
    }
  })

  it('another path is a 404', async () => {
    for (const path of ['/', '/v1/rasp/ingest/', '/v1/rasp', '/v1/rasp/ingest2', '/v1/di/alerts']) {
      const response = await fetch(`${edge.url}${path}`, { method: 'POST' })
      expect(response.status, path).toBe(404)
    }
  })

  it('health and readiness are answered', async () => {
    expect((await fetch(`${edge.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${edge.internalUrl}/healthz`)).status).toBe(200)
    expect(await (await fetch(`${edge.internalUrl}/readyz`)).json()).toEqual({
      status: 'ready',
      // No console has made one here.
      warnings: { 'verdict key': 'is not known, so submissions get no verdict token' },
    })
  })

  it('readiness and metrics are not on the public listener', async () => {
    for (const path of ['/readyz', '/metrics', '/metrics/', '//metrics', '/%6detrics']) {
      expect((await fetch(`${edge.url}${path}`)).status, path).toBe(404)
    }
  })
})

describe('request ids', () => {
  it('are random: those of subsequent requests have nothing in common', async () => {
    const ids = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const answer = await sendAs(acme, bodyOf('acme'))
        return answer.headers.get('x-request-id')!
      }),
    )
    expect(ids.every((id) => /^req_[0-9a-f-]{36}$/.test(id))).toBe(true)
    expect(new Set(ids.map((id) => id.slice(0, 12))).size).toBe(ids.length)
    expect(new Set(ids.map((id) => id.slice(-8))).size).toBe(ids.length)
  })
})

describe('a head of many headers', () => {
  const head = (count: number) =>
    `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n` +
    `${Array.from({ length: count - 2 }, (_, n) => `x_${n}: y\r\n`).join('')}\r\n`

  it('may have up to a hundred, beyond that it is a 431', async () => {
    expect(await sendRaw([head(100)])).toMatch(/^HTTP\/1.1 200 /)
    const refused = await sendRaw([head(101)])
    expect(refused).toMatch(/^HTTP\/1.1 431 /)
    expect(refused).toContain('headers_too_large')
  })
})

describe('a broken request', () => {
  it('a request that is cut off leaves nothing behind', async () => {
    const body = bodyOf('acme')
    for (let at = 0; at < 20; at++) {
      const socket = open(`${startOf(body)}${body.slice(0, body.length / 2)}`)
      await new Promise((resolve) => socket.once('connect', resolve))
      socket.resetAndDestroy()
    }
    expect((await sendAs(acme, bodyOf('acme'))).status).toBe(200)
    expect(await edge.count('di_ingest_waiting_events')).toBe(0)
  })
})

function open(text: string): Socket {
  const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(text)
  return socket
}

const startOf = (body: string) =>
  `POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
  `X-Service-Signature: ${signBody(body, acme.secret)}\r\nContent-Length: ${body.length}\r\n\r\n`

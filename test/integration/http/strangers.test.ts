/**
 * Connections of clients that have shown no valid signature. In any number and with any behaviour,
 * they do not delay new clients or the health checks, and they are closed within seconds.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  type SpawnedEdge,
  startEdgeRig,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edge: SpawnedEdge
let port: number
let secret: string

beforeAll(async () => {
  rig = await startEdgeRig()
  ;({ secret } = await rig.projectTenant('acme'))
  edge = await rig.spawnEdge()
  port = Number(new URL(edge.url).port)
})

afterAll(() => rig.stop())

const strangers = new Set<Socket>()
afterEach(() => {
  for (const socket of strangers) socket.destroy()
  strangers.clear()
})

const head = 'POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const refused = `${head}X-Service-Signature: ${'A'.repeat(43)}=\r\nContent-Length: 2\r\n\r\n{}`
const signed = (more = '') => {
  const body = bodyOf('acme')
  const signature = `X-Service-Signature: ${signBody(body, secret)}\r\n`
  return `${head}${more}${signature}Content-Length: ${body.length}\r\n\r\n${body}`
}

/** A connection from one of the addresses of this machine. */
function dial(localAddress: string): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    strangers.add(socket)
    socket.on('error', () => undefined)
    socket.once('connect', () => resolve(socket))
    socket.once('close', () => {
      strangers.delete(socket)
      resolve(socket)
    })
    socket.resume()
  })
}

/** Opens `each` connections from each address, writes to each, and leaves them idle. */
async function crowd(addresses: number, each: number, bytes: string): Promise<void> {
  for (let n = 0; n < addresses; n++) {
    for (let begun = 0; begun < each; begun += 200) {
      const count = Math.min(200, each - begun)
      const sockets = await Promise.all(
        Array.from({ length: count }, () => dial(`127.0.1.${n + 1}`)),
      )
      for (const socket of sockets) socket.write(bytes)
    }
  }
}

/** The answer to a new client, and its time in ms. */
function requestAnew(localAddress: string, request: string) {
  const startMs = performance.now()
  return new Promise<{ status: number; tookMs: number }>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      if (text.includes('\r\n\r\n')) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () =>
      resolve({ status: Number(text.slice(9, 12)), tookMs: performance.now() - startMs }),
    )
    socket.write(request)
  })
}

const count = (name: string, labels = {}) => readMetric(edge.internalUrl, name, labels)

/**
 * Gathers a crowd until a new client is answered at once while it is connected, as a busy machine
 * delays some. A client that waited for the place of a slow sender would always take ten seconds.
 */
async function expectServed(gather: () => Promise<unknown>): Promise<void> {
  await until('a new client is served at once', async () => {
    await gather()
    const answer = await requestAnew('127.0.2.1', signed())
    expect(answer.status).toBe(200)
    return answer.tookMs < 3_000
  })
  for (const url of [edge.url, edge.internalUrl]) {
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  }
}

const areGone = () => until('all of them are gone', () => strangers.size === 0)

describe('more connections than an edge accepts', () => {
  it('with one rejected request each, then silence: new clients are served at once', async () => {
    await expectServed(() => crowd(10, 830, refused))
    await areGone()
  })

  it('from one address: other addresses are not affected', async () => {
    await expectServed(async () => {
      await crowd(1, 3_000, '')
      // The edge closes connections beyond 1,024 after it has accepted them.
      await until('the rest is closed', () => strangers.size <= 1_024)
    })
  })
})

describe('a connection', () => {
  it('that continues with rejected requests is closed within seconds', async () => {
    const socket = await dial('127.0.1.1')
    const startMs = performance.now()
    let text = ''
    socket.on('data', (chunk) => {
      text = (text + chunk).slice(-2_000)
    })
    const timer = setInterval(() => socket.write(refused), 100)
    await until('it is closed', () => !strangers.has(socket))
    clearInterval(timer)
    expect(performance.now() - startMs).toBeGreaterThan(2_000)
    expect(text).toMatch(/connection: close/i)
  })

  it('that has shown a valid signature is kept', async () => {
    const socket = await dial('127.0.1.1')
    socket.write(signed())
    await new Promise((resolve) => setTimeout(resolve, 9_000))
    expect(strangers.has(socket)).toBe(true)
  })
})

describe('incomplete bodies', () => {
  const countCut = () => count('di_ingest_refused_total', { reason: 'body_cut' })
  const countBytes = () => count('di_ingest_incomplete_bodies_bytes')
  /** Begins bodies until so many are cut off: a busy machine may lose some to their time limit. */
  const cut = async (most: number, begin: () => Promise<void>) => {
    const before = await countCut()
    await until('the first are cut', async () => {
      await begin()
      return (await countCut()) > before + most
    })
    expect(await countBytes()).toBeLessThanOrEqual(16 * 1024 * 1024)
  }
  // A client sees the end of its connection before the edge has released the body.
  const areReleased = () => until('all are released', async () => (await countBytes()) === 0)
  const toStart = (head: string, length: number) =>
    `${head}Content-Length: ${length + 1}\r\n\r\n${'x'.repeat(length)}`

  it('are bounded in total: the oldest of them get a 408 and are closed', async () => {
    await expectServed(() => cut(100, () => crowd(4, 200, toStart(head, 60_000))))
    await areGone()
    await areReleased()
  })

  it('of batches are bounded apart: they cut off each other, and no submission', async () => {
    const batchHead = head.replace('/v1/rasp/ingest', '/v1/rasp/ingest/batch')
    await expectServed(() => cut(20, () => crowd(4, 20, toStart(batchHead, 500_000))))
    for (const socket of strangers) socket.destroy()
    await areReleased()
  })
})

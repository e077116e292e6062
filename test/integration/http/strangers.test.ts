/**
 * Connections of clients that have shown no valid signature. In any number and with any behaviour,
 * they do not delay new clients or the health checks, and they are closed within seconds.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  type SpawnedEdge,
  startEdgeRig,
  sumOf,
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

const count = async (name: string, labels = {}) =>
  sumOf(await (await fetch(`${edge.internalUrl}/metrics`)).text(), name, labels)

/** New clients from a fresh address, and both health checks, while the crowd is connected. */
async function expectServed(): Promise<void> {
  for (let n = 0; n < 10; n++) {
    const answer = await requestAnew('127.0.2.1', signed())
    expect(answer.status).toBe(200)
    // Slow senders have ten seconds; a place that waited for one of theirs would take as long.
    expect(answer.tookMs).toBeLessThan(3_000)
  }
  for (const url of [edge.url, edge.internalUrl]) {
    expect((await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(1_000) })).status).toBe(200)
  }
}

describe('more connections than an edge accepts', () => {
  it('with one rejected request each, then silence: new clients are served at once', async () => {
    await crowd(10, 830, refused)
    await expectServed()
    await until('all of them are gone', () => strangers.size === 0, 15_000)
  })

  it('from one address: other addresses are not affected', async () => {
    await crowd(1, 3_000, '')
    // The edge closes connections beyond 1,024 after it has accepted them, so a few are still
    // closing.
    await until('the rest is closed', () => strangers.size <= 1_024, 2_000)
    await expectServed()
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
    await until('it is closed', () => !strangers.has(socket), 12_000)
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
  it('are bounded in total: the oldest of them get a 408 and are closed', async () => {
    const rest = 60_000
    const slow = `${head}Content-Length: ${rest + 1}\r\n\r\n${'x'.repeat(rest)}`
    await crowd(4, 200, slow)
    await until(
      'the first are cut',
      async () => (await count('di_ingest_refused_total', { reason: 'body_cut' })) > 100,
    )
    expect(await count('di_ingest_incomplete_bodies_bytes')).toBeLessThanOrEqual(16 * 1024 * 1024)
    await expectServed()
    await until('all of them are gone', () => strangers.size === 0, 20_000)
    // A client sees the end of its connection before the edge has released the body.
    const areReleased = async () => (await count('di_ingest_incomplete_bodies_bytes')) === 0
    await until('all bodies are released', areReleased, 5_000)
  })

  it('of batches are bounded apart: they cut off each other, and no submission', async () => {
    const cut = await count('di_ingest_refused_total', { reason: 'body_cut' })
    const rest = 500_000
    const batchHead = head.replace('/v1/rasp/ingest', '/v1/rasp/ingest/batch')
    const slow = `${batchHead}Content-Length: ${rest + 1}\r\n\r\n${'x'.repeat(rest)}`
    await crowd(4, 20, slow)
    await until(
      'the first are cut',
      async () => (await count('di_ingest_refused_total', { reason: 'body_cut' })) > cut + 20,
    )
    // Those of batches have no more, and of single submissions there are none.
    expect(await count('di_ingest_incomplete_bodies_bytes')).toBeLessThanOrEqual(16 * 1024 * 1024)
    await expectServed()
    for (const socket of strangers) socket.destroy()
    const areReleased = async () => (await count('di_ingest_incomplete_bodies_bytes')) === 0
    await until('all bodies are released', areReleased, 5_000)
  })
})

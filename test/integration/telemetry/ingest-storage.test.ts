/**
 * The guarantee of a 200: broken brokers, lost acknowledgements, full streams and stops. Every
 * event with a 200 is in the stream, once; when nothing can be stored the answer is a quick 503;
 * and ingest recovers by itself.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { toEventId } from '../../../shared/core/base/ids.ts'
import { pipelinedRequestsMax, retryAfterSeconds } from '../../../shared/core/base/limits/http.ts'
import {
  queuedMsMax,
  queuedRequestsMax,
  waitingEventsMax,
} from '../../../shared/core/base/limits/ingest.ts'
import { signBody } from '../../../shared/core/telemetry/signature.ts'
import { ensureStreams } from '../../../shared/io/nats/streams/ensure-streams.ts'
import { until } from '../../support/process/until.ts'
import {
  type Answer,
  bodyOf,
  type EdgeRig,
  edgeEnvOf,
  nowMs,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let acme: TestTenant
let open: TestEdge[] = []

beforeAll(async () => {
  rig = await startEdgeRig()
  acme = await rig.projectTenant('acme')
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

const sendAs = (edge: { url: string }, body: string) => send(edge, body, { secret: acme.secret })

/** A signed submission in the bytes of a socket. */
function toRequest(body: string): string {
  return (
    `POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
    `X-Service-Signature: ${signBody(body, acme.secret)}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  )
}

function expectUnavailable(answer: Answer): void {
  expect(answer.status).toBe(503)
  expect(answer.body.code).toBe('unavailable')
  expect(answer.headers.get('retry-after')).toBe(String(retryAfterSeconds))
}

async function readiness(edge: { internalUrl: string }) {
  const response = await fetch(`${edge.internalUrl}/readyz`)
  const body = (await response.json()) as { missing?: Record<string, string> }
  return { status: response.status, missing: body.missing ?? {} }
}

async function countStored(body: string): Promise<number> {
  const id = toEventId(Buffer.from(body))
  return (await rig.readStored()).filter(({ event_id: eventId }) => eventId === id).length
}

describe('a lost acknowledgement', () => {
  it('has no effect: the batch is published again with its id and stored once', async () => {
    let lost = 0
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        const outcome = await publish(message, batchId, timeoutMs)
        if (!outcome.duplicate) {
          lost++
          throw new Error('the acknowledgement was lost')
        }
        return outcome
      },
    })
    const bodies = Array.from({ length: 20 }, () => bodyOf('acme'))
    const answers = await Promise.all(bodies.map((body) => sendAs(edge, body)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(lost).toBeGreaterThan(0)
    for (const body of bodies) expect(await countStored(body)).toBe(1)
    expect(await edge.count('di_ingest_publish_retries_total')).toBe(lost)
    expect(await edge.count('di_ingest_publish_duplicates_total')).toBe(lost)
  })

  it('that never comes is a 503 in time, never a 200', async () => {
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        await publish(message, batchId, timeoutMs)
        await new Promise((resolve) => setTimeout(resolve, timeoutMs))
        throw new Error('the acknowledgement was lost')
      },
    })
    const startMs = nowMs()
    expectUnavailable(await sendAs(edge, bodyOf('acme')))
    expect(nowMs() - startMs).toBeLessThan(4_000)
    expect((await readiness(edge)).missing).toHaveProperty('storage')
  })
})

describe('the broker', () => {
  it('when killed: a quick 503, correct readiness, and a recovery by itself', async () => {
    const edge = await startEdge()
    expect((await sendAs(edge, bodyOf('acme'))).status).toBe(200)
    await rig.server.kill('SIGKILL')
    await until('the edge notices', () => !edge.nats.connected())
    for (let at = 0; at < 5; at++) {
      const startMs = nowMs()
      expectUnavailable(await sendAs(edge, bodyOf('acme')))
      expect(nowMs() - startMs).toBeLessThan(1_000)
    }
    expect((await readiness(edge)).missing).toHaveProperty('nats')
    expect((await fetch(`${edge.url}/healthz`)).status).toBe(200)
    await rig.server.restart()
    const body = bodyOf('acme')
    await until('intake is back', async () => (await sendAs(edge, body)).status === 200)
    expect(await countStored(body)).toBe(1)
    expect((await readiness(edge)).status).toBe(200)
  })

  it('when killed under load: every event with a 200 is stored once', async () => {
    const edge = await startEdge()
    const accepted: string[] = []
    const statuses = new Set<number>()
    let running = true
    const client = async () => {
      while (running) {
        const body = bodyOf('acme')
        const { status } = await sendAs(edge, body)
        statuses.add(status)
        if (status === 200) accepted.push(body)
      }
    }
    const clients = Array.from({ length: 16 }, client)
    for (let kills = 0; kills < 3; kills++) {
      const before = accepted.length
      await until('telemetry flows', () => accepted.length > before + 50)
      await rig.server.kill('SIGKILL')
      await rig.server.restart()
    }
    const before = accepted.length
    await until('telemetry flows again', () => accepted.length > before + 50)
    running = false
    await Promise.all(clients)
    const counts = new Map<string, number>()
    for (const { event_id: id } of await rig.readStored()) counts.set(id, (counts.get(id) ?? 0) + 1)
    for (const body of accepted) expect(counts.get(toEventId(Buffer.from(body)))).toBe(1)
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
  })

  it('when it hangs: every answer in time, and a recovery afterwards', async () => {
    const edge = await startEdge()
    process.kill(rig.server.pid, 'SIGSTOP')
    try {
      const startMs = nowMs()
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => sendAs(edge, bodyOf('acme'))),
      )
      expect(nowMs() - startMs).toBeLessThan(4_000)
      for (const answer of answers) expectUnavailable(answer)
      await until('the lease has run out', () => !edge.directory.leaseValid())
      expect((await readiness(edge)).missing).toHaveProperty('directory')
      const refusedMs = nowMs()
      expectUnavailable(await sendAs(edge, bodyOf('acme')))
      expect(nowMs() - refusedMs).toBeLessThan(1_000)
      expect(await edge.count('di_ingest_refused_total', { reason: 'lease' })).toBeGreaterThan(0)
      await until('its silence is noticed', () => !edge.nats.connected())
    } finally {
      process.kill(rig.server.pid, 'SIGCONT')
    }
    const backMs = nowMs()
    await until('intake is back', async () => (await sendAs(edge, bodyOf('acme'))).status === 200)
    expect(nowMs() - backMs).toBeLessThan(5_000)
  })

  it('when it is not up yet: the process runs and rejects, then accepts telemetry', async () => {
    await rig.server.kill('SIGTERM')
    const edge = await rig.spawnEdge({ await: 'healthz' })
    expect((await readiness(edge)).missing).toHaveProperty('nats')
    const answer = () => sendAs(edge, bodyOf('acme')).catch(() => null)
    expectUnavailable(await until('it listens without a lease', answer))
    await rig.server.restart()
    await until('intake begins', async () => (await sendAs(edge, bodyOf('acme'))).status === 200)
    edge.child.kill('SIGTERM')
    expect((await once(edge.child, 'exit'))[0]).toBe(0)
  })
})

describe('more requests than the process may keep', () => {
  it('are rejected at once or after their time in the queue; the rest is stored', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        await released
        return publish(message, batchId, timeoutMs)
      },
    })
    const before = (await rig.readStored()).length
    const extra = 200
    const crowd = waitingEventsMax + queuedRequestsMax + extra
    const requests = Array.from({ length: crowd }, () => toRequest(bodyOf('acme')))
    const sockets = Math.ceil(crowd / pipelinedRequestsMax)
    let text = ''
    const pipelines = Array.from({ length: sockets }, (_, at) => {
      const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.write(requests.filter((_request, index) => index % sockets === at).join(''))
      return socket
    })
    const refusals = () => edge.count('di_ingest_refused_total', { reason: 'overload' })
    await until('the edge is full', async () => (await refusals()) === extra)
    expect(await edge.count('di_ingest_waiting_events')).toBe(waitingEventsMax)
    expect(await edge.count('di_ingest_queued_requests')).toBe(queuedRequestsMax)
    const startMs = nowMs()
    expectUnavailable(await sendAs(edge, bodyOf('acme')))
    expect(nowMs() - startMs).toBeLessThan(1_000)
    await until('the queue is too old', () => nowMs() - startMs > queuedMsMax)
    release()
    const statuses = (status: number) => text.split(`HTTP/1.1 ${status}`).length - 1
    await until('all are answered', () => statuses(200) + statuses(503) === requests.length)
    expect(await refusals()).toBe(extra + 1 + queuedRequestsMax)
    // On a slow machine the time limit of some queued requests has passed by now.
    expect(statuses(200)).toBeGreaterThan(0)
    // There some are stored and get their 503 all the same: the time limit is that of the answer.
    const stored = (await rig.readStored()).length - before
    expect(stored).toBeGreaterThanOrEqual(statuses(200))
    expect(stored).toBeLessThanOrEqual(waitingEventsMax)
    for (const socket of pipelines) socket.destroy()
  })
})

describe('more requests than are decided at once', () => {
  it('wait in the queue, and all of them are stored and answered', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const edge = await startEdge({
      wrapPublish: (publish) => async (message, batchId, timeoutMs) => {
        await released
        return publish(message, batchId, timeoutMs)
      },
    })
    const before = (await rig.readStored()).length
    const crowd = waitingEventsMax + 100
    let answered = ''
    const sockets = Array.from({ length: crowd }, () => {
      const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
      socket.on('data', (chunk) => {
        answered += chunk
      })
      socket.write(toRequest(bodyOf('acme')))
      return socket
    })
    await until('the rest is queued', async () => {
      return (await edge.count('di_ingest_queued_requests')) === 100
    })
    expect(await edge.count('di_ingest_waiting_events')).toBe(waitingEventsMax)
    expect(await edge.count('di_ingest_queued_bytes')).toBeGreaterThan(100 * 100)
    release()
    const count = (status: number) => answered.split(`HTTP/1.1 ${status}`).length - 1
    await until('all are answered', () => count(200) + count(503) === crowd)
    expect(count(200)).toBe(crowd)
    expect((await rig.readStored()).length - before).toBe(crowd)
    expect(await edge.count('di_ingest_queued_requests')).toBe(0)
    expect(await edge.count('di_ingest_queued_bytes')).toBe(0)
    for (const socket of sockets) socket.destroy()
  })
})

describe('more connections than one process accepts', () => {
  it('replace unauthenticated connections; authenticated ones are kept and served', async () => {
    const edge = await startEdge({ connectionsMax: 2 })
    const dial = async () => {
      const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    }
    const expectServed = async (socket: Socket) => {
      socket.write(toRequest(bodyOf('acme')))
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1.1 200/)
    }
    const cuts = (reason: string) => edge.count('di_http_connections_cut_total', { reason })
    const stranger = await dial()
    const second = await dial()
    const third = await dial()
    if (!stranger.closed) await once(stranger, 'close')
    expect(await cuts('displaced')).toBe(1)
    await expectServed(second)
    await expectServed(third)
    const fourth = await dial()
    if (!fourth.closed) await once(fourth, 'close')
    expect(await cuts('full')).toBe(1)
    await expectServed(second)
    await expectServed(third)
    for (const socket of [second, third]) socket.destroy()
  })
})

describe('the stream', () => {
  const setBytes = async (maxBytes: number) => {
    const { config } = await rig.nats.manager.streams.info(telemetryStream)
    await rig.nats.manager.streams.update(telemetryStream, { ...config, max_bytes: maxBytes })
  }

  it('when full: a quick 503, nothing lost, and a recovery when there is space again', async () => {
    const edge = await startEdge()
    const { state, config } = await rig.nats.manager.streams.info(telemetryStream)
    const before = (await rig.readStored()).length
    await setBytes(state.bytes + 10)
    for (let at = 0; at < 3; at++) {
      const startMs = nowMs()
      expectUnavailable(await sendAs(edge, bodyOf('acme')))
      expect(nowMs() - startMs).toBeLessThan(1_000)
    }
    expect((await readiness(edge)).missing.storage).toContain('stream_full')
    expect(await rig.readStored()).toHaveLength(before)
    await setBytes(config.max_bytes)
    expect((await sendAs(edge, bodyOf('acme'))).status).toBe(200)
    expect((await readiness(edge)).status).toBe(200)
  })

  it('when deleted: a 503, and a recovery on the stream that the console creates', async () => {
    const edge = await startEdge()
    await rig.nats.manager.streams.delete(telemetryStream)
    const body = bodyOf('acme')
    await until('intake is back', async () => (await sendAs(edge, body)).status === 200)
    expect(await countStored(body)).toBe(1)
    await ensureStreams(rig.nats)
  })
})

describe('a stop', () => {
  it('under load loses no answered event, resets nothing, and unregisters the edge', async () => {
    const edge = await rig.spawnEdge()
    const accepted: string[] = []
    const refused: number[] = []
    const cut: string[] = []
    let running = true
    const client = async () => {
      while (running) {
        const body = bodyOf('acme')
        try {
          const answer = await sendAs(edge, body)
          if (answer.status === 200) accepted.push(body)
          else refused.push(answer.status)
        } catch (error) {
          const { code } = (error as { cause?: { code?: string } }).cause ?? {}
          // Once it no longer listens, connections are refused.
          if (code === 'ECONNREFUSED') return
          // An idle connection may be closed at the moment when its next request is sent.
          cut.push(body)
        }
      }
    }
    const clients = Array.from({ length: 16 }, client)
    await until('telemetry flows', () => accepted.length > 200)
    edge.child.kill('SIGTERM')
    const [code] = await once(edge.child, 'exit')
    running = false
    await Promise.all(clients)
    expect(code).toBe(0)
    expect(refused).toEqual([])
    const stored = new Set((await rig.readStored()).map(({ event_id: id }) => id))
    for (const body of accepted) expect(stored.has(toEventId(Buffer.from(body)))).toBe(true)
    for (const body of cut) expect(stored.has(toEventId(Buffer.from(body)))).toBe(false)
    expect(edge.output()).not.toMatch(/"level":(50|60)/)
  })

  it('waits for a request that lacks its last byte', async () => {
    const edge = await rig.spawnEdge()
    const body = bodyOf('acme')
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(
      `POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `X-Service-Signature: ${signBody(body, acme.secret)}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    )
    // The edge has begun to read it: a later request is answered.
    expect((await sendAs(edge, bodyOf('acme'))).status).toBe(200)
    edge.child.kill('SIGTERM')
    await until('the edge no longer listens', () =>
      fetch(`${edge.url}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    socket.write(body.slice(-1))
    const [code] = await once(edge.child, 'exit')
    expect(code).toBe(0)
    expect(text).toMatch(/^HTTP\/1.1 200 /)
    expect(text).toMatch(/^connection: close/im)
    expect(await countStored(body)).toBe(1)
  })

  it('does not wait for ever for a request that never ends', async () => {
    const edge = await rig.spawnEdge()
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('POST /v1/rasp/ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n')
    expect((await sendAs(edge, bodyOf('acme'))).status).toBe(200)
    const startMs = nowMs()
    edge.child.kill('SIGTERM')
    const [code] = await once(edge.child, 'exit')
    expect(code).toBe(0)
    expect(nowMs() - startMs).toBeLessThan(8_000)
    socket.destroy()
  })

  it('follows when the parent is killed, even when its output has no reader', async () => {
    const wrapper = `
      const { spawn } = require('node:child_process')
      const env = { ...process.env, PARENT_PID: String(process.pid) }
      const child = spawn(process.execPath, [process.env.MAIN], { env, stdio: 'pipe' })
      child.stdout.once('data', () => process.stdout.write(String(child.pid)))`
    // Without NATS there is nothing to drain: the process logs its stop and ends at once.
    const env = {
      MAIN: fileURLToPath(new URL('../../../services/ingest/main.ts', import.meta.url)),
      ...edgeEnvOf(rig.masterKey),
      NATS_URL: 'nats://127.0.0.1:1',
      INGEST_LISTEN: '127.0.0.1:0',
      INGEST_INTERNAL_LISTEN: '127.0.0.1:0',
    }
    const parent = spawn(process.execPath, ['-e', wrapper], { env, stdio: 'pipe' })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = Number(line)
    const isAlive = () => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    expect(isAlive()).toBe(true)
    parent.kill('SIGKILL')
    await until('the orphan has ended', () => !isAlive())
  })
})

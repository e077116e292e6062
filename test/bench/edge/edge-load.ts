/**
 * The load on an edge, in its own process: signed submissions, all different and made beforehand,
 * over persistent plain sockets. It parses no more of an answer than its end, to use as little as
 * possible of the shared cores.
 */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { percentile } from '../../support/process/percentile.ts'
import { makeAddresses } from '../network/network-files.ts'
import { createInstalls, signEvidence } from './installs.ts'
import { createSubmissions } from './submissions.ts'

/** An order to this process; it answers each with one message. */
export type LoadOrder =
  /** `batch` is the events of each request, of the batch address; without it one, sent alone. */
  | {
      do: 'prepare'
      count: number
      tenantId: string
      secret: string
      batch?: number
      /** Signs each with the key of its install, whose token is of this epoch and root. */
      root?: { epoch: number; bytes: string }
      /** Every how many events evidence of its own comes with one; none without it. */
      evidenceEvery?: number
      /** Names a client for each, as a proxy does: so many different ones. */
      addresses?: number
    }
  /** Requests that were made elsewhere, byte for byte. */
  | { do: 'take'; requests: string[] }
  /**
   * As fast as answers come, over `connections`, until the time has passed or the bodies are used
   * up.
   */
  | { do: 'closed'; port: number; connections: number; seconds: number }
  /**
   * At a fixed rate, whatever the answers are; a request without a free connection waits for one.
   */
  | { do: 'open'; port: number; connections: number; seconds: number; rate: number }

export type LoadResult = {
  /** Answers by their status; 0 where the connection broke. */
  statuses: Record<number, number>
  seconds: number
  /**
   * ms from the scheduled time of a request (its sending, in a closed loop) to its answer, by
   * status.
   */
  latencies: Record<number, { p50: number; p99: number; max: number }>
  cpuSeconds: number
}

type Connection = { socket: Socket; dueMs: number; busy: boolean; left: number; head: string }

let requests: Buffer[] = []
let next = 0

function prepare(order: LoadOrder & { do: 'prepare' }): void {
  const { count, tenantId, secret, batch } = order
  next = 0
  const installOf = order.root === undefined ? null : createInstalls(tenantId, order.root)
  const make = createSubmissions(tenantId, randomBytes(6).toString('hex'))
  const makeBatch = (events: number) =>
    `{"tenant_id":"${tenantId}","events":[${Array.from({ length: events }, make).join(',')}]}`
  const path = batch === undefined ? '' : '/batch'
  const { evidenceEvery = Number.POSITIVE_INFINITY } = order
  const addresses = order.addresses === undefined ? [] : makeAddresses(order.addresses)
  requests = Array.from({ length: count }, (_, n) => {
    const body = batch === undefined ? make() : makeBatch(batch)
    const install = installOf?.(body)
    const token = install === undefined ? '' : `x-service-install: ${install.token}\r\n`
    return Buffer.from(
      `POST /v1/rasp/ingest${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: rasp-sdk/4.2.0\r\n` +
        'accept: application/json\r\ncontent-type: application/json\r\n' +
        `content-length: ${Buffer.byteLength(body)}\r\n` +
        (addresses.length === 0 ? '' : `x-forwarded-for: ${addresses[n % addresses.length]}\r\n`) +
        (n % evidenceEvery === 1 ? `x-service-attestation: ${signEvidence(body)}\r\n` : '') +
        `${token}x-service-signature: ${signBody(body, install?.key ?? secret)}\r\n\r\n${body}`,
    )
  })
}

async function load(order: LoadOrder & { do: 'closed' | 'open' }): Promise<LoadResult> {
  const waits = new Map<number, number[]>()
  const free: Connection[] = []
  const everyMs = order.do === 'open' ? 1_000 / order.rate : 0
  // When the first request may be due: not before every connection is open.
  let startMs = Number.POSITIVE_INFINITY
  let endMs = Number.POSITIVE_INFINITY
  let sent = 0
  let open = 0
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const send = (connection: Connection, dueMs: number) => {
    connection.busy = true
    connection.dueMs = dueMs
    connection.socket.write(requests[next++]!)
    sent++
    open++
  }
  // When the next request is due, or null when there are no more.
  const nextDue = (): number | null => {
    if (next >= requests.length) return null
    if (order.do === 'closed') {
      const now = performance.now()
      return now < endMs ? now : null
    }
    const due = startMs + sent * everyMs
    return due < endMs ? due : null
  }
  const answered = (connection: Connection, status: number) => {
    const list = waits.get(status)
    const took = performance.now() - connection.dueMs
    if (list === undefined) waits.set(status, [took])
    else list.push(took)
    connection.busy = false
    open--
    const due = nextDue()
    if (status !== 0 && due !== null && due <= performance.now()) send(connection, due)
    else if (status !== 0) free.push(connection)
    if (due === null && open === 0) finish()
  }
  const connections = await Promise.all(
    Array.from({ length: order.connections }, () => openConnection(order.port, answered)),
  )
  free.push(...connections)
  const startCpu = process.cpuUsage()
  startMs = performance.now()
  endMs = startMs + order.seconds * 1_000
  const pump = () => {
    for (let due = nextDue(); due !== null && free.length > 0; due = nextDue()) {
      if (due > performance.now()) break
      send(free.pop()!, due)
    }
    if (nextDue() === null && open === 0) finish()
  }
  const timer = setInterval(pump, 1)
  pump()
  await finished
  clearInterval(timer)
  const seconds = (performance.now() - startMs) / 1_000
  const { user, system } = process.cpuUsage(startCpu)
  for (const { socket } of connections) socket.destroy()
  return {
    seconds,
    cpuSeconds: (user + system) / 1e6,
    statuses: Object.fromEntries([...waits].map(([status, list]) => [status, list.length])),
    latencies: Object.fromEntries(
      [...waits].map(([status, list]) => [
        status,
        { p50: percentile(list, 0.5), p99: percentile(list, 0.99), max: percentile(list, 1) },
      ]),
    ),
  }
}

/** Reads answers one after another; at most one request is in flight. */
function openConnection(
  port: number,
  answered: (connection: Connection, status: number) => void,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const connection: Connection = { socket, dueMs: 0, busy: false, left: 0, head: '' }
    socket.once('connect', () => resolve(connection))
    socket.once('error', reject)
    socket.on('close', () => {
      if (connection.busy) answered(connection, 0)
    })
    socket.on('data', (chunk) => {
      connection.head += chunk.toString('latin1')
      const { head } = connection
      const end = head.indexOf('\r\n\r\n')
      if (end === -1) return
      const at = head.indexOf('ontent-')
      const mark = head.indexOf('ength: ', at)
      if (head.length - end - 4 < Number.parseInt(head.slice(mark + 7, mark + 13), 10)) return
      connection.head = ''
      answered(connection, Number(head.slice(9, 12)))
    })
  })
}

function take(order: LoadOrder & { do: 'take' }): void {
  next = 0
  requests = order.requests.map((request) => Buffer.from(request))
}

async function follow(order: LoadOrder): Promise<LoadResult | null> {
  if (order.do === 'closed' || order.do === 'open') return load(order)
  if (order.do === 'prepare') prepare(order)
  else take(order)
  return null
}

process.on('message', (order: LoadOrder) => {
  const work = follow(order)
  work.then((result) => process.send!(result))
})
process.send!('ready')

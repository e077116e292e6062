/**
 * The fleet of the freshness benchmark, in its own process: submissions at a constant rate,
 * whatever the answers are, over persistent plain sockets. Submissions are made and signed shortly
 * before they are due, and an answer is parsed only as far as necessary, to use as little as
 * possible of the shared cores.
 */
import { createSecretKey } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { deservesAlert, toSubmission } from './freshness-bodies.ts'

/** An order to this process; it answers `begun`, and at the end a result. */
export type FleetOrder = {
  port: number
  tenantId: string
  secret: string
  /** Makes the ids of one run differ from those of any other. */
  run: string
  rate: number
  seconds: number
  connections: number
}

export type FleetResult = {
  /** When the first was due, in ms since 1970; the n-th is due n / rate later. */
  startMs: number
  /** Of each submission: the answer's status, 0 where the connection broke. */
  statuses: Uint16Array
  /** ms from the scheduled time to the answer. */
  tookMs: Float32Array
  /** Submissions that must raise an alert and were not answered with BLOCK. */
  misjudged: number
  cpuSeconds: number
}

type Connection = { socket: Socket; n: number; text: string }

/** Milliseconds since 1970 with fractions, equal for all processes of a machine. */
const nowMs = () => performance.timeOrigin + performance.now()

/** How long before their time submissions are made. */
const aheadMs = 500

async function run(order: FleetOrder): Promise<FleetResult> {
  const { rate, tenantId } = order
  const count = Math.floor(order.seconds * rate)
  const statuses = new Uint16Array(count)
  const tookMs = new Float32Array(count)
  const key = createSecretKey(order.secret, 'utf8')
  const prepare = (n: number) => toRequest(toSubmission(tenantId, order.run, n), key)
  const ahead = Math.ceil((rate * aheadMs) / 1_000)
  const ready: Buffer[] = []
  let prepared = 0
  const prepareTo = (n: number) => {
    for (const to = Math.min(n, count); prepared < to; prepared++) {
      ready[prepared % (2 * ahead)] = prepare(prepared)
    }
  }
  const free: Connection[] = []
  let sent = 0
  let ended = 0
  let misjudged = 0
  let startMs = 0
  const dueOf = (n: number) => startMs + (n * 1_000) / rate
  const finished = new Promise<void>((resolve) => {
    const answered = (connection: Connection, status: number) => {
      const { n, text } = connection
      connection.n = -1
      statuses[n] = status
      tookMs[n] = nowMs() - dueOf(n)
      if (status === 200 && deservesAlert(n) && !text.includes('"BLOCK"')) misjudged++
      ended++
      free.push(connection)
      send()
      if (ended === count) resolve()
    }
    for (let n = 0; n < order.connections; n++) free.push(openConnection(order.port, answered))
  })
  const send = () => {
    // First in, first out, so that no connection is idle for long.
    while (sent < count && free.length > 0 && dueOf(sent) <= nowMs()) {
      const connection = free.shift()!
      prepareTo(sent + 1)
      connection.n = sent
      connection.socket.write(ready[sent++ % (2 * ahead)]!)
    }
  }
  prepareTo(ahead)
  await Promise.all(free.map(({ socket }) => new Promise((done) => socket.once('connect', done))))
  const before = process.cpuUsage()
  startMs = nowMs() + 50
  process.send!({ begun: startMs })
  const timer = setInterval(() => {
    send()
    prepareTo(Math.min(sent + ahead, prepared + Math.ceil(rate / 250)))
  }, 1)
  await finished
  clearInterval(timer)
  const { user, system } = process.cpuUsage(before)
  for (const { socket } of free) socket.destroy()
  return { startMs, statuses, tookMs, misjudged, cpuSeconds: (user + system) / 1e6 }
}

function toRequest(body: string, key: ReturnType<typeof createSecretKey>): Buffer {
  return Buffer.from(
    'POST /v1/rasp/ingest HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: rasp-sdk/4.2.0\r\n' +
      'accept: application/json\r\ncontent-type: application/json\r\n' +
      `content-length: ${body.length}\r\n` +
      `x-service-signature: ${signBody(body, key)}\r\n\r\n${body}`,
    'latin1',
  )
}

/** At most one request in flight. A broken connection is replaced. */
function openConnection(
  port: number,
  answered: (connection: Connection, status: number) => void,
): Connection {
  const connection: Connection = { socket: connectTo(port), n: -1, text: '' }
  const listen = () => {
    const { socket } = connection
    socket.on('error', () => undefined)
    socket.on('close', () => {
      const underWay = connection.n
      if (underWay === -1) return
      connection.socket = connectTo(port)
      connection.text = ''
      listen()
      answered(connection, 0)
    })
    socket.on('data', (chunk) => {
      connection.text += chunk.toString('latin1')
      const { text } = connection
      if (!isWhole(text)) return
      answered(connection, Number(text.slice(9, 12)))
      connection.text = ''
    })
  }
  listen()
  return connection
}

const connectTo = (port: number) => connect({ port, host: '127.0.0.1', noDelay: true })

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const at = text.search(/content-length: /i)
  const bytes = at === -1 ? 0 : Number.parseInt(text.slice(at + 16, at + 24), 10)
  return text.length - end - 4 >= bytes
}

process.on('message', (order: FleetOrder) => {
  void run(order).then((result) => process.send!(result))
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')

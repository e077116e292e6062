/**
 * The quick way for one route's plain requests: it reads them off the connection and answers them
 * without Node's request, response and streams between, which cost more than all that is done with
 * a submission. A connection on which anything else arrives is handed over, with every byte as it
 * came, to Node's own HTTP server for good: so are requests that take their time, whose limits are
 * then Node's, and those that are sent ahead of an answer.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type PlainHead, readPlainHead, toPlainRequestLine } from '#shared/core/plain-request.ts'

/** One connection, and the one request on it that is being answered. */
export type PlainConnection = {
  readonly socket: Socket
  /** What has come of a request that is not whole yet. */
  chunks: Buffer[]
  bytes: number
  /** Its head, once that is there. */
  head: PlainHead | null
  /** When its first byte came, in turns of the clock below. */
  since: number
  /** Whether a request waits for its answer. */
  busy: boolean
  /** What came behind that request. */
  rest: Buffer | null
  /** Whether the connection ends with the answer: its client asked for it, or has ended its side. */
  closing: boolean
  /** Whether a request has come on it. */
  used: boolean
  /** Gives it, with bytes that are to be read again, to Node's server. */
  handOver: (bytes: Buffer) => void
}

export type PlainConnections = {
  /** Ends the connections on which nothing is under way. */
  closeIdle: () => void
  closeAll: () => void
  /** Connections that have not been handed over. */
  count: () => number
}

export type PlainOptions = {
  path: string
  /** Bodies up to this are read here. */
  bodyBytesMax: number
  /**
   * Takes a whole request and, once, now or later, has it answered by `answerPlain`. Says false
   * when it wants it handed over instead.
   */
  handle: (head: PlainHead, body: Buffer, connection: PlainConnection) => boolean
  /** Told of each connection that is handed over. */
  handedOver: () => void
  /** How long an idle connection is kept, as the server's other ones are. */
  keepAliveMs: number
  /** How long a connection may be open before its first byte. */
  silentMs: number
}

/** How often slow requests are looked for: one takes half a second at most before it is Node's. */
const turnMs = 250

/** Puts itself before the server's own handling of connections. */
export function servePlainly(server: Server, options: PlainOptions): PlainConnections {
  const others = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  const requestLine = toPlainRequestLine(options.path)
  const open = new Set<PlainConnection>()
  const partial = new Set<PlainConnection>()
  let turn = 0

  const keep = (connection: PlainConnection, chunk: Buffer): void => {
    if (connection.bytes === 0) {
      connection.since = turn
      partial.add(connection)
    }
    connection.chunks.push(chunk)
    connection.bytes += chunk.length
  }

  const read = (connection: PlainConnection, chunk: Buffer): void => {
    let bytes = chunk
    if (connection.bytes > 0) {
      keep(connection, chunk)
      const { head } = connection
      if (head !== null && connection.bytes < head.headBytes + head.bodyBytes) return
      bytes = Buffer.concat(connection.chunks, connection.bytes)
    }
    const head = connection.head ?? readPlainHead(bytes, requestLine)
    if (head === 'other' || (head !== null && head.bodyBytes > options.bodyBytesMax)) {
      connection.handOver(bytes)
      return
    }
    const whole = head !== null && bytes.length >= head.headBytes + head.bodyBytes
    if (!whole) {
      connection.head = head
      if (connection.bytes === 0) keep(connection, chunk)
      else connection.chunks = [bytes]
      return
    }
    if (connection.bytes > 0) {
      connection.chunks = []
      connection.bytes = 0
      connection.head = null
      partial.delete(connection)
    }
    take(connection, head, bytes)
  }

  /** What was sent ahead of an answer waits for it, and so does its sender. */
  const wait = (connection: PlainConnection, chunk: Buffer): void => {
    const { rest } = connection
    connection.rest = rest === null ? chunk : Buffer.concat([rest, chunk])
    connection.socket.pause()
  }

  const take = (connection: PlainConnection, head: PlainHead, bytes: Buffer): void => {
    const end = head.headBytes + head.bodyBytes
    if (bytes.length > end) {
      connection.handOver(bytes)
      return
    }
    connection.busy = true
    connection.used = true
    connection.since = turn
    if (head.close) connection.closing = true
    if (!options.handle(head, bytes.subarray(head.headBytes), connection)) {
      connection.handOver(bytes)
    }
  }

  const accept = (socket: Socket): void => {
    const connection: PlainConnection = {
      socket,
      chunks: [],
      bytes: 0,
      head: null,
      since: turn,
      busy: false,
      rest: null,
      closing: false,
      used: false,
      handOver: (bytes) => {
        socket.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
        onClose()
        options.handedOver()
        socket.pause()
        socket.unshift(bytes)
        for (const listener of others) listener.call(server, socket)
        process.nextTick(() => socket.resume())
      },
    }
    const onData = (chunk: Buffer) => {
      if (connection.busy) wait(connection, chunk)
      else read(connection, chunk)
    }
    const onEnd = () => {
      if (connection.busy) connection.closing = true
      else if (connection.bytes === 0) socket.end()
      // Too late to hand it over: it is told what Node's server tells of such a request.
      else if (!server.emit('clientError', toCutOff(), socket)) socket.destroy()
    }
    const onError = () => socket.destroy()
    const onClose = () => {
      open.delete(connection)
      partial.delete(connection)
    }
    open.add(connection)
    socket.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  }
  server.on('connection', accept)

  const timer = setInterval(() => {
    turn++
    for (const connection of partial) {
      if (turn - connection.since < 2) continue
      connection.handOver(Buffer.concat(connection.chunks, connection.bytes))
    }
    for (const connection of open) {
      if (connection.busy || connection.bytes > 0) continue
      const idleMs = (turn - connection.since - 1) * turnMs
      if (idleMs > (connection.used ? options.keepAliveMs : options.silentMs)) {
        connection.socket.destroy()
      }
    }
  }, turnMs)
  timer.unref()
  server.on('close', () => clearInterval(timer))

  return {
    closeIdle: () => {
      for (const { busy, bytes, socket } of open) if (!busy && bytes === 0) socket.destroy()
    },
    closeAll: () => {
      for (const { socket } of open) socket.destroy()
    },
    count: () => open.size,
  }
}

/** A request that is at its end before it is whole, as Node's parser calls it. */
function toCutOff(): Error {
  return Object.assign(new Error('a request was cut off'), { code: 'HPE_INVALID_EOF_STATE' })
}

/**
 * Answers the request under way on a connection.
 * @param text the whole answer, head and body
 */
export function answerPlain(
  connection: PlainConnection,
  text: string,
  encoding: 'latin1' | 'utf8',
): void {
  const { socket } = connection
  connection.busy = false
  if (socket.destroyed || !socket.writable) return
  const flowing = socket.write(text, encoding)
  if (connection.closing) {
    socket.end()
    return
  }
  if (connection.rest !== null) connection.handOver(connection.rest)
  // Who does not read what it is answered is not read either.
  else if (!flowing) {
    socket.pause()
    socket.once('drain', () => socket.resume())
  }
}

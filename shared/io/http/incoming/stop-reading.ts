/**
 * Ends a connection without reading what its client still sends. The answer is written, the
 * connection is half closed, and for a moment bytes are discarded unparsed, so that a client that
 * sends first and reads later usually sees the answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { discardedBytesMax, lingerMs, stoppedMsMax } from '#shared/core/base/limits/http.ts'

/** Connections that serve no further request. */
const ending = new WeakSet<Socket>()
const stopped = new WeakSet<Socket>()
const lingering = new WeakSet<Socket>()

export const isEnding = (socket: Socket): boolean => ending.has(socket)

/** Serves no request after the present one. The body of that one is still read. */
export function serveNoMore(socket: Socket): void {
  ending.add(socket)
}

/** Whether the connection is being ended and no byte of it is parsed. */
export const isStopped = (socket: Socket): boolean => stopped.has(socket)

/**
 * Parses no further byte of a connection. Pending responses are still sent; whoever ends the
 * connection calls `destroySoon`, as Node does after a response with `Connection: close`.
 */
export function stopReading(socket: Socket): void {
  if (stopped.has(socket)) return
  ending.add(socket)
  stopped.add(socket)
  socket.destroySoon = () => linger(socket)
  const restore = silenceParser(socket as ParsedSocket)
  // A client that reads no answers must not keep the connection.
  const timer = setTimeout(() => socket.destroy(), stoppedMsMax)
  // Before Node gives the parser to another connection.
  socket.prependOnceListener('close', () => {
    clearTimeout(timer)
    restore()
  })
  // After the bytes that Node has read already went through its parser.
  setImmediate(() => {
    restore()
    if (!socket.destroyed) discard(socket)
  })
}

/** Whether a part of the body of a request has not been read. */
function isUnread({ complete, headers }: IncomingMessage): boolean {
  // A request that was injected without a connection does not have it.
  if (complete !== false) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Ends the connection with a response when the body of its request has not been read to its end:
 * then nothing more is read. Call it before the head is written.
 */
export function endIfUnread(response: ServerResponse): void {
  const { req } = response
  if (response.headersSent || !isUnread(req)) return
  response.setHeader('connection', 'close')
  stopReading(req.socket)
}

/**
 * Calls `respond` once a body that came with the head of its request is read, so that a refusal by
 * the head alone does not end the connection.
 */
export function afterHead(request: IncomingMessage, respond: () => void): void {
  if (!isUnread(request)) {
    respond()
    return
  }
  request.resume()
  setImmediate(respond)
}

function discard(socket: Socket): void {
  let left = discardedBytesMax
  socket.removeAllListeners('data')
  socket.removeAllListeners('end')
  // Also takes the socket away from Node's parser.
  socket.on('data', (piece: Buffer) => {
    left -= piece.length
    if (left < 0) socket.pause()
  })
  socket.on('end', () => {
    if (lingering.has(socket)) socket.destroy()
  })
  socket.resume()
}

function linger(socket: Socket): void {
  if (lingering.has(socket)) return
  lingering.add(socket)
  if (socket.readableEnded) {
    socket.end(() => socket.destroy())
    return
  }
  socket.end()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

/** Parts of Node's parser that have no public form. Without them a connection ends a bit later. */
type Parser = Record<string, unknown> & { onIncoming?: unknown }
type ParsedSocket = Socket & { parser?: Parser | null }

let bodySlot: string | undefined

/**
 * Node reads 64 KiB at once, and calls JavaScript for each chunk and each request in them: eleven
 * thousand chunks are 10 ms. Without these calls they are half a millisecond.
 * @returns restores the parser, which Node uses again for other connections
 */
function silenceParser({ parser }: ParsedSocket): () => void {
  if (parser === null || parser === undefined) return () => undefined
  bodySlot ??= Object.keys(parser).find((key) => isNamed(parser[key], 'parserOnBody'))
  const slot = bodySlot
  // The same answer as for an upgrade: what follows is not HTTP.
  if (typeof parser.onIncoming === 'function') parser.onIncoming = () => 2
  if (slot === undefined) return () => undefined
  const onBody = parser[slot]
  parser[slot] = undefined
  return () => {
    parser[slot] = onBody
  }
}

const isNamed = (value: unknown, name: string): boolean =>
  typeof value === 'function' && value.name === name

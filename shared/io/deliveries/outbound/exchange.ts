/**
 * One request and its response on an established connection, with Node's HTTP client. Informational
 * (1xx) responses are skipped. A response counts once its final status has arrived, however its
 * body ends. The bytes read from a receiver are bounded.
 */
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import {
  webhookAnswerBytesMax,
  webhookAnswerFramingBytesMax,
  webhookAnswerHeadBytesMax,
  webhookAnswerHeadersMax,
  webhookAnswerKeptBytesMax,
  webhookAnswerPiecesMax,
} from '#shared/core/base/limits/deliveries.ts'
import { createByteBuffer } from '#shared/io/process/byte-buffer.ts'
import { lenientHeadBytesMax, readHeadLeniently } from './lenient-head.ts'
import { OutboundError } from './outbound-error.ts'

export type OutboundAnswer = {
  status: number
  /** The `Retry-After` header, as sent. */
  retryAfter: string | undefined
  /** The `Location` header, as sent. */
  location: string | undefined
  /** The first 4 KiB of the body, undecoded. */
  body: Buffer
  /** The address that answered. */
  address: string
  /** What is wrong with a response that counts nevertheless. */
  fault: string | null
}

/**
 * A reused connection ended before the first byte of a response: the receiver may have closed it
 * while it was idle, so the request may be sent again over a new connection.
 */
export class StaleConnectionError extends Error {
  constructor() {
    super('a reused connection had ended')
    this.name = 'StaleConnectionError'
  }
}

/** A connected socket that carries one request after another. */
export type Connection = {
  socket: Socket
  address: string
  agent: Agent
  /** Requests started on it. */
  begun: number
  /** Called with each chunk that is read. */
  onRead: (piece: Buffer) => void
}

/**
 * @param address the remote address of the socket
 * @param idleMs how long it may be idle, unless the receiver announces less
 */
export function createConnection(socket: Socket, address: string, idleMs: number): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: idleMs })
  let used = false
  agent.createConnection = (_options, callback) => {
    if (!used) {
      used = true
      return socket
    }
    // The agent must never open a connection: `connect` does.
    callback?.(new StaleConnectionError(), socket)
    return undefined
  }
  const connection: Connection = {
    socket,
    address,
    agent,
    begun: 0,
    // Bytes before a request would be taken for the response to the next one.
    onRead: () => socket.destroy(),
  }
  socket.on('data', (piece: Buffer) => connection.onRead(piece))
  return connection
}

/** A request that has its socket, with nothing written yet. */
export type Exchange = {
  /**
   * Writes the request at once and waits for its answer.
   * @param signal its abort ends the request with the signal's reason
   * @throws StaleConnectionError, OutboundError
   */
  post: (
    body: Uint8Array,
    headers: Record<string, string>,
    signal: AbortSignal,
  ) => Promise<OutboundAnswer>
  /** Ends the request and its connection with nothing written. */
  abandon: () => void
}

/** Informational responses before the final one; only `102 Processing` repeats. */
const informationalMax = 16

class AnswerTooLongError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AnswerTooLongError'
  }
}

/** Starts a request; it is ready when it has its socket. */
export async function beginExchange(connection: Connection, url: URL): Promise<Exchange> {
  connection.begun += 1
  const sent = request({
    agent: connection.agent,
    method: 'POST',
    path: url.pathname + url.search,
    headers: { host: url.host },
    maxHeaderSize: webhookAnswerHeadBytesMax,
  })
  sent.maxHeadersCount = webhookAnswerHeadersMax
  const answer = readAnswer(connection, sent)
  // A failure before the request is written is reported by `post`.
  answer.catch(() => undefined)
  await new Promise<void>((resolve) => {
    sent.once('socket', () => resolve())
    sent.once('close', () => resolve())
  })
  return {
    post: async (body, headers, signal) => {
      const onAbort = () => sent.destroy(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        if (signal.aborted) onAbort()
        for (const [name, value] of Object.entries(headers)) sent.setHeader(name, value)
        sent.setHeader('content-length', body.length)
        sent.end(body)
        return await answer
      } catch (error) {
        throw toOutboundError(error, signal, connection.address)
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    },
    abandon: () => sent.destroy(),
  }
}

const empty = Buffer.alloc(0)

/** Reads one response within its bounds. Rejects when it ends before a status has arrived. */
function readAnswer(connection: Connection, sent: ClientRequest): Promise<OutboundAnswer> {
  const { socket, address } = connection
  const isFirst = connection.begun === 1
  return new Promise((resolve, reject) => {
    let head: Omit<OutboundAnswer, 'body' | 'address'> | undefined
    const headBytes = createByteBuffer(lenientHeadBytesMax)
    let answered = false
    let kept: Buffer | undefined
    let [otherBytes, bodyBytes, bodyPieces, keptBytes, informational] = [0, 0, 0, 0, 0]
    let bodyBytesMax = webhookAnswerBytesMax
    const abort = (what: string) => sent.destroy(new AnswerTooLongError(what))

    connection.onRead = (piece) => {
      // Bytes that are not body: all of the head, then chunk sizes and trailers.
      const boundBytes =
        head === undefined ? webhookAnswerHeadBytesMax : webhookAnswerFramingBytesMax
      if (otherBytes > boundBytes) abort(tooLongHead)
      otherBytes += piece.length
      answered = true
      // The lenient parser never reads a larger head.
      if (otherBytes > lenientHeadBytesMax) headBytes.clear()
      else if (head === undefined) headBytes.add(piece)
    }
    let ended = false
    const end = (error?: Error) => {
      if (ended) return
      ended = true
      if (error !== undefined) {
        // After an answer that was cut short the socket cannot be used again.
        socket.destroy()
        head ??= readHeadLeniently(error, headBytes.take())
      }
      connection.onRead = () => socket.destroy()
      if (head !== undefined)
        resolve({ ...head, body: kept?.subarray(0, keptBytes) ?? empty, address })
      else if (!answered && !isFirst && isEnded(error)) reject(new StaleConnectionError())
      else reject(error ?? new Error('closed'))
    }
    sent.on('information', () => {
      informational += 1
      if (informational > informationalMax) abort('too many informational answers')
    })
    sent.on('upgrade', () => end(new OutboundError('protocol', 'the answer is an upgrade')))
    sent.on('error', end)
    sent.on('close', () => end(new Error('closed')))
    sent.on('response', (response: IncomingMessage) => {
      if (!sent.writableEnded) {
        end(new OutboundError('protocol', 'an answer came before the request'))
        return
      }
      const { statusCode: status = 0, headers } = response
      const { 'retry-after': retryAfter, location } = headers
      head = { status, retryAfter, location, fault: null }
      // Of a body with a Content-Length above the limit, read only the part that is kept.
      const isTooLong = Number(headers['content-length']) > webhookAnswerBytesMax
      if (isTooLong) bodyBytesMax = webhookAnswerKeptBytesMax - 1
      otherBytes = 0
      headBytes.clear()
      response.on('data', (piece: Buffer) => {
        const wanted = Math.min(piece.length, webhookAnswerKeptBytesMax - keptBytes)
        // Copied, because a chunk may be a tiny view of a large buffer.
        kept ??= Buffer.allocUnsafe(webhookAnswerKeptBytesMax)
        keptBytes += piece.copy(kept, keptBytes, 0, wanted)
        bodyBytes += piece.length
        bodyPieces += 1
        // Body bytes in the same chunk as the end of the head were not counted: stay above zero.
        otherBytes = Math.max(0, otherBytes - piece.length)
        if (bodyBytes > bodyBytesMax || bodyPieces > webhookAnswerPiecesMax) abort('the body')
      })
      response.on('end', () => {
        if (!sent.shouldKeepAlive) socket.destroy()
        end()
      })
      response.on('error', end)
    })
  })
}

const tooLongHead = `the head of the answer is above ${webhookAnswerHeadBytesMax / 1024} KiB`

/** Whether the connection ended, as opposed to an invalid response. */
function isEnded(error: Error | undefined): boolean {
  if (error instanceof StaleConnectionError || error?.message === 'closed') return true
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'ECONNRESET' || code === 'EPIPE'
}

type ParseError = Error & { code?: string; reason?: string }

function toOutboundError(thrown: unknown, signal: AbortSignal, address: string): Error {
  const error = thrown as ParseError
  if (error instanceof StaleConnectionError && !signal.aborted) return error
  const why: unknown = signal.aborted ? signal.reason : error
  if (why instanceof OutboundError) return new OutboundError(why.kind, why.message, address)
  if (signal.aborted) return new OutboundError('timeout', 'no answer in time', address)
  if (error instanceof AnswerTooLongError) {
    return new OutboundError('protocol', error.message, address)
  }
  const code = error.code ?? error.name
  if (code === 'HPE_HEADER_OVERFLOW') return new OutboundError('protocol', tooLongHead, address)
  return code.startsWith('HPE_')
    ? new OutboundError('protocol', `the answer is not HTTP/1.1: ${error.reason ?? code}`, address)
    : new OutboundError('reset', `the connection ended without an answer: ${code}`, address)
}

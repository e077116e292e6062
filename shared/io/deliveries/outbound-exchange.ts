/**
 * One request and its answer on a connection that stands already, by Node's own HTTP client. The
 * final status decides: answers of 1xx before it are passed over, and an answer whose status has
 * arrived counts, however its body ends. What a receiver can make us read is bounded on the wire.
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
} from '#shared/core/deliveries/delivery-limits.ts'
import { OutboundError } from './outbound-dial.ts'
import { readRefusedHead, refusedHeadBytesMax } from './outbound-refused-head.ts'

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
  /** What is wrong with an answer that counts all the same. */
  fault: string | null
}

/**
 * A connection that was used before ended without a byte of an answer, so the receiver may have
 * closed it for being idle or used: the request may be sent once more over a fresh one.
 */
export class StaleConnectionError extends Error {
  constructor() {
    super('a connection that was used before had ended')
    this.name = 'StaleConnectionError'
  }
}

/** A connected socket on which requests follow one another. */
export type Connection = {
  socket: Socket
  address: string
  agent: Agent
  /** Requests that were begun on it. */
  begun: number
  /** Takes note of each piece that is read. */
  onRead: (piece: Buffer) => void
}

/**
 * @param address the one that the socket is connected to
 * @param idleMs how long it is kept unused, unless the receiver says that it keeps it for less
 */
export function createConnection(socket: Socket, address: string, idleMs: number): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: idleMs })
  let given = false
  agent.createConnection = (_options, callback) => {
    if (!given) {
      given = true
      return socket
    }
    // It never connects by itself: that is what `dial` does.
    callback?.(new StaleConnectionError(), socket)
    return undefined
  }
  const connection: Connection = {
    socket,
    address,
    agent,
    begun: 0,
    // Nobody has asked: what is said now would pass for the answer to a later request.
    onRead: () => socket.destroy(),
  }
  socket.on('data', (piece: Buffer) => connection.onRead(piece))
  return connection
}

/** A request on a socket of its own of which nothing is written yet. */
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
  /** Ends it, and the connection, with nothing written. */
  abandon: () => void
}

/** Answers of 1xx before the real one; `102 Processing` is the only one that repeats. */
const informationalMax = 16

class AnswerTooLongError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AnswerTooLongError'
  }
}

/** Begins a request; it is ready when it has its socket. */
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
  // Whatever comes before the request is written is looked at when it is.
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

/** Reads one answer within its bounds. Rejects with whatever ended it before a status came. */
function readAnswer(connection: Connection, sent: ClientRequest): Promise<OutboundAnswer> {
  const { socket, address } = connection
  const isFirst = connection.begun === 1
  return new Promise((resolve, reject) => {
    let head: Omit<OutboundAnswer, 'body' | 'address'> | undefined
    const headPieces: Buffer[] = []
    let answered = false
    let kept: Buffer | undefined
    let [otherBytes, bodyBytes, bodyPieces, keptBytes, informational] = [0, 0, 0, 0, 0]
    let bodyBytesMax = webhookAnswerBytesMax
    const giveUp = (what: string) => sent.destroy(new AnswerTooLongError(what))

    connection.onRead = (piece) => {
      // What is read and not known to be body: all of the head, then chunk sizes and trailers.
      const boundBytes =
        head === undefined ? webhookAnswerHeadBytesMax : webhookAnswerFramingBytesMax
      if (otherBytes > boundBytes) giveUp(tooLongHead)
      otherBytes += piece.length
      answered = true
      if (head === undefined) headPieces.push(piece)
      // A head this large is read once or not at all.
      if (otherBytes > refusedHeadBytesMax) headPieces.length = 0
    }
    let ended = false
    const end = (error?: Error) => {
      if (ended) return
      ended = true
      if (error !== undefined) {
        // An answer that was cut short, by us or by them, leaves a socket that nobody can use.
        socket.destroy()
        head ??= readRefusedHead(error, headPieces)
      }
      connection.onRead = () => socket.destroy()
      if (head !== undefined)
        resolve({ ...head, body: kept?.subarray(0, keptBytes) ?? empty, address })
      else if (!answered && !isFirst && isEnded(error)) reject(new StaleConnectionError())
      else reject(error ?? new Error('closed'))
    }
    sent.on('information', () => {
      informational += 1
      if (informational > informationalMax) giveUp('too many informational answers')
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
      // A body that says that it is too long is not worth reading further than it is kept.
      const isTooLong = Number(headers['content-length']) > webhookAnswerBytesMax
      if (isTooLong) bodyBytesMax = webhookAnswerKeptBytesMax - 1
      otherBytes = 0
      headPieces.length = 0
      response.on('data', (piece: Buffer) => {
        const wanted = Math.min(piece.length, webhookAnswerKeptBytesMax - keptBytes)
        // Copied to one place: a piece is a view of all that was read with it, and may be a byte.
        kept ??= Buffer.allocUnsafe(webhookAnswerKeptBytesMax)
        keptBytes += piece.copy(kept, keptBytes, 0, wanted)
        bodyBytes += piece.length
        bodyPieces += 1
        // Not below zero: what came in one piece with the end of the head was not counted.
        otherBytes = Math.max(0, otherBytes - piece.length)
        if (bodyBytes > bodyBytesMax || bodyPieces > webhookAnswerPiecesMax) giveUp('the body')
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

/** Whether the connection broke, rather than what was said on it. */
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

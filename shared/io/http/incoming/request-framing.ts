/**
 * Refuses requests whose framing is ambiguous or absurd: another server could read them otherwise,
 * or they cost more than their bytes.
 */
import type { IncomingMessage } from 'node:http'
import {
  chunksMin,
  framingBytesMax,
  headersCountMax,
  payloadBytesPerChunk,
  pipelinedRequestsMax,
} from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { stopReading } from './stop-reading.ts'

export const framingReasons = [
  'host',
  'transfer_encoding',
  'headers',
  'pipelined',
  'expectation',
  'chunks',
] as const
export type FramingReason = (typeof framingReasons)[number]

export type FramingFault = { reason: FramingReason; problem: Problem }

const fault = (
  reason: FramingReason,
  code: 'malformed_request' | 'headers_too_large' | 'rate_limited' | 'expectation_failed',
  detail: string,
  path: string,
  message: string,
): FramingFault => ({
  reason,
  problem: new Problem(code, detail, {
    errors: [{ path, message }],
    ...(code === 'rate_limited' ? { retryAfterSeconds: 1 } : {}),
  }),
})

export const framingFaults = {
  host: fault(
    'host',
    'malformed_request',
    'The request needs one Host.',
    'host',
    'must be sent once',
  ),
  transferEncoding: fault(
    'transfer_encoding',
    'malformed_request',
    'The request needs another framing.',
    'transfer-encoding',
    'must be absent or exactly chunked, with HTTP/1.1 and without Content-Length',
  ),
  headers: fault(
    'headers',
    'headers_too_large',
    'The request has too many headers.',
    'headers',
    `must be at most ${headersCountMax}`,
  ),
  pipelined: fault(
    'pipelined',
    'rate_limited',
    'Too many requests of this connection wait for their answers.',
    'request',
    `at most ${pipelinedRequestsMax} of a connection can wait`,
  ),
  chunks: fault(
    'chunks',
    'malformed_request',
    'The body comes in too many pieces.',
    'body',
    `must come in ${chunksMin} pieces and one for each ${payloadBytesPerChunk} bytes at most`,
  ),
} as const

/** @returns why the head of a request is refused; null when it is not */
export function findHeadFault(request: IncomingMessage): FramingFault | null {
  const { rawHeaders, headers, httpVersion } = request
  if (rawHeaders.length > 2 * headersCountMax) return framingFaults.headers
  let hosts = 0
  let codings = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') codings++
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return framingFaults.host
  if (codings === 0) return null
  const isClear =
    codings === 1 &&
    headers['transfer-encoding']!.toLowerCase() === 'chunked' &&
    headers['content-length'] === undefined &&
    httpVersion === '1.1'
  return isClear ? null : framingFaults.transferEncoding
}

/** Whether a body that has come so far in so many pieces costs more than its bytes. */
const hasTooManyPieces = (pieces: number, bytes: number): boolean =>
  pieces > chunksMin + bytes / payloadBytesPerChunk

/** Requests with too many chunks, and what waits for the bodies of others. */
const absurd = new WeakSet<IncomingMessage>()
const readers = new WeakMap<IncomingMessage, () => void>()

/** Calls `onAbsurd`, at once or later, when a request has too many chunks. Its body never ends. */
export function onAbsurdChunks(request: IncomingMessage, onAbsurd: () => void): void {
  if (absurd.has(request)) onAbsurd()
  else readers.set(request, onAbsurd)
}

/**
 * Counts the chunks of a request as Node's parser finds them, before any is kept, and stops reading
 * the connection when they are too many, or when extensions and trailers are.
 * @param onAbsurd called once, before the reader of the body is
 */
export function watchChunks(request: IncomingMessage, onAbsurd: () => void): void {
  const { socket } = request
  const push = request.push
  const startBytes = socket.bytesRead
  let pieces = 0
  let bytes = 0
  const isAbsurd = (piece: Buffer | null): boolean => {
    if (piece === null) {
      return request.rawHeaders.length + request.rawTrailers.length > 2 * headersCountMax
    }
    pieces++
    bytes += piece.length
    return (
      hasTooManyPieces(pieces, bytes) || socket.bytesRead - startBytes > framingBytesMax + bytes
    )
  }
  request.push = (piece: Buffer | null, encoding) => {
    if (!isAbsurd(piece)) return push.call(request, piece, encoding)
    request.push = () => true
    absurd.add(request)
    stopReading(socket)
    onAbsurd()
    readers.get(request)?.()
    return true
  }
}

/**
 * Reads the body of a submission off the wire, within its bound and without fastify: what can be
 * refused by its headers is refused at once, and a refused body is read and thrown away so that its
 * sender gets to read the answer. Slow senders are cut off by the server's own limits.
 */
import type { IncomingMessage } from 'node:http'
import { bodyBytesMax, refusedBodyBytesMax } from '#shared/core/limits.ts'
import { type Refusal, refusals } from './accept-telemetry.ts'

const jsonType = /^application\/json[ \t]*(;|$)/i

export function isJson(contentType: string): boolean {
  return contentType === 'application/json' || jsonType.test(contentType)
}

/** What the headers alone are refused for, or null. */
export function checkHeaders(request: IncomingMessage): Refusal | null {
  const type = request.headers['content-type']
  if (type === undefined || !isJson(type)) return refusals.contentType
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return refusals.contentType
  }
  // Node has checked that it is a number, and gives us no more bytes than it says.
  const declared = request.headers['content-length']
  return declared !== undefined && Number(declared) > bodyBytesMax ? refusals.tooLarge : null
}

/**
 * Reads a body of at most `bodyBytesMax` bytes. Calls back once: with the body when it is complete,
 * or with null as soon as it is too large, in which case the rest is discarded. A request that is
 * cut off before its end calls back never: there is nobody to answer.
 */
export function receiveBody(request: IncomingMessage, done: (body: Buffer | null) => void): void {
  let first: Buffer | null = null
  let more: Buffer[] | null = null
  let bytes = 0
  const onData = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > bodyBytesMax) {
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      discardBody(request)
      done(null)
    } else if (first === null) first = chunk
    else if (more === null) more = [first, chunk]
    else more.push(chunk)
  }
  const onEnd = () => {
    done(more !== null ? Buffer.concat(more, bytes) : (first ?? noBody))
  }
  request.on('data', onData)
  request.on('end', onEnd)
}

const noBody = Buffer.alloc(0)

/** Reads on so that the sender can finish and read the answer, but not without end. */
export function discardBody(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > refusedBodyBytesMax) request.destroy()
  })
}

/**
 * Reads the body of a submission off the wire, within its bound and without fastify: what can be
 * refused by its headers is refused at once, and a refused body is read and thrown away so that its
 * sender gets to read the answer. Slow senders are cut off by the server's own limits.
 */
import type { IncomingMessage } from 'node:http'
import { bodyBytesMax, refusedBodyBytesMax } from '#shared/core/base/limits/http.ts'
import type { BodyBudget, IncompleteBody } from '../body-budget.ts'
import { type Refusal, refusals } from '../decide-submission.ts'

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
 * or, as soon as it is known, with the reason for which it is refused; the rest is discarded. A
 * request that is cut off before its end calls back never: there is nobody to answer.
 */
export function receiveBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (body: Buffer | Refusal) => void,
): void {
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  let chunks: Buffer[] = []
  let bytes = 0
  const stop = (): void => {
    budget.release(incomplete)
    request.removeListener('data', onData)
    request.removeListener('end', onEnd)
    request.removeListener('close', onClose)
  }
  const refuse = (refusal: Refusal): void => {
    stop()
    chunks = []
    discardBody(request)
    done(refusal)
  }
  const incomplete: IncompleteBody = { cut: () => refuse(refusals.bodyCut) }
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > bodyBytesMax) {
      refuse(refusals.tooLarge)
      return
    }
    chunks.push(chunk)
    // Most bodies are complete with their first chunk.
    if (bytes !== declared) budget.hold(incomplete, chunk.length)
  }
  const onEnd = (): void => {
    stop()
    done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes))
  }
  const onClose = (): void => budget.release(incomplete)
  request.on('data', onData)
  request.on('end', onEnd)
  request.on('close', onClose)
}

/** Reads on so that the sender can finish and read the answer, but not without end. */
export function discardBody(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > refusedBodyBytesMax) request.destroy()
  })
}

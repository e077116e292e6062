/**
 * Checks the headers of a submission and reads its body, within its limit. A refused body is read
 * and discarded, so that the client can read the response. The server's time limits cut off slow
 * clients.
 */
import type { IncomingMessage } from 'node:http'
import { bodyBytesMax, refusedBodyBytesMax } from '#shared/core/base/limits/http.ts'
import type { BodyBudget, IncompleteBody } from '../body-budget.ts'
import { type Refusal, refusals } from '../decide-submission.ts'

const jsonType = /^application\/json[ \t]*(;|$)/i

function isJson(contentType: string): boolean {
  return contentType === 'application/json' || jsonType.test(contentType)
}

/** @returns why the headers alone are refused; null when they are not */
export function checkHeaders(request: IncomingMessage): Refusal | null {
  const type = request.headers['content-type']
  if (type === undefined || !isJson(type)) return refusals.contentType
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return refusals.contentType
  }
  // Node has checked that it is a number, and delivers no more bytes than that.
  const declared = request.headers['content-length']
  return declared !== undefined && Number(declared) > bodyBytesMax ? refusals.tooLarge : null
}

/**
 * Reads a body of at most `bodyBytesMax` bytes.
 * @param done called once, with the complete body or with the reason of a refusal; the rest of a
 *   refused body is discarded. It is not called when the client disconnects.
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
    // The first chunk completes most bodies.
    if (bytes !== declared) budget.add(incomplete, chunk.length)
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

/** Reads and discards a body up to a limit, so that the client can finish and read the response. */
export function discardBody(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > refusedBodyBytesMax) request.destroy()
  })
}

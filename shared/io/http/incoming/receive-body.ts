/**
 * Reads the body of a request into one buffer, within its limit. What is kept is counted, so many
 * incomplete bodies together are bounded as well. The server's time limits cut off slow clients.
 */
import type { IncomingMessage } from 'node:http'
import { bodyBufferBytesMin } from '#shared/core/base/limits/http.ts'
import type { BodyBudget, IncompleteBody } from './body-budget.ts'
import { hasTooManyPieces, onAbsurdChunks } from './request-framing.ts'

/** Why a body was not read to its end. */
export type BodyFault =
  /** It is larger than its limit. */
  | 'too_large'
  /** Incomplete bodies have too much memory, and this one is the oldest. */
  | 'cut'
  /** It came in too many pieces. */
  | 'framing'

type Limits = {
  bytesMax: number
  budget: BodyBudget
}

const empty = Buffer.alloc(0)

/**
 * Reads a body.
 * @param done called once, with the complete body or why it is refused: then nothing more of it is
 *   kept. It is not called when the client disconnects.
 */
export function receiveBody(
  request: IncomingMessage,
  { bytesMax, budget }: Limits,
  done: (body: Buffer | BodyFault) => void,
): void {
  // Node has checked that it is a number, and delivers no more bytes than that.
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  if (declared > bytesMax) {
    done('too_large')
    return
  }
  let body: Buffer = empty
  let bytes = 0
  let pieces = 0
  let isOver = false
  const stop = (): void => {
    isOver = true
    budget.release(incomplete)
    request.removeListener('data', onData)
    request.removeListener('end', onEnd)
    request.removeListener('close', stop)
  }
  const refuse = (fault: BodyFault): void => {
    if (isOver) return
    stop()
    body = empty
    // What Node still delivers is dropped.
    request.resume()
    done(fault)
  }
  const incomplete: IncompleteBody = { cut: () => refuse('cut') }
  const findFault = (end: number): BodyFault | null => {
    if (end > bytesMax) return 'too_large'
    return hasTooManyPieces(pieces, end) ? 'framing' : null
  }
  const onData = (piece: Buffer): void => {
    const end = bytes + piece.length
    pieces++
    const fault = findFault(end)
    if (fault !== null) {
      refuse(fault)
      return
    }
    const kept = body.length
    // The first piece completes most bodies, and is kept as it is.
    if (bytes === 0) body = piece
    else if (end > body.length) {
      body = grow(body, bytes, Math.min(toCapacity(end), declared || bytesMax))
    }
    if (bytes > 0) piece.copy(body, bytes)
    bytes = end
    if (end !== declared && body.length !== kept) budget.add(incomplete, body.length - kept)
  }
  const onEnd = (): void => {
    stop()
    // Without the spare room, which would be kept with it.
    done(body.length === bytes ? body : Buffer.from(body.subarray(0, bytes)))
  }
  request.on('data', onData)
  request.on('end', onEnd)
  request.on('close', stop)
  onAbsurdChunks(request, () => refuse('framing'))
}

const toCapacity = (bytes: number): number => Math.max(bodyBufferBytesMin, 2 * bytes)

function grow(body: Buffer, bytes: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(capacity)
  body.copy(larger, 0, 0, bytes)
  return larger
}

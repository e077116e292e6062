/**
 * Reads the body of a request into one buffer, within its limit. What is kept is counted, so many
 * incomplete bodies together are bounded as well. The server's time limits cut off slow clients.
 */
import type { IncomingMessage } from 'node:http'
import { type ByteBuffer, createByteBuffer } from '#shared/io/process/byte-buffer.ts'
import type { BodyBudget, IncompleteBody } from './body-budget.ts'
import { onAbsurdChunks } from './request-framing.ts'

/** Why a body was not read to its end. */
export type BodyFault =
  /** It is larger than its limit. */
  | 'too_large'
  /** Incomplete bodies have too much memory, and this one is the oldest. */
  | 'cut'
  /** It came in too many chunks. */
  | 'framing'

const empty = Buffer.alloc(0)

type Limits = {
  bytesMax: number
  budget: BodyBudget
}

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
  /** The only piece of a body, as it came: most bodies have one, and need no buffer. */
  let whole: Buffer | null = null
  let buffer: ByteBuffer | null = null
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
    buffer?.clear()
    // What Node still delivers is dropped.
    request.resume()
    done(fault)
  }
  const incomplete: IncompleteBody = { cut: () => refuse('cut') }
  const onData = (piece: Buffer): void => {
    if (piece.length === declared) {
      whole = piece
      return
    }
    buffer ??= createByteBuffer(declared || bytesMax)
    if (buffer.length() + piece.length > bytesMax) refuse('too_large')
    else budget.add(incomplete, buffer.add(piece))
  }
  const onEnd = (): void => {
    stop()
    done(whole ?? buffer?.take() ?? empty)
  }
  request.on('data', onData)
  request.on('end', onEnd)
  request.on('close', stop)
  // An entry for every request would cost more than the rest of this function.
  if (request.headers['transfer-encoding'] !== undefined) {
    onAbsurdChunks(request, () => refuse('framing'))
  }
}

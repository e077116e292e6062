/**
 * Bounds on what a receiver can make us read and parse for one answer, counted on the wire where
 * nothing is missed: to an HTTP parser endless informational answers, chunk extensions and trailers
 * are neither head nor body, and undici does not stop at its own limit before the end of what it
 * was given. 64 KiB of tiny headers at once would hold up the whole process for a tenth of a
 * second.
 */
import type { Socket } from 'node:net'

/** Largest head of an answer; Node's own default. */
export const answerHeadBytesMax = 16 * 1024

/**
 * Lines of a head; real ones have under fifty. Each costs far more to parse than its bytes to read.
 */
const headLinesMax = 256

/**
 * What may come around the body, once the head is there: chunk sizes and trailers. Beyond it only
 * the rest of the answer is lost, never its status.
 */
const framingBytesMax = 4 * 1024

/** What undici's parser gets at once. */
const pieceBytesMax = 2 * 1024

/** An answer that is beyond its bounds; the socket is destroyed with it. */
export class AnswerTooLongError extends Error {
  constructor() {
    super('the answer is too long')
    this.name = 'AnswerTooLongError'
  }
}

/** Told by whoever handles the parsed answer what the bytes turned out to be. */
export type ReadingBounds = {
  /** A new request: its answer starts from nothing. */
  begin: () => void
  headArrived: () => void
  bodyArrived: (bytes: number) => void
}

/**
 * Makes a socket hand over what it read in small pieces, and destroys it before a piece that would
 * break a bound.
 */
export function boundReading(socket: Socket): ReadingBounds {
  const read = socket.read
  let head = true
  let lines = 0
  // Bytes read that are not known to be body: all of the head, then the framing.
  let bytes = 0

  socket.read = (size) => {
    // A destroyed socket still has what it read before, but nobody wants it any more.
    if (socket.destroyed) return null
    const pieceBytes = Math.min(pieceBytesMax, socket.readableLength)
    const piece: Buffer | null = read.call(
      socket,
      size ?? (pieceBytes === 0 ? undefined : pieceBytes),
    )
    if (piece === null) return null
    bytes += piece.length
    if (head) lines += countLines(piece)
    const isFine = head
      ? bytes <= answerHeadBytesMax + pieceBytesMax && lines <= headLinesMax
      : bytes <= framingBytesMax + pieceBytesMax
    if (isFine) return piece
    socket.destroy(new AnswerTooLongError())
    return null
  }
  return {
    begin: () => {
      head = true
      lines = 0
      bytes = 0
    },
    headArrived: () => {
      head = false
      bytes = 0
    },
    bodyArrived: (count) => {
      bytes -= count
    },
  }
}

const newline = 10

/** Lines that end in a piece, as far as the end of a head. */
function countLines(piece: Buffer): number {
  const headEnd = piece.indexOf('\r\n\r\n')
  const end = headEnd === -1 ? piece.length : headEnd
  let lines = 0
  for (
    let at = piece.indexOf(newline);
    at !== -1 && at < end;
    at = piece.indexOf(newline, at + 1)
  ) {
    lines += 1
  }
  return lines
}

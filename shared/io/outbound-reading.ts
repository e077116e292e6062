/**
 * Bounds on what a receiver can make us read and parse for one answer, counted on the wire where
 * nothing is missed: to an HTTP parser endless informational answers, chunk extensions and trailers
 * are neither head nor body, and undici does not stop at its own limit before the end of what it
 * was given. 64 KiB of tiny headers at once would hold up the whole process for a tenth of a
 * second.
 */
import type { Socket } from 'node:net'

/** Largest head of an answer: no proxy in front of a receiver lets more through by default. */
export const answerHeadBytesMax = 8 * 1024

/**
 * Lines of a head; real ones have under fifty. Each costs far more to parse than its bytes to read,
 * and what it costs is kept until the head is complete: half a KiB for the two halves of a header.
 */
const headLinesMax = 128

/**
 * What may come around the body, once the head is there: chunk sizes and trailers, in bytes and in
 * lines, which cost as those of a head do. Beyond it only the rest of the answer is lost, never its
 * status.
 */
const framingBytesMax = 4 * 1024
const framingLinesMax = 64

/**
 * What undici's parser gets at once. Not less: it joins a long header anew with each piece of it.
 */
const pieceBytesMax = 2 * 1024

/**
 * Of text with many lines it gets this much: framing is only told from the body once it is parsed,
 * so a piece is how far it can be beyond its bounds.
 */
const pieceLinesMax = 64
const linedPieceBytesMax = 512

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
  /** A piece of the body as it came. */
  bodyArrived: (piece: Buffer) => void
}

/**
 * Makes a socket hand over what it read in small pieces, and destroys it before a piece that would
 * break a bound.
 */
export function boundReading(socket: Socket): ReadingBounds {
  const readFrom: (size?: number) => Buffer | null = socket.read
  let head = true
  // Read and not known to be body: all of the head, then the framing.
  let lines = 0
  let bytes = 0

  socket.read = (size) => {
    // A destroyed socket still has what it read before, but nobody wants it any more.
    if (socket.destroyed) return null
    if (!head && (bytes > framingBytesMax || lines > framingLinesMax)) return refuse()
    const pieceBytes = Math.min(pieceBytesMax, socket.readableLength)
    const read = readFrom.call(socket, size ?? (pieceBytes === 0 ? undefined : pieceBytes))
    if (read === null) return null
    const piece = withFewLines(socket, read)
    bytes += piece.length
    lines += countLines(piece, head ? findHeadEnd(piece) : piece.length)
    if (head && (bytes > answerHeadBytesMax + pieceBytesMax || lines > headLinesMax)) {
      return refuse()
    }
    return piece
  }
  const refuse = (): null => {
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
      lines = 0
      bytes = 0
    },
    // Not below zero: what came in one piece with the end of the head was not counted.
    bodyArrived: (piece) => {
      bytes = Math.max(0, bytes - piece.length)
      lines = Math.max(0, lines - countLines(piece))
    },
  }
}

/** A piece, or its beginning: the rest is put back to be read next. */
function withFewLines(socket: Socket, piece: Buffer): Buffer {
  if (piece.length <= linedPieceBytesMax || countLines(piece) <= pieceLinesMax) return piece
  socket.unshift(piece.subarray(linedPieceBytesMax))
  return piece.subarray(0, linedPieceBytesMax)
}

function findHeadEnd(piece: Buffer): number {
  const end = piece.indexOf('\r\n\r\n')
  return end === -1 ? piece.length : end
}

const newline = 10

/** Lines of a piece that end before a place in it. */
function countLines(piece: Buffer, end = piece.length): number {
  let lines = 0
  let at = piece.indexOf(newline)
  while (at !== -1 && at < end) {
    lines += 1
    at = piece.indexOf(newline, at + 1)
  }
  return lines
}

/**
 * Stream offsets of the messages of one stream. A stream whose files were put back to an earlier
 * copy repeats sequences for other messages. From there on it is another incarnation, whose offsets
 * begin above all that were in use.
 */
import { offsetsPerMessage, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'

/** An incarnation after the first one of its stream. */
export type StreamIncarnation = {
  /** When the stream was created, in ms since 1970: it identifies the stream. */
  createdMs: number
  /** The first sequence that the stream used again. */
  firstSequence: number
  /** Offsets of the incarnation begin here, as those of a stream that was created then. */
  baseMs: number
}

export type StreamOffsets = {
  /** The offset of a message's first event. */
  of: (sequence: number) => number
  /** The lowest offset of the present incarnation; it identifies the incarnation. */
  start: number
  /** The message of an offset, or null for one of an earlier incarnation. */
  findSequence: (streamOffset: number) => number | null
}

/**
 * @param createdMs when the stream was created, in ms since 1970
 * @param incarnations of any stream, in any order
 */
export function createStreamOffsets(
  createdMs: number,
  incarnations: readonly StreamIncarnation[],
): StreamOffsets {
  const first = { createdMs, firstSequence: 1, baseMs: createdMs }
  const own = [first, ...incarnations.filter((one) => one.createdMs === createdMs)]
  own.sort((a, b) => b.baseMs - a.baseMs)
  const [present = first] = own
  const start = toStreamOffset(present.baseMs, 1)
  return {
    of: (sequence) => {
      const { baseMs, firstSequence } = own.find((one) => one.firstSequence <= sequence) ?? first
      return toStreamOffset(baseMs, sequence - firstSequence + 1)
    },
    start,
    findSequence: (streamOffset) =>
      streamOffset < start
        ? null
        : present.firstSequence + Math.floor((streamOffset - start) / offsetsPerMessage),
  }
}

/**
 * The incarnation that follows when a stream was put back.
 * @param newestOffset the highest offset that is in use
 * @param pendingMax messages beyond it that scorers may still store
 */
export function toNextIncarnation(
  { createdMs, firstSequence }: Pick<StreamIncarnation, 'createdMs' | 'firstSequence'>,
  { newestOffset, pendingMax, nowMs }: { newestOffset: number; pendingMax: number; nowMs: number },
): StreamIncarnation {
  const unusedOffset = newestOffset + (pendingMax + 1) * offsetsPerMessage
  const baseMs = Math.max(nowMs, Math.ceil(unusedOffset / toStreamOffset(1, 0)))
  return { createdMs, firstSequence, baseMs }
}

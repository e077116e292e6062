/**
 * The capacity of the telemetry stream: how much of it is undecided, and which messages are trimmed
 * when. Messages up to the low watermark are stored and decided; they are kept while there is
 * space.
 */
import {
  streamBytesPerSecondMax,
  tenantUndecidedBytesMin,
  trimCheckMaxMs,
  trimCheckMinMs,
  trimFromShare,
  trimToShare,
  undecidedShareMax,
  undecidedWarnShare,
} from '#shared/core/base/limits/stream.ts'

/** How full a stream is at one moment. */
export type StreamFill = {
  bytes: number
  /** The stream's limit in bytes; `Infinity` without one. */
  bytesMax: number
  messages: number
  firstSequence: number
  lastSequence: number
}

/**
 * Estimates the undecided bytes from the number of messages. The estimate is exact once everything
 * decided is removed, which is the case whenever undecided messages fill most of the stream.
 * @param lowWatermark the sequence up to which every message is decided
 * @returns bytes of the messages beyond it
 */
export function toUndecidedBytes(fill: StreamFill, lowWatermark: number): number {
  const { bytes, messages, firstSequence, lastSequence } = fill
  if (messages === 0) return 0
  const undecided = lastSequence - Math.max(lowWatermark, firstSequence - 1)
  return (bytes * Math.min(messages, Math.max(0, undecided))) / messages
}

/** Whether decided messages must be removed. */
export function isTrimDue({ bytes, bytesMax }: StreamFill): boolean {
  return bytes >= trimFromShare * bytesMax
}

/**
 * Plans one step of trimming. Messages differ in size, so the caller repeats it until the stream is
 * trimmed.
 * @param lowWatermark the sequence up to which messages may be removed
 * @returns the first sequence to keep; null when nothing must or may be removed
 */
export function planTrim(fill: StreamFill, lowWatermark: number): number | null {
  const { bytes, bytesMax, firstSequence, lastSequence } = fill
  const excess = bytes - trimToShare * bytesMax
  if (excess <= 0) return null
  const span = lastSequence - firstSequence + 1
  const keepFrom = firstSequence + Math.ceil((span * excess) / bytes)
  const first = Math.min(keepFrom, lowWatermark + 1)
  return first > firstSequence ? first : null
}

/** The interval in ms between two checks of the fill level. */
export function toTrimCheckMs(bytesMax: number): number {
  const filledMs = (1_000 * (1 - trimFromShare) * bytesMax) / streamBytesPerSecondMax
  return Math.min(trimCheckMaxMs, Math.max(trimCheckMinMs, filledMs))
}

/** @returns a warning text while much of the stream is undecided, else null */
export function toUndecidedWarning(undecidedBytes: number, bytesMax: number): string | null {
  const share = undecidedBytes / bytesMax
  return share < undecidedWarnShare
    ? null
    : `is ${Math.min(100, Math.floor(100 * share))} % full of undecided events`
}

const toTimesFree = (share: number) => share / (1 - share)

/**
 * The undecided bytes that one edge grants a tenant; see `undecidedShare` for the arithmetic.
 * Decided messages count as free, because scorers trim them. While no scorer runs they fill the
 * stream as well, so the same rule with the largest share holds for the space that is really free.
 * @param stream the stream's limit, what is in it, and the undecided bytes of all tenants
 * @param share of the stream, between 0 and 1, that the tenant may take while no other has any
 * @param edges live edges, this one included
 */
export function toUndecidedLimit(
  stream: { bytesMax: number; bytes: number; undecidedBytes: number },
  share: number,
  edges: number,
): number {
  const { bytesMax, bytes, undecidedBytes } = stream
  const granted = Math.min(
    toTimesFree(share) * (bytesMax - undecidedBytes),
    toTimesFree(undecidedShareMax) * (bytesMax - bytes),
  )
  return Math.max(granted / Math.max(1, edges), bytesMax / 1_024, tenantUndecidedBytesMin)
}

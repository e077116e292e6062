/**
 * The capacity of the telemetry stream: how much of it is undecided, which messages are trimmed,
 * and when. Messages up to the low watermark are stored and decided; they are kept while there is
 * space.
 */
import {
  streamBytesPerSecondMax,
  tenantUndecidedBytesMin,
  trimCheckMaxMs,
  trimCheckMinMs,
  trimFromShare,
  trimToShare,
  undecidedWarnShare,
} from '#shared/core/base/limits/stream.ts'

/** What a stream holds at one moment. */
export type StreamFill = {
  bytes: number
  /** Most bytes it takes; `Infinity` without a limit. */
  bytesMax: number
  messages: number
  firstSequence: number
  lastSequence: number
}

/**
 * An estimate by the number of messages. It is exact once everything decided has been removed,
 * which is so whenever the undecided take most of the stream.
 * @param lowWatermark the sequence up to which every message is decided
 * @returns bytes of the messages beyond it
 */
export function toUndecidedBytes(fill: StreamFill, lowWatermark: number): number {
  const { bytes, messages, firstSequence, lastSequence } = fill
  if (messages === 0) return 0
  const undecided = lastSequence - Math.max(lowWatermark, firstSequence - 1)
  return (bytes * Math.min(messages, Math.max(0, undecided))) / messages
}

/** Whether decided messages have to make room. */
export function isTrimDue({ bytes, bytesMax }: StreamFill): boolean {
  return bytes >= trimFromShare * bytesMax
}

/**
 * Messages may differ in size, so the caller looks again until the stream is trimmed.
 * @param lowWatermark the sequence up to which messages may be removed
 * @returns the first sequence to keep; null when nothing is to be removed, or may be
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

/** @returns ms until the fill is to be looked at again */
export function toTrimCheckMs(bytesMax: number): number {
  const filledMs = (1_000 * (1 - trimFromShare) * bytesMax) / streamBytesPerSecondMax
  return Math.min(trimCheckMaxMs, Math.max(trimCheckMinMs, filledMs))
}

/** @returns a warning in words while much of the stream waits undecided, else null */
export function toUndecidedWarning(undecidedBytes: number, bytesMax: number): string | null {
  const share = undecidedBytes / bytesMax
  return share < undecidedWarnShare
    ? null
    : `is ${Math.min(100, Math.floor(100 * share))} % full of undecided events`
}

/**
 * How much of a tenant may wait undecided at one edge.
 * @param room the stream's bytes, and how many of them wait undecided, of all tenants
 * @param share of the stream, between 0 and 1, that the tenant may take while no other waits
 * @param edges live edges, this one included
 */
export function toUndecidedLimit(
  room: { bytesMax: number; undecidedBytes: number },
  share: number,
  edges: number,
): number {
  const free = Math.max(0, room.bytesMax - room.undecidedBytes)
  const granted = ((share / (1 - share)) * free) / Math.max(1, edges)
  return Math.max(granted, room.bytesMax / 1_024, tenantUndecidedBytesMin)
}

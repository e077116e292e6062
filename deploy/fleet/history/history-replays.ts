/**
 * The replays of a simulated history: on some phones other software captures requests and repeats
 * them, byte for byte, later than any client retries. A copy is no new event; the next event of the
 * phone has the signal `attestation.replayed`.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import { orderWindowMs } from '#shared/core/base/limits/history.ts'
import { hashToUnit } from '../phones/random.ts'

/** Kinds of phones whose requests can be captured. */
const captured = new Set([
  ...['malware-victim', 'traffic-analyst', 'repackaged', 'app-cloner'],
  ...['frida-android', 'frida-ios'],
])
/** Of the requests before a pause of such a phone. */
const replayedShare = 0.5
/**
 * How long a phone must be quiet: the copy is then the last that came before its next event, and
 * that one is near enough to tell of it.
 */
const [pauseMinMs, pauseMaxMs] = [2 * hourMs, orderWindowMs]
const [earliestMs, latestMs] = [hourMs / 3, (5 * hourMs) / 3]

export type Captured = { phone: { deviceId: string; kind: { name: string } }; atMs: number }

/**
 * @param events in the order of their receipt
 * @returns which of them come again, by their index, and when
 */
export function planReplays(
  seed: number,
  events: readonly Captured[],
): { index: number; atMs: number }[] {
  const lastOf = new Map<string, number>()
  return events.flatMap(({ phone, atMs }, next) => {
    const { deviceId, kind } = phone
    const index = lastOf.get(deviceId)
    lastOf.set(deviceId, next)
    if (index === undefined || !captured.has(kind.name)) return []
    const before = events[index]!.atMs
    const draw = (what: string) => hashToUnit(`${seed} ${what} ${deviceId} ${before}`)
    const pausedMs = atMs - before
    if (pausedMs < pauseMinMs || pausedMs > pauseMaxMs) return []
    if (draw('replay') >= replayedShare) return []
    const afterMs = earliestMs + draw('delay') * (latestMs - earliestMs)
    return [{ index, atMs: before + Math.round(afterMs) }]
  })
}

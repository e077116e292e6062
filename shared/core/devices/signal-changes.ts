/**
 * Changes of a device's signals: when each appeared, went and came back. Pure: the events come from
 * the store. An event that did not measure a signal says nothing of it.
 */
import { signalChangesMax } from '#shared/core/base/limits/entities.ts'
import { type SignalBits, watchedSignals } from '#shared/core/signals/watched-signals.ts'

/** An event and what it measured of the watched signals. */
export type MeasuredEvent = SignalBits & { atMs: number; eventId: string; sessionId: string }

/** A boolean signal that was detected at least once, with its first and last detection. */
export type SignalSpan = {
  signal: string
  firstAtMs: number
  firstEventId: string
  firstSessionId: string
  lastAtMs: number
  lastSessionId: string
}

export type SignalChange = {
  atMs: number
  signal: string
  change: 'appeared' | 'went' | 'returned'
  eventId: string
  sessionId: string
}

export type SignalState = 'detected' | 'clean'

/**
 * Derives the changes. Signals that are not watched have no `went` and no `returned`, because only
 * their detections are stored.
 * @param events in their order of time and event id; an event that measured the same as the one
 *   before it may be left out
 * @returns the latest `signalChangesMax` changes, latest first, how many there are, and what each
 *   watched signal was when it was last measured
 */
export function toSignalChanges(
  spans: readonly SignalSpan[],
  events: readonly MeasuredEvent[],
): { changes: SignalChange[]; total: number; states: Map<string, SignalState> } {
  const changes: SignalChange[] = spans.map((span) => ({
    atMs: span.firstAtMs,
    signal: span.signal,
    change: 'appeared',
    eventId: span.firstEventId,
    sessionId: span.firstSessionId,
  }))
  const states = new Map<string, SignalState>()
  for (const event of events) {
    watchedSignals.forEach((signal, bit) => {
      const state = measure(event, bit)
      if (state === null) return
      const before = states.get(signal)
      states.set(signal, state)
      if (before === undefined || before === state) return
      const change = state === 'clean' ? 'went' : 'returned'
      const { atMs, eventId, sessionId } = event
      changes.push({ atMs, signal, change, eventId, sessionId })
    })
  }
  // The first detection is `appeared`, also after the signal was measured clean.
  const firsts = new Map(spans.map((span) => [span.signal, span.firstEventId]))
  const kept = changes.filter(
    ({ signal, change, eventId }) => change !== 'returned' || firsts.get(signal) !== eventId,
  )
  const sorted = kept.sort(compareLatest)
  return { changes: sorted.slice(0, signalChangesMax), total: sorted.length, states }
}

function measure({ detected, clean }: SignalBits, bit: number): SignalState | null {
  const half = bit < 32 ? 0 : 1
  const mask = 1 << (bit & 31)
  if ((detected[half] & mask) !== 0) return 'detected'
  return (clean[half] & mask) !== 0 ? 'clean' : null
}

function compareLatest(a: SignalChange, b: SignalChange): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs
  if (a.eventId !== b.eventId) return a.eventId < b.eventId ? 1 : -1
  return a.signal < b.signal ? -1 : 1
}
